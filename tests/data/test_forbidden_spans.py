"""Searches and sums over states: all label sequences without the forbidden spans, each exactly once."""

import random
from itertools import pairwise, product

import numpy as np
import pytest

from structperc import Corpus, LabelSet
from structperc.data import Span, spans
from structperc.data.forbidden_spans import segment_states
from structperc.errors import InputError
from structperc.predictor.limits import CorpusLimits, with_limits

SETS = {
    scheme: LabelSet.from_corpus(["B-P", "B-L"] if scheme != "IOB1" else ["I-P", "I-L"], scheme)
    for scheme in ("IOB1", "IOB2", "IOBES")
}


def segments(names, first):
    """The segments of a label sequence of sentences that begin at `first`."""
    bounds = [*np.flatnonzero(first).tolist(), len(names)]
    return {Span(kind, i + a, j + a) for a, b in pairwise(bounds) for kind, i, j in spans(names[a:b])}


def state_paths(states, labels):
    """The number of sequences of states with these labels."""
    counts = (states.labels == labels[0]) * states.possible[0].astype(int)
    for t, label in enumerate(labels[1:], 1):
        counts = counts @ states.follows[t] * (states.labels == label)
    return int(counts @ states.possible[-1])


@pytest.mark.parametrize("scheme", SETS)
def test_each_sequence_without_the_spans_has_one_sequence_of_states(scheme):
    labels, draw, T = SETS[scheme], random.Random(1), 3
    for _ in range(6):
        first = np.array([True, *(draw.random() < 0.2 for _ in range(T - 1))])
        forbidden = {Span(draw.choice("PL"), a := draw.randrange(T), draw.randint(a + 1, T)) for _ in range(3)}
        states = segment_states(forbidden, first, labels, slots=3)
        for path in product(range(len(labels)), repeat=T):
            left = not segments([labels.names[number] for number in path], first) & forbidden
            assert state_paths(states, np.array(path)) == left


def test_nested_spans_share_slots_where_they_do_not_overlap():
    corpus = Corpus.from_sentences([{"word": list("abcd")}])
    forbidden = [[("P", 0, 2), ("P", 1, 3), ("P", 3, 4), ("L", 0, 4)]]
    found = CorpusLimits.read(with_limits(corpus, None, forbidden), SETS["IOB2"])
    assert found.slots == 2
    assert found.n_states == 5 + 2 * 4


def test_errors_name_the_token():
    corpus, labels = Corpus.from_sentences([{"word": ["He"]}, {"word": ["saw", "Anna"]}]), SETS["IOB2"]
    limited = with_limits(corpus, [None, [None, ["B-P"]]], [None, [("P", 1, 2)]])
    with pytest.raises(InputError, match=r"sentence 2, token 2.*'Anna'"):
        CorpusLimits.read(limited, labels)
    with pytest.raises(InputError, match=r"sentence 2, token 1.*'X'"):
        CorpusLimits.read(with_limits(corpus, None, [None, [("X", 0, 1)]]), labels)
    with pytest.raises(InputError, match="scheme"):
        CorpusLimits.read(with_limits(corpus, None, [None, [("P", 0, 1)]]), LabelSet(("P",), "none"))
    for forbidden in ([None], [None, [("P", 1, 3)]], [[("P", 0, 0)], None]):
        with pytest.raises(InputError, match="forbidden"):
            with_limits(corpus, None, forbidden)
