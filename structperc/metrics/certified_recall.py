"""Tests of whether recall reaches a goal, over documents, and learn-then-test over a sequence of thresholds."""

from collections.abc import Callable, Iterable
from functools import lru_cache
from itertools import takewhile

import numpy as np

from structperc.errors import InputError

CHUNK_NUMBERS = 2**22  # size of a chunk of bootstrap samples: 32 MiB
RecallTest = Callable[[np.ndarray, float], float]


def recall_p_value(
    counts: np.ndarray, recall: float, next_documents: int | None = None, samples: int = 2_000, seed: int = 1
) -> float:
    """Return the p-value of the hypothesis that recall is below a goal, by a studentised bootstrap over documents.

    Recall is that of all segments together: R = E[correct_d] / E[gold_d] in documents of the same distribution. With
    z_d = correct_d - recall * gold_d, R < recall if and only if E[z_d] < 0. The document with the lowest z_d is counted
    twice, for worse ones among those not seen, as conformal risk control adds the largest loss (Angelopoulos et al.
    2024). The statistic t = mean(z) / se(z) is compared with t* = (mean(z*) - mean(z)) / se(z*) of samples z* of
    documents drawn with replacement (Efron & Tibshirani 1993, Section 12.5):

    p = max((1 + #{t* >= t}) / (1 + samples), recall^D)

    The second term is the probability that D documents show no error if each of them is missed completely with
    probability 1 - recall, and right otherwise. So D documents certify at most a recall of (1 - probability)^(1 / D).

    With `next_documents`, recall is that of the next m documents, which varies by chance: mean(z) in t* is replaced by
    the mean of m other documents drawn with replacement. The bound is wider, by a factor of about sqrt(1 + D / m).

    Assumptions: documents are independent and of the same distribution (those tested, all text, the next documents).
    The level is approximate: its error vanishes as D grows, and is large if a few documents have most of the segments.
    Without a bound on the number of segments in a document no exact test of pooled recall exists (Bahadur & Savage
    1956).

    Args:
        counts: counts (D, 3) of D documents: correct, predicted and gold segments.
        recall: the goal, 0 < recall <= 1.
        next_documents: m, the number of documents of another sample; default: all text, the expectation.

    Raises:
        InputError: fewer than one next document.
    """
    if next_documents is not None and next_documents < 1:
        raise InputError(f"the number of next documents must be at least 1, got {next_documents}")
    z = counts[:, 0] - recall * counts[:, 2]
    D, z = len(z), np.append(z, z.min())
    n = D + 1
    if z.std() <= 1e-12 * max(1.0, float(np.abs(z).max())):
        return recall**D if z.mean() > 0 else 1.0
    larger, chunk = 0, max(1, CHUNK_NUMBERS // n)
    for start in range(0, samples, chunk):
        size = min(chunk, samples - start)
        mean, se = _mean_and_error(_draws(n, n, size, (seed, start, 0)), z)
        center = z.mean() if next_documents is None else _draws(n, next_documents, size, (seed, start, 1)) @ z
        larger += int((mean - center >= z.mean() / z.std() * n**0.5 * se).sum())  # not divided by se, which may be 0
    return max((1 + larger) / (1 + samples), recall**D)


@lru_cache(maxsize=4)  # the tests of a sequence have the same samples
def _draws(D: int, drawn: int, size: int, seed: tuple[int, ...]) -> np.ndarray:
    """Return the share (size, D) of each of D documents among so many drawn with replacement."""
    return np.random.default_rng(seed).multinomial(drawn, np.full(D, 1 / D), size) / drawn


def _mean_and_error(shares: np.ndarray, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean (n,) of samples with these shares (n, D) of documents, and its standard error (n,)."""
    mean = shares @ z
    return mean, np.sqrt(np.maximum(shares @ z**2 - mean**2, 0) / len(z))


def fixed_sequence(p_values: Iterable[float], probability: float) -> int:
    """Return the number of hypotheses that are rejected by fixed-sequence testing.

    Learn-then-test (Angelopoulos et al. 2021, Section 2.2, Algorithm 1 with one sequence): hypotheses are tested in a
    fixed order until the first one with p > 1 - probability. All hypotheses before it are rejected; the probability
    that a true one is among them is at most 1 - probability. The order must not depend on the data of the tests.
    `p_values`: p-values in the fixed order, the safest hypothesis first; none is read after the first failure.
    `probability`: probability that no true hypothesis is rejected.
    """
    return sum(1 for _ in takewhile(lambda p: p <= 1 - probability + 1e-12, p_values))


def highest_certified_recall(counts: np.ndarray, probability: float, test: RecallTest = recall_p_value) -> float:
    """Return the highest goal whose test has p <= 1 - probability, rounded down to 0.001; 0.0 if there is none.

    Args:
        counts: counts (D, 3) of D documents: correct, predicted and gold segments.
        probability: probability of the guarantee.
        test: returns the p-value of counts and a goal, which grows with the goal.

    Example:
        >>> import numpy as np
        >>> from structperc.metrics.certified_recall import highest_certified_recall
        >>> highest_certified_recall(np.array([[10, 12, 10]] * 44), 0.9)  # 0.1 ** (1 / 44) = 0.949
        0.949
    """
    low, high = 0, 1000  # in steps of 0.001
    while low < high:
        middle = (low + high + 1) // 2
        if fixed_sequence([test(counts, middle / 1000)], probability):
            low = middle
        else:
            high = middle - 1
    return low / 1000
