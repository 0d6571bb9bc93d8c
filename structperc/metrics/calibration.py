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
    """Return the probability p(y_t = label | x) of each label.

    Args:
        lattice: scores of a probabilistic model, such as one trained with `CRFLoss`.
        labels: (B, T) int64, any label in the padding.

    Returns:
        Probabilities (B, T).

    Example:
        >>> import torch
        >>> from structperc.metrics import token_confidence
        >>> from structperc.structures import Lattice
        >>> unary = torch.tensor([[[1.0, 3.0], [1.0, 1.0]]]).log()
        >>> lattice = Lattice(unary, torch.zeros(1, 1, 2, 2), torch.tensor([2]))
        >>> token_confidence(lattice, torch.tensor([[1, 0]]))  # 3 / (1 + 3) and 1 / (1 + 1)
        tensor([[0.7500, 0.5000]])
    """
    return marginals(lattice).gather(2, labels.unsqueeze(2)).squeeze(2)


@torch.no_grad()
def segment_confidence(
    lattice: Lattice, labels: Tensor, segments: Segments, boundaries: SentenceBoundaries, label_set: LabelSet
) -> Tensor:
    """Return the probability of each segment, with exactly these boundaries.

    It is p(the labels on the segment) times the conditional probabilities that neither neighbour belongs to it. In the
    lattice of a constrained tagger it is exact for IOB2, IOBES and BILOU, where a segment can be written in one way
    only. In IOB1 it is the probability of the way in which the labels write it.

    Args:
        lattice: scores of a probabilistic model.
        labels: (B, T) int64, any label in the padding.
        segments: S segments of these labels.
        boundaries: real tokens, first and last tokens of sentences.
        label_set: names and tag scheme of the labels.

    Returns:
        Probabilities (S,), in 0..1.

    Example:
        >>> import torch
        >>> from structperc.chain import Segments
        >>> from structperc.data import LabelSet
        >>> from structperc.metrics import segment_confidence
        >>> from structperc.metrics.accuracy import sentence_boundaries
        >>> from structperc.structures import Lattice
        >>> unary = torch.tensor([[[1.0, 3.0], [1.0, 1.0]]]).log()
        >>> lattice = Lattice(unary, torch.zeros(1, 1, 2, 2), torch.tensor([2]))
        >>> segments = Segments(torch.tensor([0]), torch.tensor([0]), torch.tensor([1]))  # the first token
        >>> boundaries, label_set = sentence_boundaries(lattice.lengths, 2), LabelSet(("O", "B-PER"), "IOB2")
        >>> segment_confidence(lattice, torch.tensor([[1, 0]]), segments, boundaries, label_set)
        tensor([0.7500])
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
    """Return for each token the confidence (B, T) of its segment, given labels (B, T); NaN outside segments."""
    first, last = segment_boundaries(labels, boundaries.real, boundaries.first, label_set)
    rows, starts = first.nonzero(as_tuple=True)
    segments = Segments(rows, starts, last.nonzero(as_tuple=True)[1] + 1)
    confidence = segment_confidence(lattice, labels, segments, boundaries, label_set)
    within = (label_set.types.to(labels.device)[labels] >= 0) & boundaries.real
    number = (first.flatten().cumsum(0) - 1).clamp(min=0).view(labels.shape)
    nothing = torch.full(labels.shape, torch.nan, dtype=lattice.unary.dtype, device=labels.device)
    return torch.where(within, confidence[number], nothing) if len(confidence) else nothing


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

    Example:
        >>> import torch
        >>> from structperc.metrics import Calibration
        >>> calibration = Calibration(bins=2)
        >>> calibration.update(torch.tensor([1.0, 0.75, 0.25]), torch.tensor([True, False, False]))
        >>> reliability = calibration.compute()
        >>> [(one.high, one.accuracy, one.confidence) for one in reliability.bins]
        [(0.5, 0.0, 0.25), (1.0, 0.5, 0.875)]
        >>> round(reliability.ece, 3)  # 1/3 * |0 - 0.25| + 2/3 * |0.5 - 0.875|
        0.333
    """

    bins: list[Bin]
    squares: float

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


def bin_sums(confidence: Tensor, correct: Tensor, bins: int) -> tuple[Tensor, Tensor]:
    """Count decisions and sum up their confidences in bins. Guo et al. 2017.

    Bin m of 0..bins-1 has the decisions with m / bins < confidence <= (m + 1) / bins.

    Args:
        confidence: (n,), in 0..1.
        correct: (n,) bool, True for right decisions.
        bins: number of bins.

    Returns:
        Counts (2, bins) int64 of all decisions and of the right ones, and sums (2, bins) float64 of the confidence and
        of (confidence - right)^2.

    Raises:
        InputError: `correct` is not bool or has another shape than `confidence`.

    Example:
        >>> import torch
        >>> from structperc.metrics import bin_sums
        >>> counts, sums = bin_sums(torch.tensor([1.0, 0.75, 0.25]), torch.tensor([True, False, False]), bins=2)
        >>> counts.tolist(), sums[0].tolist()
        ([[1, 2], [0, 1]], [0.25, 1.75])
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


class Calibration(Metric):
    """Calibration of confidences, summed over batches and processes; compute() -> `Reliability`. Guo et al. 2017.

    Args:
        bins: number of bins of equal width, 1 to 10,000.
        kwargs: options of `torchmetrics.Metric`.

    Raises:
        InputError: bins out of range.

    Example:
        >>> import torch
        >>> from structperc.metrics import Calibration
        >>> calibration = Calibration(bins=10)
        >>> calibration.update(confidence=torch.tensor([0.75, 0.75]), correct=torch.tensor([True, False]))
        >>> calibration.compute().ece  # confidence 0.75, but half of them are right
        0.25
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
        """Add decisions.

        Args:
            confidence: (n,), in 0..1.
            correct: (n,) bool, True for right decisions.
        """
        counts, sums = bin_sums(confidence, correct, self.n_bins)
        self.counts = self.counts + counts
        self.sums = self.sums + sums

    def compute(self) -> Reliability:
        """Return the Reliability of all decisions since the last reset."""
        n, (counts, correct), (total, squares) = self.n_bins, self.counts.tolist(), self.sums.tolist()
        rows = zip(counts, correct, total, strict=True)
        return Reliability([Bin(m / n, (m + 1) / n, *row) for m, row in enumerate(rows)], sum(squares))
