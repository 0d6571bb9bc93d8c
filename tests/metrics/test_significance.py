import itertools
import math

import numpy as np
import pytest
import torch
from scipy.stats import ttest_1samp

from structperc.metrics import bootstrap_intervals, mcnemar, paired_bootstrap
from structperc.metrics.significance import McNemar, holm, paired_t_test, score_interval


def answers(both, only_a, only_b, neither):
    a = torch.tensor([True] * (both + only_a) + [False] * (only_b + neither), dtype=torch.bool)
    b = torch.tensor([True] * both + [False] * only_a + [True] * only_b + [False] * neither, dtype=torch.bool)
    return a, b


def naive_p(only_a, only_b):
    """By every way the discordant items could have fallen."""
    n = only_a + only_b
    gap = abs(only_a - only_b)
    outcomes = list(itertools.product((0, 1), repeat=n))
    return sum(abs(2 * sum(outcome) - n) >= gap for outcome in outcomes) / len(outcomes)


@pytest.mark.parametrize(("only_a", "only_b"), [(0, 1), (0, 5), (3, 1), (4, 4), (5, 2)])
def test_p_against_enumeration(only_a, only_b):
    result = mcnemar(*answers(3, only_a, only_b, 2))
    assert result[:4] == (3, only_a, only_b, 2)
    assert result.p == pytest.approx(naive_p(only_a, only_b), rel=1e-12)


def test_many_items_by_exact_sums():
    n, few = 400, 170  # 2 * P(X <= 170), X binomial(400, 1/2)
    tail = sum(math.comb(n, i) for i in range(few + 1))
    assert mcnemar(*answers(10_000, n - few, few, 50)).p == pytest.approx(2 * tail / 2**n, rel=1e-9)


def test_order_of_items_and_of_systems():
    a, b = answers(5, 7, 2, 4)
    shuffled = torch.randperm(len(a), generator=torch.Generator().manual_seed(0))
    assert mcnemar(a[shuffled], b[shuffled]) == mcnemar(a, b)
    assert mcnemar(b, a) == McNemar(5, 2, 7, 4, mcnemar(a, b).p)


def test_equal_systems():
    assert mcnemar(*answers(4, 0, 0, 1)).p == 1.0
    empty = mcnemar(*answers(0, 0, 0, 0))
    assert (empty.p, empty.accuracy_a, empty.accuracy_b) == (1.0, 0.0, 0.0)


@pytest.mark.parametrize("differences", [[0.1, 0.4], [0.2, -0.1, 0.3], [0.01, 0.02, -0.05, 0.0, 0.03]])
def test_t_test_equals_scipy(differences):
    assert paired_t_test(differences) == pytest.approx(ttest_1samp(differences, 0).pvalue, rel=1e-9)
    assert paired_t_test([-d for d in differences]) == pytest.approx(paired_t_test(differences))


@pytest.mark.parametrize("differences", [[], [0.3], [0.0, 0.0, 0.0], [0.25, 0.25]])
def test_no_test_of_equal_runs(differences):
    assert paired_t_test(differences) is None


def naive_differences(a, b):
    """Of all ways to draw as many documents as there are, each as likely as the others."""
    S, D = a.shape[:2]

    def score(counts, drawn):
        sums = [[sum(counts[s, d, i] for d in drawn) for i in range(3)] for s in range(S)]
        return sum(2 * r / max(p + g, 1) for r, p, g in sums) / S

    return np.array([score(b, drawn) - score(a, drawn) for drawn in itertools.product(range(D), repeat=D)])


def test_the_bootstrap_against_all_samples():
    draw = np.random.default_rng(3)
    counts = draw.integers(0, 5, (2, 2, 4, 3))  # two systems, two trainings, four documents
    counts[..., 1:] += counts[..., :1]
    a, b = counts
    result, wanted = paired_bootstrap(a, b, samples=40_000), naive_differences(a, b)
    assert result.difference == pytest.approx(whole(b) - whole(a))
    p = 2 * min((wanted <= 0).mean(), (wanted >= 0).mean())
    assert result.p == pytest.approx(min(1, p), abs=0.015)
    assert (wanted < result.low - 1e-9).mean() <= 0.025 + 0.005
    assert (wanted > result.high + 1e-9).mean() <= 0.025 + 0.005
    other = paired_bootstrap(b, a, samples=40_000)
    assert (other.difference, other.p) == (pytest.approx(-result.difference), pytest.approx(result.p))
    assert paired_bootstrap(a, b, samples=40_000) == result  # the draws come from a seed


def whole(counts):
    sums = counts.sum(1)
    return (2 * sums[:, 0] / (sums[:, 1] + sums[:, 2])).mean()


def test_bootstrap_of_extreme_systems():
    right = np.array([[[2, 2, 2], [3, 3, 3], [1, 1, 1]]])
    wrong = right * [0, 1, 1]
    assert paired_bootstrap(right, right) == (0, 0, 0, 1)
    assert paired_bootstrap(wrong, right, samples=999) == (1, 1, 1, pytest.approx(2 / 1000))
    nothing = np.zeros((1, 3, 3), int)
    assert paired_bootstrap(nothing, nothing).p == 1


def test_holm_against_its_definition():
    p = [0.01, 0.2, 0.004, 0.03, 0.03]
    steps = [(len(p) - rank) * value for rank, value in enumerate(sorted(p))]
    expected = {value: max(steps[: rank + 1]) for rank, value in enumerate(sorted(p))}
    assert holm(p) == pytest.approx([expected[value] for value in p])
    assert holm([0.9, 0.8]) == [1, 1]
    assert holm([]) == []


def test_interval_of_one_training_is_that_of_f1():
    counts = np.array([[3, 4, 4], [2, 2, 3], [0, 1, 1], [5, 6, 5]])
    assert score_interval(counts[None]) == pytest.approx(bootstrap_intervals(counts).f1)
