"""Confidence against an enumeration, and its calibration."""

from itertools import pairwise

import pytest
import torch

from structperc.chain import Segments, constrain, viterbi
from structperc.chain.confidence import segment_confidence, token_confidence
from structperc.data.labels import LabelSet
from structperc.data.tag_schemes import spans
from structperc.errors import InputError
from structperc.metrics import Calibration, bin_sums
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


def naive(confidence, right, bins):
    """[(n, right, sum of confidences)] by looking for the bin low < c <= high of each; sum of squares."""
    rows = [[0, 0, 0.0] for _ in range(bins)]
    for c, r in zip(confidence, right, strict=True):
        (place,) = [m for m in range(bins) if m / bins < c <= (m + 1) / bins] or [0]
        rows[place] = [rows[place][0] + 1, rows[place][1] + r, rows[place][2] + c]
    return rows, sum((c - r) ** 2 for c, r in zip(confidence, right, strict=True))


@pytest.mark.parametrize("bins", [1, 3, 10, 16])
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


def test_boundaries_belong_to_the_lower_bin():
    confidence = torch.tensor([0.0, 0.25, 0.26, 0.5, 1.0], dtype=torch.float64)
    counts, _ = bin_sums(confidence, torch.tensor([True, True, False, True, False]), 4)
    assert counts.tolist() == [[2, 2, 0, 1], [2, 1, 0, 0]]


def test_always_right_and_sure_is_perfect():
    metric = Calibration()
    metric.update(torch.ones(3), torch.ones(3, dtype=torch.bool))
    assert (metric.compute().ece, metric.compute().brier) == (0.0, 0.0)


def test_sure_and_always_wrong_is_the_worst():
    metric = Calibration()
    metric.update(torch.ones(3), torch.zeros(3, dtype=torch.bool))
    assert (metric.compute().ece, metric.compute().brier) == (1.0, 1.0)


def test_nothing_is_zero():
    result = Calibration().compute()
    assert (result.ece, result.brier, result.all) == (0.0, 0.0, (0.0, 1.0, 0, 0, 0.0))


@pytest.mark.parametrize("bins", [0, -3, 10**15])
def test_invalid_bins(bins):
    with pytest.raises(InputError, match=f"bins .*1 .*10000.* {bins}"):
        Calibration(bins)
