import pytest
import torch

from structperc.errors import InputError
from structperc.metrics import abstention_curve


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
