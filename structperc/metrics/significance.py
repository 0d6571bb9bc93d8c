"""Significance tests of the difference of two systems: over items, over trainings, and over documents."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from scipy.stats import binomtest, ttest_1samp
from torch import Tensor

from structperc.errors import InputError

CHUNK_NUMBERS = 2**22  # size of a chunk of bootstrap samples: 32 MiB


class McNemar(NamedTuple):
    """Result of McNemar's test of two systems, see `mcnemar`.

    Attributes:
        both: number of items that both systems got right.
        only_a: number of items that only A got right.
        only_b: number of items that only B got right.
        neither: number of items that neither got right.
        p: two-sided p-value.
    """

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
    """Return the exact McNemar test of two systems. McNemar 1947.

    If the systems are equally good, each item that only one got right is one of A's with probability 1/2, so only_a is
    binomial. p = 1 if only_a = only_b. The test assumes independent items; tokens of one sentence are not independent,
    so the test on sentences is more conservative. `a`: (n,) bool, True for items that system A got right. `b`: (n,)
    bool, True for items that system B got right. Returns numbers of items and the two-sided p-value.

    Raises:
        InputError: a or b is not bool, or they differ in length.

    Example:
        >>> import torch
        >>> from structperc.metrics import mcnemar
        >>> mcnemar(torch.tensor([True, False, False]), torch.tensor([True, True, True]))  # p = 2 * (1/2)^2
        McNemar(both=1, only_a=0, only_b=2, neither=0, p=0.5)
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
    """Return the two-sided p-value of Student's paired t-test for differences of scores.

    The hypothesis is that trainings with other seeds would differ by 0 on average. `differences`: difference of the
    scores of two systems for each pair of runs. Returns the p-value; None if there are fewer than two differences or
    all are equal, as for learners without randomness.
    """
    if len(differences) < 2 or max(differences) - min(differences) <= 1e-12:
        return None
    return float(ttest_1samp(differences, 0.0).pvalue)


class Bootstrap(NamedTuple):
    """Result of a paired bootstrap test of two systems, see `paired_bootstrap`.

    Attributes:
        difference: difference of the scores, B minus A.
        low: lower bound of its 95 % interval.
        high: upper bound of its 95 % interval.
        p: two-sided p-value of the hypothesis that the difference is 0.
    """

    difference: float
    low: float
    high: float
    p: float


def paired_bootstrap(a: np.ndarray, b: np.ndarray, samples: int = 10_000, seed: int = 1) -> Bootstrap:
    """Return the paired bootstrap test of two systems over documents, with the percentile interval.

    Documents are drawn with replacement, the same ones for both systems (Efron & Tibshirani 1993, Koehn 2004). The
    score of a training is F1 of the summed counts (accuracy if each label is counted); the score of a system is the
    mean over its trainings. p = min(1, 2 (1 + n) / (1 + samples)), with n the smaller of the numbers of samples with a
    difference <= 0 and with a difference >= 0. Returns difference B minus A, its 95 % interval and the p-value.

    Args:
        a: counts (S, D, 3) of S trainings of system A in D documents: correct, predicted and gold segments.
        b: counts of system B in the same documents.

    Example:
        >>> import numpy as np
        >>> from structperc.metrics import paired_bootstrap
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


def holm(p: Sequence[float]) -> list[float]:
    """Return p-values of several tests that are corrected for their number. Holm 1979.

    If those below 0.05 are called significant, the probability that any of them is false is at most 0.05.

    Example:
        >>> from structperc.metrics.significance import holm
        >>> holm([0.01, 0.04, 0.03])  # 3 * 0.01; then 2 * 0.03, which the largest must not fall below
        [0.03, 0.06, 0.06]
    """
    corrected, least = [0.0] * len(p), 0.0
    for rank, i in enumerate(sorted(range(len(p)), key=p.__getitem__)):
        least = corrected[i] = max(least, min(1.0, (len(p) - rank) * p[i]))
    return corrected


def score_interval(counts: np.ndarray, samples: int = 10_000, seed: int = 1) -> tuple[float, float]:
    """Return the 95 % percentile interval of the score of a system, from documents drawn with replacement.

    `counts`: counts (S, D, 3) of S trainings in D documents; scores and samples are those of `paired_bootstrap`.
    """
    none = np.zeros((1, *counts.shape[1:]), counts.dtype)  # a system without predictions has the score 0
    found = paired_bootstrap(none, counts, samples, seed)
    return found.low, found.high


class SegmentIntervals(NamedTuple):
    """The 95 % intervals (low, high) of scores of segments, see `bootstrap_intervals`."""

    precision: tuple[float, float]
    recall: tuple[float, float]
    f1: tuple[float, float]


def bootstrap_intervals(counts: np.ndarray, samples: int = 10_000, seed: int = 1) -> SegmentIntervals:
    """Return percentile intervals of precision, recall and F1, from documents drawn with replacement.

    Efron & Tibshirani 1993, Section 13.3.

    Args:
        counts: counts (D, 3) of D documents: correct, predicted and gold segments.
    """
    (intervals,) = grouped_bootstrap_intervals(counts[:, None], samples, seed)
    return intervals


def grouped_bootstrap_intervals(counts: np.ndarray, samples: int = 10_000, seed: int = 1) -> list[SegmentIntervals]:
    """Return the intervals of `bootstrap_intervals` for several groups, such as types, from the same samples.

    Returns the 95 % intervals of each group.

    Args:
        counts: counts (D, G, 3) of D documents and G groups: correct, predicted and gold segments.
    """
    D, G = counts.shape[:2]
    draw, found = np.random.default_rng(seed), []
    for start in range(0, samples, chunk := max(1, CHUNK_NUMBERS // D)):
        times = draw.multinomial(D, np.full(D, 1 / D), min(chunk, samples - start))
        correct, predicted, gold = np.moveaxis((times @ counts.reshape(D, -1)).reshape(-1, G, 3), 2, 0)
        found.append(np.stack([correct / np.maximum(n, 1) for n in (predicted, gold, (predicted + gold) / 2)]))
    bounds = np.quantile(np.concatenate(found, 1), [0.025, 0.975], axis=1)  # (2, 3, G)
    return [SegmentIntervals(*map(tuple, scores)) for scores in bounds.transpose(2, 1, 0).tolist()]


def sum_by_document(counts: np.ndarray, documents: np.ndarray | None = None) -> np.ndarray:
    """Return the sums (D, ...) of counts of sentences over their documents, for a bootstrap.

    `counts`: counts (R, ...) of R sentences. `documents`: document number (R,) of each sentence; without, or with a
    single document, sentences are documents.
    """
    ids, which = np.unique(np.arange(len(counts)) if documents is None else documents, return_inverse=True)
    if len(ids) < 2:
        return counts
    sums = np.zeros((len(ids), *counts.shape[1:]), counts.dtype)
    np.add.at(sums, which, counts)
    return sums


def _mean_f1(times: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """F1 (n,) of samples that have each of D documents `times` (n, D), the mean over S trainings; 0 without any."""
    right, predicted, gold = (times @ counts[:, :, i].T for i in range(3))  # each (n, S)
    return (2 * right / np.maximum(predicted + gold, 1)).mean(1)
