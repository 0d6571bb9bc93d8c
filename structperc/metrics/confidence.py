"""Confidence of a lattice in a labelling: probabilities of its labels and of its segments."""

import torch
from torch import Tensor

from structperc.chain import Segments, marginals, next_marginals, previous_marginals, segment_marginals
from structperc.data.labels import LabelSet
from structperc.data.segment_masks import segment_boundaries
from structperc.metrics.sentences import SentenceBoundaries
from structperc.structures import Lattice


@torch.no_grad()
def token_confidence(lattice: Lattice, labels: Tensor) -> Tensor:
    """Return the probabilities p(y_t = label | x) (B, T) of labels (B, T) int64, whose padding holds some label."""
    return marginals(lattice).gather(2, labels.unsqueeze(2)).squeeze(2)


@torch.no_grad()
def segment_confidence(
    lattice: Lattice, labels: Tensor, segments: Segments, boundaries: SentenceBoundaries, label_set: LabelSet
) -> Tensor:
    """Return the probability (S,), in 0..1, that a labelling has exactly these segments of labels (B, T).

    A segment has the same type, first and last token. The result is p(the labels on the segment) times the conditional
    probabilities that neither neighbour belongs to it; a chain knows no more of the two sides than their next labels.
    In the lattice of a constrained tagger it is exact for IOB2, IOBES and BILOU, where a segment is written in one way
    only; in IOB1 it leaves out the other way.
    """
    rows, starts, ends = segments
    if not len(rows):
        return lattice.unary.new_zeros(0)
    goes_on = _goes_on(label_set).to(labels.device)
    left, right = (rows, starts), (rows, ends - 1)
    before = (previous_marginals(lattice, labels)[left] * goes_on.T[labels[left]]).sum(1)
    following = next_marginals(lattice, labels)
    after = (following[right] * goes_on[labels[right]]).sum(1)
    open_left = before.masked_fill(boundaries.first[left], 0).clamp(0, 1)
    open_right = after.masked_fill(boundaries.last[right], 0).clamp(0, 1)
    sure = segment_marginals(lattice, labels, segments, following) * (1 - open_left) * (1 - open_right)
    return sure.to(lattice.unary.dtype)


@torch.no_grad()
def confidence_within(lattice: Lattice, labels: Tensor, boundaries: SentenceBoundaries, label_set: LabelSet) -> Tensor:
    """Return the confidence (B, T) of the segment that each token of labels (B, T) is in; NaN where it is in none.

    These are the segments that labels, whose padding holds some label, say; the padding is in none.
    """
    first, last = segment_boundaries(labels, boundaries.real, boundaries.first, label_set)
    rows, starts = first.nonzero(as_tuple=True)
    segments = Segments(rows, starts, last.nonzero(as_tuple=True)[1] + 1)
    sure = segment_confidence(lattice, labels, segments, boundaries, label_set)
    within = (label_set.types.to(labels.device)[labels] >= 0) & boundaries.real
    number = (first.flatten().cumsum(0) - 1).clamp(min=0).view(labels.shape)
    nothing = torch.full(labels.shape, torch.nan, dtype=lattice.unary.dtype, device=labels.device)
    return torch.where(within, sure[number], nothing) if len(sure) else nothing


def _goes_on(label_set: LabelSet) -> Tensor:
    """(L, L) bool: whether j after i belongs to the segment of i."""
    return (label_set.types >= 0) & ~label_set.opening
