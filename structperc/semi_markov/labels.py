"""Segmentations as labels of a tag scheme, and back.

Of the C types of a lattice, type 0 is a token outside segments, "O", and type i + 1 is `label_set.type_names[i]`.
"""

from functools import cache

import torch
from torch import Tensor

from structperc.data.labels import LabelSet, segment_boundaries, shift
from structperc.data.tag_schemes import BEGIN, END, INSIDE, SCHEMES, SINGLE, make_label
from structperc.errors import InputError
from structperc.structures import real_tokens


def to_labels(segmentation: Tensor, lengths: Tensor, label_set: LabelSet, starts: Tensor | None = None) -> Tensor:
    """Return the labels of a tag scheme for segmentations, such as those of `viterbi` and `kbest`.

    Args:
        segmentation: (B, T) or (B, K, T) int64: label c begins a segment of type c, C + c continues it. Type 0 is "O",
            type i + 1 is `label_set.type_names[i]`; tokens of "O" are segments of one token.
        lengths: (B,) int64.
        label_set: the labels, with all labels of the scheme for each type, as of `LabelSet.from_corpus`.
        starts: (B, T) bool, first tokens of sentences; None: each sequence is one sentence.

    Returns:
        Label ids of the same shape, int64, 0 in the padding.

    Raises:
        InputError: a label set without segments, or without a label of the scheme.

    Example:
        >>> import torch
        >>> from structperc.data import LabelSet
        >>> from structperc.semi_markov import to_labels
        >>> label_set = LabelSet.from_corpus(["B-LOC", "B-PER"], "IOB2")  # C = 3: O, LOC, PER
        >>> ids = to_labels(torch.tensor([[2, 5, 0, 1]]), torch.tensor([4]), label_set)
        >>> label_set.decode(ids[0])
        ['B-PER', 'I-PER', 'O', 'B-LOC']
    """
    table = _ids(label_set).to(segmentation.device)
    C, real = table.shape[1], real_tokens(lengths.to(segmentation.device), segmentation.shape[-1])
    shape = (real.shape[0], *[1] * (segmentation.dim() - 2), real.shape[1])
    real = real.view(shape)
    kinds, first = segmentation % C, segmentation < C
    last = ~(shift(~first, -1, False) & shift(real, -1, False))
    if label_set.scheme == "IOB1":  # B only after a segment of the same type
        first = first & (shift(kinds, 1, 0) == kinds)
        first = first if starts is None else first & ~starts.view(shape)
    return torch.where(real, table[first + 2 * last, kinds], 0)


def segmentation_of_labels(
    labels: Tensor, lengths: Tensor, label_set: LabelSet, starts: Tensor | None = None
) -> Tensor:
    """Return the segmentations of label sequences, such as gold labels; `to_labels` reverses it.

    Args:
        labels: (B, T) or (B, K, T) int64, legal or not: segments are those of `metrics`.
        lengths: (B,) int64.
        label_set: the labels.
        starts: (B, T) bool, first tokens of sentences; None: each sequence is one sentence.

    Returns:
        Labels of segmentations of the same shape, int64, see `to_labels`; 0 in the padding.

    Raises:
        InputError: a label set without segments.

    Example:
        >>> import torch
        >>> from structperc.data import LabelSet
        >>> from structperc.semi_markov import segmentation_of_labels
        >>> label_set = LabelSet.from_corpus(["B-LOC", "B-PER"], "IOB2")
        >>> labels = torch.tensor([label_set.encode(["B-PER", "I-PER", "O", "B-LOC"]).tolist()])
        >>> segmentation_of_labels(labels, torch.tensor([4]), label_set)
        tensor([[2, 5, 0, 1]])
    """
    _check_scheme(label_set)
    C, T = 1 + len(label_set.type_names), labels.shape[-1]
    real = real_tokens(lengths.to(labels.device), T)
    first = torch.arange(T, device=labels.device) == 0
    starts = first.expand(real.shape) if starts is None else starts | first
    middle = [1] * (labels.dim() - 2)
    real, starts = (mask.view(mask.shape[0], *middle, T).expand(labels.shape) for mask in (real, starts))
    begins, _ = segment_boundaries(labels, real, starts, label_set)
    kinds = label_set.types.to(labels.device)[labels.masked_fill(~real, 0)] + 1
    return torch.where(real, kinds + C * ((kinds > 0) & ~begins), 0)


@cache
def _ids(label_set: LabelSet) -> Tensor:
    """Return label ids (4, C) by position: neither first nor last token, first, last, both; and type."""
    _check_scheme(label_set)
    letters = {prefix: letter for letter, prefix in SCHEMES[label_set.scheme].items()}
    inside, begin = letters[INSIDE], letters[BEGIN]
    positions = (inside, begin, letters.get(END, inside), letters.get(SINGLE, begin))
    outside = label_set.index("O")
    return torch.tensor(
        [
            [outside, *(label_set.index(make_label(letter, kind)) for kind in label_set.type_names)]
            for letter in positions
        ]
    )


def _check_scheme(label_set: LabelSet) -> None:
    if label_set.scheme in ("IO", "none"):
        what = "has no segments" if label_set.scheme == "none" else "cannot separate adjacent segments of one type"
        raise InputError(f"label_set: scheme {label_set.scheme!r} {what}; choose a scheme such as IOB2")
