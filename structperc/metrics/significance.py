"""Significance tests of the difference of two systems: over items, over trainings, and over documents."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from scipy.stats import binomtest, ttest_1samp
from torch import Tensor

from structperc.errors import InputError

CHUNK_NUMBERS = 2**22  # numbers of one chunk of bootstrap samples: 32 MiB


class McNemar(NamedTuple):
    """Numbers of items that both systems, only one, or neither got right, and the two-sided p-value."""

    both: int
    only_a: int
    only_b: int
    neither: int
    p: float

    @property
    def accuracy_a(self) -> float:
        """The share of items that A got right; 0.0 without any items."""
        return (self.both + self.only_a) / max(sum(self[:4]), 1)

    @property
    def accuracy_b(self) -> float:
        """The share of items that B got right; 0.0 without any items."""
        return (self.both + self.only_b) / max(sum(self[:4]), 1)


def mcnemar(a: Tensor, b: Tensor) -> McNemar:
    """Return the test of two systems; a (n,) bool and b (n,) bool are True for the items that each got right.

    McNemar 1947 in its exact form, at any number of items: if the systems are equal, each item that
    only one got right belongs to either with probability 1/2, so only_a is binomial. p = 1 if only_a = only_b. The test
    assumes independent items, which tokens of one sentence are not; the test on sentences is more conservative.

    Raises InputError unless both are bool and of one length.
    """
    if a.dtype != torch.bool or b.dtype != torch.bool or a.shape != b.shape:
        raise InputError(
            f"a and b must be bool and of one length, got {a.dtype} {tuple(a.shape)} and {b.dtype} {tuple(b.shape)}"
        )
    only_a, only_b = int((a & ~b).sum()), int((b & ~a).sum())
    both = int((a & b).sum())
    p = binomtest(only_a, only_a + only_b).pvalue if only_a != only_b else 1.0
    return McNemar(both, only_a, only_b, len(a) - both - only_a - only_b, float(p))


def paired_t_test(differences: Sequence[float]) -> float | None:
    """Return the two-sided p-value of Student's paired t-test for differences of scores, one for each pair of runs.

    The hypothesis is that trainings with other seeds would differ by 0 on average. None where that cannot be tested:
    for fewer than two differences, and for differences that are all equal, as those of learners without randomness.

    Example:
        >>> round(paired_t_test([0.4, 0.1, 0.3]), 3)
        0.094
    """
    if len(differences) < 2 or max(differences) - min(differences) <= 1e-12:
        return None
    return float(ttest_1samp(differences, 0.0).pvalue)


class Bootstrap(NamedTuple):
    """A difference of scores, B minus A, its 95 % interval and the two-sided p-value of the hypothesis that it is 0."""

    difference: float
    low: float
    high: float
    p: float


def paired_bootstrap(a: np.ndarray, b: np.ndarray, samples: int = 10_000, seed: int = 1) -> Bootstrap:
    """Return the paired bootstrap test of two systems over documents, with the percentile interval.

    Documents are drawn with replacement, the same ones for both systems (Efron & Tibshirani 1993, Koehn 2004). A score
    is F1 of the summed counts, or accuracy where all labels count; that of a system is the mean over its trainings.
    p is twice the share of samples in which the sign is the other one, one sample more counted on either side.

    Args:
        a: counts (S, D, 3) of S trainings in D documents: right, predicted and gold ones.
        b: the same of system B, in the same documents.
        samples: how many are drawn.
        seed: of the draws.

    Example:
        >>> counts = np.array([[[3, 4, 4], [2, 2, 3], [0, 1, 1]]])
        >>> paired_bootstrap(counts, counts)
        Bootstrap(difference=0.0, low=0.0, high=0.0, p=1.0)
    """
    D, draw = a.shape[1], np.random.default_rng(seed)
    differences = np.empty(samples)
    for start in range(0, samples, chunk := max(1, CHUNK_NUMBERS // D)):
        n = min(chunk, samples - start)
        times = draw.multinomial(D, np.full(D, 1 / D), n).astype(np.float64)  # how often each document is drawn
        differences[start : start + n] = _mean_f1(times, b) - _mean_f1(times, a)
    other = min((differences <= 0).sum(), (differences >= 0).sum())
    once = np.ones((1, D))
    low, high = np.quantile(differences, [0.025, 0.975])
    whole = float((_mean_f1(once, b) - _mean_f1(once, a))[0])
    return Bootstrap(whole, float(low), float(high), min(1.0, float(2 * (1 + other) / (samples + 1))))


def _mean_f1(times: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """F1 (n,) of samples that have each of D documents `times` (n, D), the mean over S trainings; 0 without any."""
    right, predicted, gold = (times @ counts[:, :, i].T for i in range(3))  # each (n, S)
    return (2 * right / np.maximum(predicted + gold, 1)).mean(1)
