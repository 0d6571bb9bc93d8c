"""Segments of labellings in tensors of label ids: the reader of `segments` for whole batches."""

import torch
from torch import Tensor

from structperc.data.labels import LabelSet


def segment_boundaries(labels: Tensor, real: Tensor, starts: Tensor, label_set: LabelSet) -> tuple[Tensor, Tensor]:
    """Return masks of the first and of the last tokens of all segments: `spans` for whole batches of label ids.

    labels (..., T) int64; real (..., T) bool, False in the padding, which may hold anything; starts (..., T) bool,
    the first tokens of sentences, that of each row among them -> two (..., T) bool. The n-th True of a row in the one
    and the n-th True in the other belong to the same segment, of type `label_set.types[label]`.
    """
    labels = torch.where(real, labels, 0)
    inside = real & (label_set.types.to(labels.device, non_blocking=True)[labels] >= 0)
    first = inside & (starts | segment_starts(labels, label_set))
    last = inside & ~shift(inside & ~first, -1, False)
    return first, last


def segment_starts(labels: Tensor, label_set: LabelSet) -> Tensor:
    """Return whether the label of each token begins a segment after the label before, (..., T) int64 -> (..., T) bool.

    The first token of each row has no label before; its value has no meaning.
    """
    opening = label_set.opening.flatten().to(labels.device, non_blocking=True)
    return opening[shift(labels, 1, 0) * len(label_set) + labels]


def shift(values: Tensor, by: int, fill: int | bool) -> Tensor:
    """Return values (..., T) moved by one to the right (by = 1) or left (by = -1), the gap filled; T may be 0."""
    moved = values.roll(by, -1)
    moved[..., slice(0, 1) if by > 0 else slice(-1, None)] = fill
    return moved
