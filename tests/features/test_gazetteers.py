import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from structperc.data.corpus import Corpus
from structperc.errors import InputError
from structperc.features import Gazetteer
from structperc.features.resources import TAGS


def tags(gazetteer, *sentences):
    corpus = Corpus.from_sentences([{"word": words} for words in sentences])
    words = corpus.factorize("word")
    return corpus.sentences_of([TAGS[tag] for tag in gazetteer.tag(words.distinct, words.numbers, corpus.sentences)])


def walk(known, words):
    """At each token from the left take the longest of the known phrases (tuples) that starts there."""
    found, at = [], 0
    while at < len(words):
        lengths = [n for n in range(1, len(words) - at + 1) if tuple(words[at : at + n]) in known]
        length = max(lengths, default=0)
        found += ["B"] + ["I"] * (length - 1) if length else [""]
        at += max(length, 1)
    return found


words = st.sampled_from(["a", "b", "c", "d"])
sentences = st.lists(st.lists(words, max_size=8), min_size=1, max_size=4)
phrases = st.lists(st.lists(words, min_size=1, max_size=4).map(" ".join), min_size=1, max_size=8)


@given(phrases, sentences)
def test_matches_equal_a_walk_over_strings(phrases, sentences):
    assert tags(Gazetteer(phrases), *sentences) == [
        walk({tuple(phrase.split()) for phrase in phrases}, words) for words in sentences
    ]


def test_the_leftmost_match_wins_then_the_longest():
    gazetteer = Gazetteer(["new york", "york times of london", "york", "new york city council"])
    assert tags(gazetteer, ["the", "new", "york", "times", "of", "london"]) == [["", "B", "I", "", "", ""]]
    assert tags(gazetteer, ["new", "york", "city", "york"]) == [["B", "I", "", "B"]]


def test_match_within_a_sentence():
    corpus = Corpus.from_sentences(
        [{"word": ["in", "new"]}, {"word": ["york", "new", "york"]}], documents=[0, 0], unit="document"
    )
    words = corpus.factorize("word")
    found = Gazetteer(["new york"]).tag(words.distinct, words.numbers, corpus.sentences)
    assert len(corpus) == 1
    assert found.tolist() == [0, 0, 0, 1, 2]


def test_case():
    assert tags(Gazetteer(["New York"]), ["NEW", "york"]) == [["B", "I"]]
    assert tags(Gazetteer(["New York"], fold=False), ["NEW", "york", "New", "York"]) == [["", "", "B", "I"]]


def test_a_file_has_one_phrase_per_line(tmp_path):
    path = tmp_path / "list.txt"
    path.write_text("new york\r\n\n  los   angeles \n", encoding="utf-8")
    gazetteer = Gazetteer(str(path))
    assert tags(gazetteer, ["los", "angeles", "york"]) == [["B", "I", ""]]
    assert tags(Gazetteer(**gazetteer.to_json()), ["new", "york"]) == [["B", "I"]]


def test_no_tokens():
    assert Gazetteer(["a"]).tag([], np.zeros(0, np.int32), np.zeros(1, np.int64)).tolist() == []


def test_empty_list_and_missing_file(tmp_path):
    with pytest.raises(InputError, match="no phrase"):
        Gazetteer([" "])
    (tmp_path / "empty.txt").write_text(" \n\n")
    with pytest.raises(InputError, match=r"empty\.txt: "):
        Gazetteer(tmp_path / "empty.txt")
    with pytest.raises(InputError, match="nowhere"):
        Gazetteer(str(tmp_path / "nowhere"))
