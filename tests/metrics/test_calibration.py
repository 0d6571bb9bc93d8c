"""Confidence against an enumeration, its calibration, and F1 of the most confident answers."""

from itertools import pairwise

import pytest
import torch

from structperc.chain import viterbi
from structperc.chain.confidence import segment_confidence, token_confidence
from structperc.chain.restrictions import constrain
from structperc.chain.segments import Segments
from structperc.data.labels import LabelSet
from structperc.data.tag_schemes import spans
from structperc.errors import InputError
from structperc.metrics import Calibration
from structperc.metrics.abstention_curve import abstention_curve
from structperc.metrics.counts import opened_segments, sentence_boundaries
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


CASES = [("IOB2", 0, 1.0), ("IOB2", 2, 0.0), ("IOBES", 1, 1.0), ("IOBES", 3, 6.0), ("IOB1", 1, 1.0)]


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
        assert p == pytest.approx(expected, abs=1e-9)


def test_without_segments():
    labels = SETS["IOB2"]
    lattice, boundaries = constrained(labels, 0, 1.0)
    none = torch.zeros(0, dtype=torch.int64)
    path = torch.zeros(5, 5, dtype=torch.int64)
    assert segment_confidence(lattice, path, Segments(none, none, none), boundaries, labels).shape == (0,)


def naive(confidence, right, bins):
    """[(n, right, sum of confidences)] by looking for the bin low < c <= high of each; sum of squares."""
    rows = [[0, 0, 0.0] for _ in range(bins)]
    for c, r in zip(confidence, right, strict=True):
        (place,) = [m for m in range(bins) if m / bins < c <= (m + 1) / bins] or [0]
        rows[place] = [rows[place][0] + 1, rows[place][1] + r, rows[place][2] + c]
    return rows, sum((c - r) ** 2 for c, r in zip(confidence, right, strict=True))


@pytest.mark.parametrize("bins", [1, 10])
def test_bins_and_errors_by_plain_arithmetic(bins):
    generator = torch.Generator().manual_seed(bins)
    confidence = torch.rand(500, generator=generator, dtype=torch.float64)
    right = torch.rand(500, generator=generator) < 0.7
    metric = Calibration(bins)
    for part in (slice(0, 100), slice(100, 100), slice(100, 500)):
        metric.update(confidence[part], right[part])
    result = metric.compute()
    rows, squares = naive(confidence.tolist(), right.tolist(), bins)
    assert [list(one[2:]) for one in result.bins] == [[n, r, pytest.approx(c)] for n, r, c in rows]
    assert result.ece == pytest.approx(sum(n / 500 * abs(r / n - c / n) for n, r, c in rows if n))
    assert result.brier == pytest.approx(squares / 500)
    assert result.all.accuracy == int(right.sum()) / 500
    assert result.all.confidence == pytest.approx(float(confidence.mean()))


def test_nothing_is_zero():
    result = Calibration().compute()
    assert (result.ece, result.brier, result.all) == (0.0, 0.0, (0.0, 1.0, 0, 0, 0.0))


@pytest.mark.parametrize("bins", [0, -3, 10**15])
def test_invalid_bins(bins):
    with pytest.raises(InputError, match=f"bins .*1 .*10000.* {bins}"):
        Calibration(bins)


def test_points_against_a_loop():
    torch.manual_seed(0)
    probabilities, correct = (torch.rand(37) * 10).round() / 10, torch.rand(37) < 0.6  # with ties
    curve = abstention_curve(probabilities, correct, gold=50, points=10)
    assert curve[0].share == 1
    for point in curve:
        kept = probabilities >= point.probability
        assert (point.n, point.correct) == (int(kept.sum()), int(correct[kept].sum()))
        assert point.f1 == pytest.approx(2 * point.correct / (50 + point.n))
    assert [one.n for one in curve] == sorted({one.n for one in curve}, reverse=True)


def test_nothing_and_wrong_input():
    assert abstention_curve(torch.zeros(0), torch.zeros(0, dtype=torch.bool), gold=3) == []
    with pytest.raises(InputError, match="bool"):
        abstention_curve(torch.zeros(2), torch.zeros(2), gold=3)
