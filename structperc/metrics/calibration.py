"""Calibration: of what is said with confidence 0.8, a share of 0.8 should be right."""

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torchmetrics import Metric

from structperc.errors import InputError

MOST = 10_000  # bins


class Bin(NamedTuple):
    """The decisions with low < confidence <= high; the first bin holds confidence 0, too."""

    low: float
    high: float
    n: int
    right: int
    total: float  # sum of the confidences

    @property
    def accuracy(self) -> float:
        """The share of the decisions that are right; 0.0 without any."""
        return self.right / max(self.n, 1)

    @property
    def confidence(self) -> float:
        """The mean confidence of the decisions; 0.0 without any."""
        return self.total / max(self.n, 1)


class Reliability(NamedTuple):
    """Confidence against accuracy, bin by bin and in all; every number is 0.0 where there are no decisions."""

    bins: list[Bin]
    squares: float  # sum of (confidence - right)^2

    @property
    def all(self) -> Bin:
        """The bin that holds all decisions."""
        sums = (sum(values) for values in zip(*(one[2:] for one in self.bins), strict=True))
        return Bin(0.0, 1.0, *sums)

    @property
    def ece(self) -> float:
        """The expected calibration error, Eq. 3 of Guo et al.

        2017: sum over bins of |accuracy - confidence| n_m / n.
        """
        return sum(abs(one.right - one.total) for one in self.bins) / max(self.all.n, 1)

    @property
    def brier(self) -> float:
        """The mean squared difference of confidence and being right, 1 or 0 (Brier 1950)."""
        return self.squares / max(self.all.n, 1)


def bin_sums(confidence: Tensor, right: Tensor, bins: int) -> tuple[Tensor, Tensor]:
    """Return the counts (2, bins) int64 and the sums (2, bins) float64 of decisions, bin by bin.

    confidence (n,) is in 0..1, right (n,) bool. Counts are those of all decisions and of the right ones, sums those of
    confidence and of (confidence - right)^2. Bin m of 0..bins-1 holds m / bins < confidence <= (m + 1) / bins, as in
    Guo et al. 2017. Raises InputError for `right` of another type or shape.
    """
    if right.dtype != torch.bool or right.shape != confidence.shape:
        raise InputError(
            f"right must be bool and of the shape of confidence {tuple(confidence.shape)}, "
            f"got {right.dtype} {tuple(right.shape)}"
        )
    confidence = confidence.double()
    place = ((confidence * bins).ceil().long() - 1).clamp(0, bins - 1)
    counts = place.new_zeros(2, bins)
    counts.index_add_(1, place, torch.stack([torch.ones_like(right), right]).long())
    sums = confidence.new_zeros(2, bins)
    sums.index_add_(1, place, torch.stack([confidence, (confidence - right.double()) ** 2]))
    return counts, sums


class Calibration(Metric):
    """Confidences of decisions against whether they are right, summed over batches and processes.

    compute() -> Reliability.

    Raises:
        InputError: bins below 1, or more than a table can show.
    """

    is_differentiable = False
    higher_is_better = None
    full_state_update = False

    counts: Tensor  # (2, bins) int64
    sums: Tensor  # (2, bins) float64

    def __init__(self, bins: int = 10, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if not 1 <= bins <= MOST:
            raise InputError(f"bins must lie between 1 and {MOST}, got {bins}")
        self.n_bins = bins
        self.add_state("counts", torch.zeros(2, bins, dtype=torch.int64), "sum")
        self.add_state("sums", torch.zeros(2, bins, dtype=torch.float64), "sum")

    def update(self, confidence: Tensor, right: Tensor) -> None:
        """Add decisions with confidence (n,) in 0..1 that are right, (n,) bool, or not; see `bin_sums`."""
        counts, sums = bin_sums(confidence, right, self.n_bins)
        self.counts = self.counts + counts
        self.sums = self.sums + sums

    def compute(self) -> Reliability:
        """Return the Reliability of everything seen since the last reset."""
        n, (counts, right), (total, squares) = self.n_bins, self.counts.tolist(), self.sums.tolist()
        rows = zip(counts, right, total, strict=True)
        return Reliability([Bin(m / n, (m + 1) / n, *row) for m, row in enumerate(rows)], sum(squares))
