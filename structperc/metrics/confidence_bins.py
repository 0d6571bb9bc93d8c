"""Calibration of confidences: of decisions with confidence 0.8, a share of 0.8 is right."""

from typing import NamedTuple, Self

import torch
from torch import Tensor

from structperc.errors import InputError

MAX_BINS = 10_000


class Bin(NamedTuple):
    """The decisions with low < confidence <= high; the first bin includes confidence 0."""

    low: float
    high: float
    n: int
    correct: int
    total: float  # sum of confidences

    @property
    def accuracy(self) -> float:
        """The share of the decisions that are right; 0.0 without any."""
        return self.correct / max(self.n, 1)

    @property
    def confidence(self) -> float:
        """The mean confidence of the decisions; 0.0 without any."""
        return self.total / max(self.n, 1)


class Reliability(NamedTuple):
    """Confidence against accuracy, bin by bin and in total; every number is 0.0 without decisions.

    Attributes:
        bins: low, high, number of decisions, number of right ones and sum of confidences of each bin.
        squares: sum of (confidence - right)^2.
    """

    bins: list[Bin]
    squares: float

    @classmethod
    def from_sums(cls, counts: Tensor, sums: Tensor) -> Self:
        """Return the reliability of results of `bin_sums`, or of their sums over batches."""
        n, (decisions, correct), (total, squares) = counts.shape[1], counts.tolist(), sums.tolist()
        rows = zip(decisions, correct, total, strict=True)
        return cls([Bin(m / n, (m + 1) / n, *row) for m, row in enumerate(rows)], sum(squares))

    @property
    def all(self) -> Bin:
        """The bin of all decisions."""
        sums = (sum(values) for values in zip(*(one[2:] for one in self.bins), strict=True))
        return Bin(0.0, 1.0, *sums)

    @property
    def ece(self) -> float:
        """The expected calibration error, sum over bins of |accuracy - confidence| n_m / n (Guo et al. 2017, Eq. 3)."""
        return sum(abs(one.correct - one.total) for one in self.bins) / max(self.all.n, 1)

    @property
    def brier(self) -> float:
        """The mean squared difference of the confidence and 1 (right) or 0 (wrong) (Brier 1950)."""
        return self.squares / max(self.all.n, 1)


def check_bins(bins: int) -> None:
    """Raise InputError unless the number of bins lies between 1 and 10,000."""
    if not 1 <= bins <= MAX_BINS:
        raise InputError(f"bins must lie between 1 and {MAX_BINS}, got {bins}")


def bin_sums(confidence: Tensor, correct: Tensor, bins: int) -> tuple[Tensor, Tensor]:
    """Count decisions and sum up their confidences in bins. Guo et al. 2017.

    Bin m of 0..bins-1 has the decisions with m / bins < confidence <= (m + 1) / bins. Returns counts (2, bins) int64 of
    all decisions and of the right ones, and sums (2, bins) float64 of the confidence and of (confidence - right)^2.

    Args:
        confidence: (n,), in 0..1.
        correct: (n,) bool, True for right decisions.

    Raises:
        InputError: `correct` is not bool or has another shape than `confidence`.

    Example:
        >>> sums = bin_sums(torch.tensor([0.75, 0.75]), torch.tensor([True, False]), bins=10)
        >>> Reliability.from_sums(*sums).ece  # confidence 0.75, but half of them are right
        0.25
    """
    if correct.dtype != torch.bool or correct.shape != confidence.shape:
        raise InputError(
            f"correct must be bool and have the shape of confidence {tuple(confidence.shape)}, "
            f"got {correct.dtype} {tuple(correct.shape)}"
        )
    confidence = confidence.double()
    place = ((confidence * bins).ceil().long() - 1).clamp(0, bins - 1)
    counts = place.new_zeros(2, bins)
    counts.index_add_(1, place, torch.stack([torch.ones_like(correct), correct]).long())
    sums = confidence.new_zeros(2, bins)
    sums.index_add_(1, place, torch.stack([confidence, (confidence - correct.double()) ** 2]))
    return counts, sums
