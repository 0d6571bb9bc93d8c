"""Confidence in tokens and segments, and its calibration: of decisions with confidence 0.8, a share of 0.8 is right."""

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torchmetrics import Metric

from structperc.chain import Segments, marginals, next_marginals, previous_marginals, segment_marginals
from structperc.data.labels import LabelSet, segment_boundaries
from structperc.errors import InputError
from structperc.metrics.accuracy import SentenceBoundaries
from structperc.structures import Lattice


@torch.no_grad()
def token_confidence(lattice: Lattice, labels: Tensor) -> Tensor:
    """Return the probabilities p(y_t = label | x) (B, T) of labels (B, T) int64, whose padding holds some label."""
    return marginals(lattice).gather(2, labels.unsqueeze(2)).squeeze(2)


@torch.no_grad()
def segment_confidence(
    lattice: Lattice, labels: Tensor, segments: Segments, boundaries: SentenceBoundaries, label_set: LabelSet
) -> Tensor:
    """Return the probability (S,), in 0..1, of exactly these segments of labels (B, T).

    It is p(the labels on the segment) times the conditional probabilities that neither neighbour belongs to it. In the
    lattice of a constrained tagger it is exact for IOB2, IOBES and BILOU, where a segment has a single spelling; in
    IOB1 it leaves out the other one.
    """
    rows, starts, ends = segments
    if not len(rows):
        return lattice.unary.new_zeros(0)
    may_continue = ((label_set.types >= 0) & ~label_set.opening).to(labels.device)  # (L, L), label j after i
    left, right = (rows, starts), (rows, ends - 1)
    before = (previous_marginals(lattice, labels)[left] * may_continue.T[labels[left]]).sum(1)
    following = next_marginals(lattice, labels)
    after = (following[right] * may_continue[labels[right]]).sum(1)
    open_left = before.masked_fill(boundaries.first[left], 0).clamp(0, 1)
    open_right = after.masked_fill(boundaries.last[right], 0).clamp(0, 1)
    confidence = segment_marginals(lattice, labels, segments, following) * (1 - open_left) * (1 - open_right)
    return confidence.to(lattice.unary.dtype)


@torch.no_grad()
def confidence_within(lattice: Lattice, labels: Tensor, boundaries: SentenceBoundaries, label_set: LabelSet) -> Tensor:
    """Return the confidence (B, T) of the segment of labels (B, T) that each token is in; NaN outside of segments."""
    first, last = segment_boundaries(labels, boundaries.real, boundaries.first, label_set)
    rows, starts = first.nonzero(as_tuple=True)
    segments = Segments(rows, starts, last.nonzero(as_tuple=True)[1] + 1)
    confidence = segment_confidence(lattice, labels, segments, boundaries, label_set)
    within = (label_set.types.to(labels.device)[labels] >= 0) & boundaries.real
    number = (first.flatten().cumsum(0) - 1).clamp(min=0).view(labels.shape)
    nothing = torch.full(labels.shape, torch.nan, dtype=lattice.unary.dtype, device=labels.device)
    return torch.where(within, confidence[number], nothing) if len(confidence) else nothing


MAX_BINS = 10_000  # bins


class Bin(NamedTuple):
    """The decisions with low < confidence <= high; the first bin holds confidence 0, too."""

    low: float
    high: float
    n: int
    correct: int
    total: float  # sum of the confidences

    @property
    def accuracy(self) -> float:
        """The share of the decisions that are right; 0.0 without any."""
        return self.correct / max(self.n, 1)

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
        """The expected calibration error, sum over bins of |accuracy - confidence| n_m / n (Guo et al. 2017, Eq. 3)."""
        return sum(abs(one.correct - one.total) for one in self.bins) / max(self.all.n, 1)

    @property
    def brier(self) -> float:
        """The mean squared difference of confidence and being right, 1 or 0 (Brier 1950)."""
        return self.squares / max(self.all.n, 1)


def bin_sums(confidence: Tensor, correct: Tensor, bins: int) -> tuple[Tensor, Tensor]:
    """Return the counts (2, bins) int64 and the sums (2, bins) float64 of decisions, bin by bin.

    confidence (n,) is in 0..1, right (n,) bool. Counts are those of all decisions and of the right ones, sums those of
    confidence and of (confidence - right)^2. Bin m of 0..bins-1 holds m / bins < confidence <= (m + 1) / bins, as in
    Guo et al. 2017. Raises InputError for `correct` of another type or shape.
    """
    if correct.dtype != torch.bool or correct.shape != confidence.shape:
        raise InputError(
            f"right must be bool and of the shape of confidence {tuple(confidence.shape)}, "
            f"got {correct.dtype} {tuple(correct.shape)}"
        )
    confidence = confidence.double()
    place = ((confidence * bins).ceil().long() - 1).clamp(0, bins - 1)
    counts = place.new_zeros(2, bins)
    counts.index_add_(1, place, torch.stack([torch.ones_like(correct), correct]).long())
    sums = confidence.new_zeros(2, bins)
    sums.index_add_(1, place, torch.stack([confidence, (confidence - correct.double()) ** 2]))
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
        if not 1 <= bins <= MAX_BINS:
            raise InputError(f"bins must lie between 1 and {MAX_BINS}, got {bins}")
        self.n_bins = bins
        self.add_state("counts", torch.zeros(2, bins, dtype=torch.int64), "sum")
        self.add_state("sums", torch.zeros(2, bins, dtype=torch.float64), "sum")

    def update(self, confidence: Tensor, correct: Tensor) -> None:
        """Add decisions with confidence (n,) in 0..1 that are right, (n,) bool, or not; see `bin_sums`."""
        counts, sums = bin_sums(confidence, correct, self.n_bins)
        self.counts = self.counts + counts
        self.sums = self.sums + sums

    def compute(self) -> Reliability:
        """Return the Reliability of everything seen since the last reset."""
        n, (counts, correct), (total, squares) = self.n_bins, self.counts.tolist(), self.sums.tolist()
        rows = zip(counts, correct, total, strict=True)
        return Reliability([Bin(m / n, (m + 1) / n, *row) for m, row in enumerate(rows)], sum(squares))
