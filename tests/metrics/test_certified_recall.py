"""Tests of recall against all samples of few documents, and against the truth in simulated ones."""

from itertools import product

import numpy as np
import pytest
from scipy.stats import ttest_1samp

from structperc.errors import InputError
from structperc.metrics import recall_p_value
from structperc.metrics.certified_recall import fixed_sequence, highest_certified_recall


def counts_of(correct, gold) -> np.ndarray:
    return np.stack([correct, gold, gold], 1)


def exact_p(z: list[float], next_documents: int | None) -> float:
    """The share of all samples, drawn with replacement, with a statistic at least as large."""
    D, mean = len(z), np.mean(z)
    t = mean / (np.std(z) / D**0.5)
    centers = [mean] if next_documents is None else [np.mean(one) for one in product(z, repeat=next_documents)]
    larger = [
        np.mean(one) - center >= t * np.std(one) / D**0.5 - 1e-12 for one in product(z, repeat=D) for center in centers
    ]
    return float(np.mean(larger))


@pytest.mark.parametrize("next_documents", [None, 2])
def test_p_against_all_samples(next_documents):
    correct, gold = np.array([9, 8, 3]), np.array([9, 9, 5])
    z = [*(correct - 0.8 * gold), 3 - 0.8 * 5]  # the worst document twice
    expected = max(exact_p(z, next_documents), 0.8**3)
    p = recall_p_value(counts_of(correct, gold), 0.8, next_documents, samples=40_000)
    assert p == pytest.approx(expected, abs=0.01)


def test_no_errors_at_all():
    gold = np.full(30, 7)
    assert recall_p_value(counts_of(gold, gold), 0.9) == pytest.approx(0.9**30)
    assert recall_p_value(counts_of(gold, gold), 1.0) == 1.0
    mixed = np.arange(1, 31)
    assert recall_p_value(counts_of(mixed, mixed), 0.95) >= 0.95**30


def draw(generator: np.random.Generator, D: int, recall: float) -> np.ndarray:
    """D documents of 1 to 20 segments, found with a probability of their own; the pooled recall is `recall`."""
    gold = generator.integers(1, 21, D)
    return counts_of(generator.binomial(gold, generator.beta(8 * recall, 8 * (1 - recall), D)), gold)


@pytest.mark.parametrize("D", [40, 120])
def test_level_where_recall_is_the_goal(D):
    generator = np.random.default_rng(0)
    p = [recall_p_value(draw(generator, D, 0.9), 0.9, samples=400) for _ in range(400)]
    assert 0.02 < np.mean(np.array(p) <= 0.1) < 0.12


def test_level_where_few_documents_are_missed_completely():
    generator, gold, wrong = np.random.default_rng(0), np.full(80, 10), np.zeros(2)
    for _ in range(400):
        counts = counts_of(gold * (generator.random(80) >= 0.05), gold)
        t_test = ttest_1samp(counts[:, 0] - 0.95 * gold, 0, alternative="greater")
        wrong += recall_p_value(counts, 0.95, samples=400) <= 0.1, t_test.pvalue <= 0.1
    assert wrong[0] / 400 < 0.1 < 0.15 < wrong[1] / 400


def test_level_for_the_next_documents():
    generator = np.random.default_rng(0)
    wrong = {None: 0, 60: 0}
    for _ in range(400):
        tested, following = draw(generator, 60, 0.9), draw(generator, 60, 0.9).sum(0)
        reached = following[0] / following[2]  # a goal that the recall of the next documents just misses
        for next_documents in wrong:
            wrong[next_documents] += recall_p_value(tested, reached + 1e-9, next_documents, samples=400) <= 0.1
    assert 0.02 < wrong[60] / 400 < 0.1
    assert wrong[60] < wrong[None]


def test_fixed_sequence_reads_nothing_after_the_first_failure():
    p_values = iter([0.05, 0.1, 0.11, 0.0])
    assert fixed_sequence(p_values, 0.9) == 2
    assert list(p_values) == [0.0]


def test_highest_certified_recall_is_the_last_to_pass():
    counts = draw(np.random.default_rng(0), 50, 0.9)
    highest = highest_certified_recall(counts, 0.9)
    assert recall_p_value(counts, highest) <= 0.1 < recall_p_value(counts, highest + 0.001)
    assert highest_certified_recall(counts_of(np.zeros(50, int), np.ones(50, int)), 0.9) == 0.0


def test_number_of_next_documents():
    with pytest.raises(InputError, match="next documents"):
        recall_p_value(counts_of(np.ones(3), np.ones(3)), 0.5, next_documents=0)
