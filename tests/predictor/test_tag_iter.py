"""Sentences that come one after the other: in groups of whole documents, in order, read no further than due."""

from types import SimpleNamespace

import numpy as np
import pytest

from structperc.errors import InputError
from structperc.predictor import Prediction, Predictor
from structperc.predictor.base import GROUP, groups


class Echo(Predictor):
    """Labels each token with its word and how many tokens its sequence has."""

    unit = "sentence"
    probabilistic = False

    def __init__(self, extent="sequence"):
        self.features = SimpleNamespace(extent=extent)
        self.sizes = []

    def predict(self, corpus, confident=False, min_probability=None):
        self.sizes.append(corpus.tokens)
        lengths = np.repeat(np.diff(corpus.starts), np.diff(corpus.starts)).tolist()
        return Prediction([f"{w} {n}" for w, n in zip(corpus.columns["word"], lengths, strict=True)], None, None)


def sentences(count, taken=None):
    for i in range(count):
        if taken is not None:
            taken.append(i)
        yield (f"word{i}-{t}" for t in range(i % 4))


def test_labels_equal_those_of_tag():
    documents = [i // 7 for i in range(4000)]
    assert list(Echo().tag_iter(sentences(4000))) == Echo().tag([list(one) for one in sentences(4000)])
    found = list(Echo().tag_iter(sentences(4000), iter(documents)))
    assert found == Echo().tag([list(one) for one in sentences(4000)], documents)


def test_a_generator_is_tagged():
    assert Echo().tag(["Anna", "sleeps"] for _ in range(2)) == [["Anna 2", "sleeps 2"]] * 2
    assert list(Echo().tag_iter({"word": iter(["Anna"])} for _ in range(2))) == [["Anna 1"]] * 2


def test_lazy_reading():
    taken, echo = [], Echo()
    next(echo.tag_iter(sentences(10**9, taken)))
    assert len(taken) < GROUP
    assert 0 < echo.sizes[0] < GROUP + 4  # a sentence more than needed at most


def test_empty_sentences_without_end_are_labelled():
    found = Echo().tag_iter([] for _ in iter(int, 1))
    assert [next(found) for _ in range(3)] == [[], [], []]


def test_whole_documents():
    given = [["a"] * 3, ["b"] * 3, ["c"], ["d"] * 9, ["e"]]
    found = [ids for _, ids in groups(given, [1, 1, 1, 2, 1], 4)]
    assert found == [[1, 1, 1], [2], [1]]


def test_full_reading_for_corpus_features():
    echo = Echo("corpus")
    assert len(list(echo.tag_iter(sentences(4000)))) == 4000
    assert len(echo.sizes) == 1


@pytest.mark.parametrize("documents", [[0], [0, 0, 0]])
def test_each_sentence_has_a_document(documents):
    with pytest.raises(InputError, match="document"):
        list(Echo().tag_iter([["a"], ["b"]], documents))


def test_labels_before_a_mistake():
    found = Echo().tag_iter([*([["a"]] * (GROUP + 1)), "no list"])
    assert [next(found) for _ in range(GROUP)] == [["a 1"]] * GROUP
    with pytest.raises(InputError, match="'no list'"):
        list(found)
