import pytest
import torch

from structperc.errors import InputError
from structperc.metrics import Calibration, bin_sums


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
def test_bins_that_cannot_be(bins):
    with pytest.raises(InputError, match=f"bins must lie between 1 and 10000, got {bins}"):
        Calibration(bins)
