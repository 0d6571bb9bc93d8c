from fractions import Fraction

import pytest

from structperc.errors import InputError
from structperc.metrics import f_measure
from structperc.metrics.segments import SegmentScore, SegmentScores

COUNTS = [(c, f, g) for f in range(4) for g in range(4) for c in range(min(f, g) + 1)]


@pytest.mark.parametrize("beta", [0.25, 0.5, 1.0, 2.0, 10.0])
@pytest.mark.parametrize(("correct", "found", "gold"), COUNTS)
def test_equation_13_in_fractions(correct, found, gold, beta):
    tp, fn, fp, square = correct, gold - correct, found - correct, Fraction(beta) ** 2
    denominator = square * fn + fp + (square + 1) * tp
    expected = (square + 1) * tp / denominator if denominator else 0
    assert f_measure(correct=correct, found=found, gold=gold, beta=beta) == pytest.approx(float(expected), abs=1e-15)


@pytest.mark.parametrize("beta", [0.5, 1.0, 3.0])
def test_weighted_harmonic_mean_of_precision_and_recall(beta):
    score = SegmentScore(6, 8, 15)
    p, r = score.precision, score.recall
    assert score.f(beta) == pytest.approx((beta**2 + 1) * p * r / (beta**2 * p + r))


def test_gamma_one_is_f1():
    for counts in COUNTS:
        assert f_measure(**SegmentScore(*counts)._asdict()) == SegmentScore(*counts).f1


def test_extreme_gammas_are_precision_and_recall():
    score = SegmentScore(6, 8, 15)
    assert score.f(1e-6) == pytest.approx(score.precision)
    assert score.f(1e6) == pytest.approx(score.recall)


def test_sums_over_types_come_before_the_division():
    scores = SegmentScores({"A": SegmentScore(1, 2, 3), "B": SegmentScore(2, 2, 4)}, 0, 20, 15)
    assert scores.f(2.0) == f_measure(correct=3, found=4, gold=7, beta=2.0)


def test_table_names_gamma():
    scores = SegmentScores({"A": SegmentScore(1, 2, 3)}, 0, 20, 15)
    assert "FB1:  40.00" in scores.table()
    assert scores.table(2.0).count(f"FB2: {100 * f_measure(correct=1, found=2, gold=3, beta=2.0):6.2f}") == 2


@pytest.mark.parametrize("beta", [0, -0.5, float("nan"), float("inf")])
def test_gamma_out_of_range(beta):
    with pytest.raises(InputError, match="beta must be > 0"):
        f_measure(correct=1, found=1, gold=1, beta=beta)
