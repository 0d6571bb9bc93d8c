"""Probabilities of the labels and segments of a label sequence, under a model that is trained by likelihood."""

import torch
from torch import Tensor

from structperc.chain.marginals import marginals, next_marginals, previous_marginals
from structperc.chain.segments import Segments, segment_marginals
from structperc.data.labels import LabelSet, segment_boundaries
from structperc.structures import Lattice, SentenceBoundaries


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
