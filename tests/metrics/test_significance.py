import itertools
import math

import pytest
import torch

from structperc.metrics import McNemar, mcnemar


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


@pytest.mark.parametrize(("only_a", "only_b"), [(a, b) for a in range(6) for b in range(6)])
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


def test_nothing_to_tell_apart():
    assert mcnemar(*answers(4, 0, 0, 1)).p == 1.0
    empty = mcnemar(*answers(0, 0, 0, 0))
    assert (empty.p, empty.accuracy_a, empty.accuracy_b) == (1.0, 0.0, 0.0)


def test_accuracies():
    result = mcnemar(*answers(5, 3, 1, 1))
    assert (result.accuracy_a, result.accuracy_b) == (0.8, 0.6)
