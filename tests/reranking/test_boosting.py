"""Boosting against loops that compute margins, sums and loss anew in every round."""

import math
import random

import pytest
import torch

from structperc.errors import InputError
from structperc.reranking import Boosting
from structperc.reranking.boosting import best_w0
from tests.rerankers import examples_of

HISTORY = ("chosen", "steps", "losses", "touched")


def drawn(seed, S=12, K=5, F=15, share=0.4, step=0.0):
    """Random lists: per sequence (features of the valid candidates, their first scores, the correct one or None).

    With `step` first scores are multiples of it, so that some are equal.
    """
    chance = random.Random(seed)
    lists = []
    for _ in range(S):
        n = chance.randint(1, K)
        features = [{f for f in range(F) if chance.random() < share} for _ in range(n)]
        first = [chance.gauss(0, 1) for _ in range(n)]
        first = [round(x / step) * step for x in first] if step else first
        lists.append((features, first, chance.choice([None, *range(n), *range(n)])))
    return lists


class Naive:
    """Boosting as it is defined."""

    def __init__(self, lists, F, smoothing, w0):
        self.pairs = [
            (first[c] - first[j], features[c] - features[j], features[j] - features[c])
            for features, first, c in lists
            if c is not None
            for j in range(len(features))
            if j != c
        ]
        self.smoothing, self.w0, self.weights = smoothing, w0, [0.0] * F

    def shares(self):
        return [
            math.exp(-(self.w0 * d + sum(self.weights[k] for k in a) - sum(self.weights[k] for k in b)))
            for d, a, b in self.pairs
        ]

    def round(self):
        """-> feature, step, loss, pairs with it; None where nothing can be gained."""
        shares, F = self.shares(), len(self.weights)
        plus = [sum(x for x, (_, a, _) in zip(shares, self.pairs, strict=True) if k in a) for k in range(F)]
        minus = [sum(x for x, (_, _, b) in zip(shares, self.pairs, strict=True) if k in b) for k in range(F)]
        gains = [abs(math.sqrt(p) - math.sqrt(m)) for p, m in zip(plus, minus, strict=True)]
        Z, most = sum(shares), max(gains)
        if most**2 <= 1e-12 * Z:
            return None
        k = min(f for f in range(F) if gains[f] >= most * (1 - 1e-12))
        step = math.log((plus[k] + self.smoothing * Z) / (minus[k] + self.smoothing * Z)) / 2
        self.weights[k] += step
        return k, step, sum(self.shares()), sum(k in a or k in b for _, a, b in self.pairs)


def assert_same_history(ranker, naive, rounds):
    for r in range(rounds):
        wanted = naive.round()
        if wanted is None:
            assert len(ranker.chosen) == r
            return
        found = [getattr(ranker, name)[r].item() for name in HISTORY]
        assert (found[0], found[3]) == (wanted[0], wanted[3])
        assert found[1:3] == pytest.approx(wanted[1:3], rel=1e-9, abs=1e-9)
    assert ranker.weights.tolist() == pytest.approx(naive.weights, rel=1e-9, abs=1e-9)
    assert len(ranker.chosen) == rounds


CASES = {
    "plain": ({}, {}),
    "given w0": ({}, {"w0": 0.7}),
    "without first scores": ({}, {"w0": 0.0, "smoothing": 0.1}),
    "few features": ({"F": 3, "S": 30}, {}),
    "more features than pairs": ({"F": 60, "S": 4, "share": 0.1}, {"smoothing": 1e-4}),
    "two candidates": ({"K": 2, "S": 25}, {}),
    "equal first scores": ({"step": 1.0}, {}),
}


@pytest.mark.parametrize(("shape", "options"), CASES.values(), ids=CASES)
def test_rounds_by_definition(shape, options):
    shape = {"K": 5, "F": 15, **shape}
    lists = drawn(0, **shape)
    ranker = Boosting(rounds=20, **options)
    ranker.start(examples_of(lists, shape["F"], shape["K"]))
    naive = Naive(lists, shape["F"], ranker.smoothing, ranker.first_weight)
    assert ranker.objective == pytest.approx(sum(naive.shares()), rel=1e-12)
    for _ in range(5):
        ranker.epoch()
    assert_same_history(ranker, naive, 100)


def test_a_weight_counts_a_list_several_times():
    lists, weights = drawn(3, S=8), [2, 1, 3, 0, 1, 2, 2, 1]
    repeated = [one for one, n in zip(lists, weights, strict=True) for _ in range(n)]
    ranker, naive = Boosting(rounds=20), None
    ranker.start(examples_of(lists, 15, 5)._replace(weights=torch.tensor(weights).double()))
    naive = Naive(repeated, 15, ranker.smoothing, ranker.first_weight)
    again = Boosting(rounds=1)
    again.start(examples_of(repeated, 15, 5))
    assert ranker.first_weight == pytest.approx(again.first_weight, rel=1e-9)
    ranker.epoch()
    for r, (chosen, step, loss) in enumerate(zip(ranker.chosen, ranker.steps, ranker.losses, strict=True)):
        assert naive.round()[:3] == (
            chosen,
            pytest.approx(step.item(), rel=1e-9),
            pytest.approx(loss.item(), rel=1e-9),
        ), r


def test_by_hand():
    """One pair that differs by feature 1: W+ = Z = 1."""
    ranker = Boosting(rounds=1, smoothing=0.25, w0=0.0)
    ranker.start(examples_of([([{0}, {0, 1}], [0.0, 0.0], 1)], 2, 2))
    ranker.epoch()
    assert ranker.chosen.tolist() == [1]
    assert ranker.touched.tolist() == [1]
    assert ranker.steps.tolist() == pytest.approx([math.log(5) / 2])
    assert ranker.losses.tolist() == pytest.approx([math.sqrt(0.2)])
    assert ranker.weights.tolist() == [0, ranker.steps[0]]


def test_of_equal_gains_the_lowest_feature_wins():
    """Features F, F + 1, ... say the same as 0, 1, ...; the last third has them where these have not."""
    F, lists = 8, drawn(0, S=20, F=8, step=0.5)
    copied = [
        ([own | {f + F for f in own} | {f + 2 * F for f in range(F) if f not in own} for own in features], *rest)
        for features, *rest in lists
    ]
    alone, among = Boosting(), Boosting()
    for ranker, given, n in ((alone, lists, F), (among, copied, 3 * F)):
        ranker.start(examples_of(given, n, 5))
        ranker.epoch()
    assert len(alone.chosen) == 100
    for name in HISTORY:
        assert torch.equal(getattr(alone, name), getattr(among, name))


def test_nothing_more_to_gain():
    """Feature 0 is right as often as wrong; the weight of the first score is all there is."""
    lists = [([{0}, set()], [1.0, 0.0], 0), ([{0}, set()], [1.0, 0.0], 1), ([set(), set()], [1.0, 0.0], 0)]
    ranker = Boosting(w0=0.0)
    ranker.start(examples_of(lists, 1, 2))
    assert ranker.stop_reason is None
    ranker.epoch()
    assert "no feature lowers the loss" in ranker.stop_reason
    assert [len(getattr(ranker, name)) for name in HISTORY] == [0] * 4
    assert ranker.objective == 3
    ranker.epoch()
    assert (ranker.stop_reason is not None, ranker.weights.tolist()) == (True, [0.0])


def test_vanishing_loss():
    """Feature 0 is always right: its weight grows until the loss cannot be told from 0."""
    ranker = Boosting(rounds=300)
    ranker.start(examples_of([([{0}, set()], [0.0, 0.0], 0)] * 3, 1, 2))
    ranker.epoch()
    assert 100 < len(ranker.losses) < 300
    assert 0 < ranker.objective < 1e-290
    assert (ranker.losses.diff() < 0).all()
    assert ranker.stop_reason


@pytest.mark.parametrize(("seed", "scale"), [(0, 1e-3), (1, 1.0), (2, 1e4)])
def test_w0_is_the_best_of_a_fine_grid(seed, scale):
    differences = torch.randn(40, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) + 0.5
    w0 = best_w0(scale * differences.numpy(), torch.ones(len(differences)).numpy()) * scale
    grid = torch.arange(0, 5, 1e-4, dtype=torch.float64)
    losses = torch.exp(-grid[:, None] * differences).sum(1)
    best = int(losses.argmin())
    assert 0 < best < len(grid) - 1
    assert w0 == pytest.approx(float(grid[best]), abs=1e-4)
    assert float(torch.exp(-w0 * differences).sum()) <= float(losses[best])


@pytest.mark.parametrize("differences", [[-1.0, -2.0], [-1.0, 0.5], [1.0, -1.0], [0.0], []], ids=str)
def test_w0_is_zero_where_more_does_not_help(differences):
    assert best_w0(torch.tensor(differences).numpy(), torch.ones(len(differences)).numpy()) == 0


def test_w0_without_bound():
    lists = [([{0}, {1}], [2.0, 1.0], 0), ([{0}, {1}], [1.0, 1.0], 0)]
    with pytest.raises(InputError, match="set w0"):
        Boosting().start(examples_of(lists, 2, 2))
    ranker = Boosting(w0=1.5)
    ranker.start(examples_of(lists, 2, 2))
    assert ranker.first_weight == 1.5


def test_w0_with_overflow():
    lists = [([{0}, {1}], [-300.0, 0.0], 0)]
    with pytest.raises(InputError, match="w0 = 10"):
        Boosting(w0=10).start(examples_of(lists, 2, 2))


def test_totals_of_new_lists():
    ranker = Boosting(rounds=30)
    ranker.start(examples_of(drawn(2), 15, 5))
    ranker.epoch()
    loaded = Boosting()
    loaded.load_state_dict(ranker.state_dict())  # totals need no start
    lists = drawn(7, S=4, K=3)
    examples = examples_of(lists, 15, 3)
    labellings = torch.arange(12).repeat_interleave(examples.features.offsets.diff())
    twice = (
        torch.cat([labellings, labellings.flip(0)]),
        torch.cat([examples.features.ids, examples.features.ids.flip(0)]),
    )
    total_scores = loaded.total_scores(*twice, examples.first.float(), examples.valid)
    assert total_scores.dtype == torch.float64
    weights, w0 = ranker.weights.tolist(), ranker.first_weight
    for s, (features, first, _) in enumerate(lists):
        wanted = [w0 * x + sum(weights[f] for f in own) for own, x in zip(features, first, strict=True)]
        assert total_scores[s].tolist() == pytest.approx([*wanted, *[-math.inf] * (3 - len(wanted))], rel=1e-6)
