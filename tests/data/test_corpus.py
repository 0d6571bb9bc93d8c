"""Corpora of sentences and documents, and pieces of them that cut nothing apart that belongs together."""

import random

import numpy as np
import pytest
from datasets import ClassLabel, Dataset, Features, List, Value

from structperc.data.corpus import Corpus
from structperc.data.splits import chunk_bounds
from structperc.errors import InputError
from tests.errors import error_message

SENTENCES = [
    {"word": ["a", "b"], "label": ["O", "O"]},
    {"word": [], "label": []},
    {"word": ["c"], "label": ["B-X"]},
    {"word": ["d", "e", "a"], "label": ["O", "B-X", "I-X"]},
]
FLAT = {"word": ["a", "b", "c", "d", "e", "a"], "label": ["O", "O", "B-X", "O", "B-X", "I-X"]}


def dataset(documents=(0, 0, 1, 1)):
    return Corpus.from_columns(FLAT, [0, 2, 2, 3, 6], documents, lines=[1, 2, 5, 9, 10, 12]).to_dataset()


def same(one, other):
    return one.columns == other.columns and all(
        np.array_equal(getattr(one, field), getattr(other, field)) for field in ("starts", "sentences", "documents")
    )


def test_sentences_as_sequences():
    corpus = Corpus.from_sentences(SENTENCES, [0, 0, 1, 1])
    assert corpus.columns == FLAT
    assert corpus.starts.tolist() == corpus.sentences.tolist() == [0, 2, 2, 3, 6]
    assert corpus.documents.tolist() == [0, 0, 1, 1]
    assert (len(corpus), corpus.tokens, corpus.lengths.tolist()) == (4, 6, [2, 0, 1, 3])
    assert {corpus.starts.dtype, corpus.sentences.dtype, corpus.documents.dtype} == {np.dtype(np.int64)}
    assert same(corpus, Corpus.from_dataset(dataset()))


def test_documents_as_sequences():
    corpus = Corpus.from_sentences(SENTENCES, [0, 0, 1, 1], unit="document")
    assert corpus.starts.tolist() == [0, 2, 6]
    assert corpus.sentences.tolist() == [0, 2, 2, 3, 6]
    assert corpus.documents.tolist() == [0, 1]
    assert same(corpus, Corpus.from_dataset(dataset(), "document"))


def test_documents_without_ids():
    assert Corpus.from_sentences(SENTENCES, unit="document").documents.tolist() == [0, 1, 2, 3]


def test_sentences_of_flat_values():
    for unit in ("sentence", "document"):
        corpus = Corpus.from_dataset(dataset(), unit)
        assert corpus.sentences_of(corpus.columns["word"]) == [["a", "b"], [], ["c"], ["d", "e", "a"]]
        assert corpus.sentences_of(np.arange(6)) == [[0, 1], [], [2], [3, 4, 5]]


def test_selected_rows():
    corpus = Corpus.from_dataset(dataset().select([3, 0]), name="f")
    assert corpus.columns["word"] == ["d", "e", "a", "a", "b"]
    assert [corpus.where(i) for i in range(5)] == ["f:9", "f:10", "f:12", "f:1", "f:2"]


def test_equal_strings_are_one_object():
    words = Corpus.from_dataset(dataset()).columns["word"]
    assert words[0] is words[5]


def test_replace_column_makes_a_copy():
    corpus = Corpus.from_sentences(SENTENCES, name="f")
    changed = corpus.replace_column("label", list("ABCDEF"))
    assert changed.columns == {"word": FLAT["word"], "label": list("ABCDEF")}
    assert corpus.columns == FLAT
    with pytest.raises(InputError, match=r"f: .*'pos' .*2 .*6"):
        corpus.replace_column("pos", ["X", "Y"])


def test_concat_keeps_documents_apart():
    one = Corpus.from_dataset(dataset((3, 3, 5, 5)), "document", name="one")
    both = Corpus.concat([one, Corpus.from_dataset(dataset(), "document", name="two")])
    assert both.columns["word"] == FLAT["word"] * 2
    assert both.starts.tolist() == [0, 2, 6, 8, 12]
    assert both.sentences.tolist() == [0, 2, 2, 3, 6, 8, 8, 9, 12]
    assert both.documents.tolist() == [3, 5, 6, 7]
    assert both.where(7) == "one + two, sentence 5, token 2"
    assert Corpus.concat([one]).starts.tolist() == one.starts.tolist()
    with pytest.raises(InputError, match=r"two: .*'word'"):
        Corpus.concat([one, Corpus.from_sentences([{"word": ["a"]}], name="two")])


def test_places_without_lines():
    corpus = Corpus.from_sentences(SENTENCES, [0, 0, 1, 1], "document", "hub x")
    found = [corpus.where(i) for i in (1, 2, 5)]
    assert found == [f"hub x, sentence {s}, token {t}" for s, t in ((1, 2), (3, 1), (4, 3))]


def test_only_columns_of_string_lists_are_read():
    features = Features({"id": Value("string"), "word": List(Value("string")), "tag": List(ClassLabel(names=["O"]))})
    corpus = Corpus.from_dataset(Dataset.from_dict({"id": ["1"], "word": [["a"]], "tag": [[0]]}, features=features))
    assert corpus.columns == {"word": ["a"]}


def test_no_sentences():
    corpus = Corpus.from_sentences([], unit="document")
    assert (len(corpus), corpus.tokens, corpus.sentences_of([])) == (0, 0, [])
    empty = Corpus.from_dataset(Corpus.from_columns({"word": []}, [0], []).to_dataset(), "document")
    assert (len(empty), empty.tokens) == (0, 0)


@pytest.mark.parametrize(
    ("sentences", "message"),
    [
        ([{"word": ["a"], "label": ["O"]}, {"word": ["a"]}], "f: sentence 2"),
        ([{"word": ["a"]}, {"word": ["a", "b"], "label": ["O"]}], "f: sentence 2"),
        ([{"word": ["a"], "label": ["O"]}, {"word": ["a", "b"], "label": ["O"]}], "f: sentence 2 has 2"),
        ([{"token": ["a"]}], "f: no column 'word' among ['token']; name it in `columns`"),
    ],
)
def test_uneven_sentences(sentences, message):
    assert error_message(Corpus.from_sentences, sentences, name="f").startswith(message)
    if set(sentences[0]) == set(sentences[-1]):
        with pytest.raises(InputError) as error:
            Corpus.from_dataset(Dataset.from_list(sentences), name="f")
        assert str(error.value).startswith(message)


def test_invalid_documents():
    with pytest.raises(InputError, match=r"f: .*'document'.*unit: sentence"):
        Corpus.from_dataset(dataset().remove_columns("document"), "document", name="f")
    with pytest.raises(InputError, match="not adjacent"):
        Corpus.from_dataset(dataset().select([0, 2, 1]), "document")
    with pytest.raises(InputError, match=r"'doc'.*sentence, document"):
        Corpus.from_dataset(dataset(), "doc")


def test_tokens_without_a_value():
    with pytest.raises(InputError, match=r"f: .*'word'"):
        Corpus.from_dataset(Dataset.from_dict({"word": [["a", None]]}), name="f")


def test_sentences_of_documents_as_sequences():
    sentences = [{"word": ["a", "b"]}, {"word": []}, {"word": ["c"]}, {"word": ["d", "e"]}]
    documents = Corpus.from_sentences(sentences, [4, 4, 4, 7], unit="document")
    assert documents.starts.tolist() == [0, 3, 5]
    found, wanted = documents.by_sentence(), Corpus.from_sentences(sentences, [4, 4, 4, 7])
    assert found.starts.tolist() == found.sentences.tolist() == wanted.starts.tolist() == [0, 2, 2, 3, 5]
    assert found.documents.tolist() == wanted.documents.tolist()
    assert found.columns == documents.columns
    assert len(Corpus.from_sentences([]).by_sentence()) == 0


def drawn_corpora():
    draw = random.Random(0)
    for _ in range(60):
        lengths = [draw.randint(0, 4) for _ in range(draw.randint(1, 12))]
        documents = [draw.randint(0, 5) for _ in lengths]
        documents = sorted(documents) if draw.random() < 0.5 else documents
        yield Corpus.from_sentences([{"word": ["a"] * n} for n in lengths], documents)


@pytest.mark.parametrize("extent", ["sequence", "document", "corpus"])
def test_ends_of_pieces(extent):
    cut = 0
    for corpus in drawn_corpora():
        ids, starts = corpus.documents.tolist(), corpus.starts.tolist()
        apart = {
            "sequence": lambda s: True,
            "document": lambda s, ids=ids: not set(ids[:s]) & set(ids[s:]),
            "corpus": lambda s, ids=ids: s in (0, len(ids)),
        }[extent]
        allowed = [s for s in range(len(corpus) + 1) if apart(s)]
        wanted = {next(s for s in allowed if starts[s] >= at) for at in range(0, max(1, corpus.tokens), 3)}
        assert chunk_bounds(corpus, 3, extent) == [*sorted({0, *wanted} - {len(corpus)}), len(corpus)]
        cut += len(wanted) > 2
    assert (cut > 10) == (extent != "corpus")


def test_pieces_have_about_a_size():
    corpus = Corpus.from_sentences([{"word": ["a"] * 2}] * 50)
    assert np.diff(chunk_bounds(corpus, 10)).tolist() == [5] * 10
    assert chunk_bounds(corpus, 1000) == [0, 50]
    assert chunk_bounds(Corpus.from_sentences([]), 10) == [0, 0]  # one piece, too
