"""Probabilities of predicted labels and segments against the sum over all labellings."""

from itertools import pairwise

import pytest
import torch

from structperc.chain import Segments, constrain, viterbi
from structperc.data.labels import LabelSet
from structperc.data.tag_schemes import spans
from structperc.metrics import segment_confidence, token_confidence
from structperc.metrics.accuracy import sentence_boundaries
from structperc.metrics.segments import opened_segments
from structperc.structures import Lattice
from tests.oracle import probabilities

SETS = {
    "IOB2": LabelSet(("O", "B-P", "I-P", "B-L", "I-L")),
    "IOBES": LabelSet(("O", "B-P", "I-P", "E-P", "S-P"), "IOBES"),
    "IOB1": LabelSet(("O", "B-P", "I-P", "I-L"), "IOB1"),
}
LENGTHS = torch.tensor([5, 4, 1, 0, 3])
SENTENCES = torch.tensor([[0, 0, 0, 1, 1], [0, 1, 1, 1, 9], [0] * 5, [0] * 5, [0] * 5])


def constrained(labels, seed, scale):
    """A lattice as a tagger of documents makes it."""
    torch.manual_seed(seed)
    L = len(labels)
    lattice = Lattice(
        scale * torch.randn(5, 5, L, dtype=torch.float64), torch.randn(5, 5, L, L, dtype=torch.float64), LENGTHS
    )
    boundaries = sentence_boundaries(LENGTHS, 5, SENTENCES)
    return constrain(
        lattice, labels.start, labels.transition, labels.end, boundaries.first, boundaries.last
    ), boundaries


def by_sentence(labels, path, firsts):
    """{(type, start, end)} of a whole sequence, no segment across the first token of a sentence."""
    names = labels.decode(path)
    cuts = [t for t in range(len(names)) if firsts[t]] + [len(names)]
    return {(kind, a + s, a + e) for a, b in pairwise(cuts) for kind, s, e in spans(names[a:b])}


CASES = [(scheme, seed, scale) for scheme in SETS for seed, scale in ((0, 1.0), (1, 1.0), (2, 0.0), (3, 6.0))]


@pytest.mark.parametrize(("scheme", "seed", "scale"), CASES)
def test_every_probability_by_enumeration(scheme, seed, scale):
    labels = SETS[scheme]
    lattice, boundaries = constrained(labels, seed, scale)
    path = viterbi(lattice)[1]
    tokens = token_confidence(lattice, path)
    opened = opened_segments(path, boundaries, labels)
    rows, starts = (opened.kind >= 0).nonzero(as_tuple=True)
    ends = opened.end[rows, starts] + 1
    found = segment_confidence(lattice, path, Segments(rows, starts, ends), boundaries, labels)
    assert len(found) == sum(
        len(by_sentence(labels, path[b, :n], boundaries.first[b])) for b, n in enumerate(LENGTHS.tolist())
    )
    whole = {b: probabilities(lattice, b) for b in range(5)}
    for b, t in boundaries.real.nonzero().tolist():
        expected = sum(p for p, y in whole[b] if y[t] == path[b, t])
        assert float(tokens[b, t]) == pytest.approx(expected, abs=1e-9)
    for p, b, s, e in zip(found.tolist(), rows.tolist(), starts.tolist(), ends.tolist(), strict=True):
        kind = labels.type_names[opened.kind[b, s]]
        expected = sum(q for q, y in whole[b] if (kind, s, e) in by_sentence(labels, y, boundaries.first[b]))
        same = sum(
            q
            for q, y in whole[b]
            if (kind, s, e) in by_sentence(labels, y, boundaries.first[b]) and list(y[s:e]) == path[b, s:e].tolist()
        )
        assert p == pytest.approx(same, abs=1e-9)
        if scheme != "IOB1":  # there a segment may be written in two ways
            assert p == pytest.approx(expected, abs=1e-9)
        else:
            assert p <= expected + 1e-9


def test_a_longer_segment_is_not_the_same():
    """B-P on the first token is certain, where its segment ends is not."""
    labels = SETS["IOB2"]
    unary = torch.full((1, 2, 5), -torch.inf)
    unary[0, 0, labels.index("B-P")] = 0
    unary[0, 1, [labels.index("O"), labels.index("I-P")]] = torch.tensor([1.0, 0.0])
    lattice = Lattice(unary, torch.zeros(1, 1, 5, 5), torch.tensor([2]))
    path = torch.tensor([[labels.index("B-P"), labels.index("O")]])
    boundaries = sentence_boundaries(torch.tensor([2]), 2)
    one = Segments(torch.tensor([0]), torch.tensor([0]), torch.tensor([1]))
    assert token_confidence(lattice, path)[0].tolist() == pytest.approx([1.0, torch.tensor(1.0).sigmoid().item()])
    assert float(segment_confidence(lattice, path, one, boundaries, labels)) == pytest.approx(
        torch.tensor(1.0).sigmoid().item()
    )


def test_without_segments():
    labels = SETS["IOB2"]
    lattice, boundaries = constrained(labels, 0, 1.0)
    none = torch.zeros(0, dtype=torch.int64)
    path = torch.zeros(5, 5, dtype=torch.int64)
    assert segment_confidence(lattice, path, Segments(none, none, none), boundaries, labels).shape == (0,)
