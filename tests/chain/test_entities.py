"""Probabilities of segments and of label sequences, against an enumeration of all label sequences."""

from collections import Counter
from itertools import pairwise

import pytest
import torch

from structperc.chain import Constraints, viterbi
from structperc.chain.confidence import entities
from structperc.data import LabelSet, spans
from structperc.data.tag_schemes import Span
from structperc.errors import InputError
from structperc.predictor.base import check_min_probability
from structperc.structures import Lattice, SentenceBoundaries, real_tokens
from tests import oracle

LABELS = {
    "IOB1": LabelSet(("O", "B-LOC", "I-LOC", "I-PER", "B-PER"), "IOB1"),
    "IOB2": LabelSet(("O", "B-LOC", "I-LOC", "B-PER", "I-PER"), "IOB2"),
    "IOBES": LabelSet(("O", "B-PER", "I-PER", "E-PER", "S-PER"), "IOBES"),
}
LENGTHS = torch.tensor([4, 3, 1])
FIRST = torch.tensor([[1, 0, 1, 0], [1, 0, 0, 0], [1, 0, 0, 0]]).bool()  # the first sequence has two sentences
LAST = torch.tensor([[0, 1, 0, 1], [0, 0, 1, 0], [1, 0, 0, 0]]).bool()


def legal_lattice(labels: LabelSet) -> Lattice:
    draw = torch.Generator().manual_seed(3)
    unary, edge = (torch.randn(3, 4, *size, generator=draw, dtype=torch.float64) for size in ((5,), (5, 5)))
    constraints = Constraints()
    constraints.allocate(labels)
    return constraints(Lattice(unary, edge, LENGTHS), FIRST, LAST)


def spans_of(labels: LabelSet, path: tuple[int, ...], row: int) -> list[Span]:
    starts = [*FIRST[row].nonzero()[:, 0].tolist(), len(path)]
    return [
        Span(kind, a + start, a + end)
        for a, b in pairwise(starts)
        for kind, start, end in spans(labels.decode(path[a:b]))
    ]


@pytest.mark.parametrize("scheme", LABELS)
def test_all_segments_by_enumeration(scheme):
    """Those of the best labels (by one algorithm) and all others (by another one)."""
    labels = LABELS[scheme]
    lattice = legal_lattice(labels)
    best = viterbi(lattice)[1]
    found = entities(lattice, best, SentenceBoundaries(real_tokens(LENGTHS, 4), FIRST, LAST), labels, 0.0)
    for row, (own, probability) in enumerate(found):
        every, expected = oracle.probabilities(lattice, row), Counter()
        for p, path in every:
            expected.update(dict.fromkeys(spans_of(labels, path, row), p))
        assert {Span(*span[:3]): span.probability for span in own} == pytest.approx(dict(expected))
        assert {span[:3] for span in own if span.best} == set(spans_of(labels, every[0][1], row))
        assert probability == pytest.approx(every[0][0])
        assert own == sorted(own, key=lambda span: (span.start, span.end, -span.probability))


def test_minimum_out_of_range():
    labels = LABELS["IOB2"]
    lattice = legal_lattice(labels)
    for wrong in ("a", None, torch.tensor([0.1])):
        with pytest.raises(InputError, match="min_probability"):
            check_min_probability(wrong, LabelSet(("O", "B-PER")))
    with pytest.raises(InputError, match="min_probability"):
        entities(lattice, viterbi(lattice)[1], SentenceBoundaries(real_tokens(LENGTHS, 4), FIRST, LAST), labels, 1.0)
