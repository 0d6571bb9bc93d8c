"""Counts of right and wrong labels, sentences and segments in batches of label numbers."""

from typing import NamedTuple

import torch
from torch import Tensor

from structperc.data.labels import LabelSet, segment_boundaries, shift
from structperc.errors import InputError
from structperc.structures import Candidates, SentenceBoundaries, real_tokens


def check_label_numbers(preds: Tensor, target: Tensor, lengths: Tensor | None = None) -> None:
    """Raise InputError unless preds (B, T) or (B, K, T), target (B, T) and lengths (B,) are whole numbers."""
    for name, ids in (("preds", preds), ("target", target), ("lengths", lengths)):
        if ids is not None and (ids.is_floating_point() or ids.is_complex() or ids.dtype == torch.bool):
            raise InputError(f"{name} must hold whole numbers, not {ids.dtype}; give label numbers, not scores")
    if target.dim() != 2 or preds.dim() not in (2, 3) or (preds.shape[0], preds.shape[-1]) != target.shape:
        raise InputError(
            f"preds must be (B, T) or (B, K, T) for target (B, T), got {tuple(preds.shape)} for {tuple(target.shape)}"
        )
    if lengths is not None and lengths.shape != target.shape[:1]:
        raise InputError(
            f"lengths must be (B,) for target (B, T), got {tuple(lengths.shape)} for {tuple(target.shape)}"
        )


def sentence_boundaries(lengths: Tensor, T: int, sentences: Tensor | None = None) -> SentenceBoundaries:
    """Return the boundaries of sentences, from lengths (B,) int64 and a sentence number per token (B, T) int64.

    A sentence begins wherever the number changes; numbers may be indices within the document or the corpus.
    Without numbers each sequence is one sentence. Sentences without tokens are not counted.
    """
    real = real_tokens(lengths, T)
    begins = torch.arange(T, device=lengths.device) == 0
    if sentences is not None:
        begins = begins | (sentences != shift(sentences, 1, 0))
    first = real & begins
    last = real & (shift(first, -1, False) | ~shift(real, -1, False))
    return SentenceBoundaries(real, first, last)


def right_sentences(right: Tensor, boundaries: SentenceBoundaries) -> Tensor:
    """Return (R,) bool, True for sentences without a wrong token, in row-major order, given right tokens (B, T)."""
    return ~sentence_errors(right, boundaries)[: int(boundaries.first.sum())]


def sentence_errors(right: Tensor, boundaries: SentenceBoundaries) -> Tensor:
    """Return (B * T,) bool, True for sentences with a wrong token, False after the last, given right tokens (B, T).

    The size does not depend on the number of sentences, so that a GPU needs no synchronisation.
    """
    number = (boundaries.first.flatten().cumsum(0) - 1).clamp(min=0)  # is -1 in padding before the first sentence
    wrong = (boundaries.real & ~right).flatten()
    return torch.zeros_like(number).scatter_add(0, number, wrong.long()) > 0


def token_counts(preds: Tensor, target: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """Count the correctly labelled tokens and all tokens, () int64 each.

    Args:
        preds: predicted label numbers (B, T) int64.
        target: gold label numbers (B, T) int64.
        lengths: (B,) int64; later tokens are padding.

    Raises:
        InputError: tensors of other shapes or types.

    Example:
        >>> token_counts(torch.tensor([[0, 1, 1]]), torch.tensor([[0, 1, 2]]), torch.tensor([3]))
        (tensor(2), tensor(3))
    """
    check_label_numbers(preds, target, lengths)
    real = sentence_boundaries(lengths, target.shape[1]).real
    return ((preds == target) & real).sum(), real.sum()


def sentence_counts(
    preds: Tensor, target: Tensor, lengths: Tensor, sentences: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Count the sentences without a wrong token and all sentences.

    Other arguments are those of `token_counts`. `sentences`: sentence number (B, T) int64 of each token: a sentence
    begins wherever it changes. By default each sequence is one sentence. Returns the two numbers, () int64 each.

    Raises:
        InputError: tensors of other shapes or types.
    """
    check_label_numbers(preds, target, lengths)
    boundaries = sentence_boundaries(lengths, target.shape[1], sentences)
    total = boundaries.first.sum()
    return total - sentence_errors(preds == target, boundaries).sum(), total


class SegmentCounts(NamedTuple):
    """Counts of segments of each sequence (B), or of each candidate (B, K)."""

    correct: Tensor  # (B, types) or (B, K, types) int64, same type, first and last token as a gold segment
    found: Tensor  # (B, types) or (B, K, types) int64, predicted segments
    gold: Tensor  # (B, types) or (B, 1, types) int64
    improper: Tensor  # (B,) or (B, K) int64, predicted labels that the scheme does not allow at their position


def segment_counts(
    preds: Tensor, target: Tensor, lengths: Tensor, labels: LabelSet, sentences: Tensor | None = None
) -> SegmentCounts:
    """Count correct, predicted and gold segments by the rule of the conlleval script.

    A segment begins at B, after O and wherever the type changes, so that an I after O begins one; it also begins at S
    (U) and after S and E (L), which the script, written for IOB, may treat otherwise. No segment crosses the boundary
    of a sentence. A label is improper if it may not follow the previous label, or not begin or end a sentence. Returns
    counts of each sequence, or of each candidate.

    Args:
        preds: predicted label numbers (B, T) int64, or those of candidates (B, K, T).
        target: gold label numbers (B, T) int64.
        lengths: (B,) int64; later tokens are padding, with any labels.
        sentences: sentence number (B, T) int64 of each token: a sentence begins wherever it changes. By default each
            sequence is one sentence.

    Raises:
        InputError: labels without a scheme, or tensors of other shapes or types.
        ValueError: invalid label numbers on a CPU.
    """
    if labels.scheme == "none":
        raise InputError("labels of scheme 'none' have no segments: count accuracy, or set the scheme")
    check_label_numbers(preds, target, lengths)
    boundaries = sentence_boundaries(lengths, target.shape[-1], sentences)
    if preds.dim() == 3:
        target, boundaries = target[:, None], SentenceBoundaries(*(part[:, None] for part in boundaries))
    preds, target = (_masked(ids, boundaries.real, len(labels)) for ids in (preds, target))
    found, wanted = (opened_segments(ids, boundaries, labels) for ids in (preds, target))
    correct = torch.where((found.kind == wanted.kind) & (found.end == wanted.end), found.kind, -1)
    n = len(labels.type_names)
    return SegmentCounts(
        correct=_per_type(correct, n),
        found=_per_type(found.kind, n),
        gold=_per_type(wanted.kind, n),
        improper=_improper(preds, boundaries, labels),
    )


class OpenedSegments(NamedTuple):
    """The segments of label sequences, each at its first token."""

    kind: Tensor  # (..., T) type of the segment that begins here, -1 without one
    end: Tensor  # (..., T) last token of the segment that begins here


def opened_segments(ids: Tensor, boundaries: SentenceBoundaries, labels: LabelSet) -> OpenedSegments:
    """Return the segments of labels (..., T) int64 by the rule of `segment_boundaries`; the padding has any label."""
    kind = torch.where(boundaries.real, labels.types.to(ids.device, non_blocking=True)[ids], -1)
    first, last = segment_boundaries(ids, boundaries.real, boundaries.first, labels)
    T = ids.shape[-1]
    t = torch.where(last, torch.arange(T, device=ids.device), T)
    return OpenedSegments(torch.where(first, kind, -1), t.flip(-1).cummin(-1).values.flip(-1))


def _masked(ids: Tensor, real: Tensor, L: int) -> Tensor:
    ids = torch.where(real, ids, 0)
    if ids.device.type == "cpu" and ((ids < 0) | (ids >= L)).any():
        raise ValueError(f"label ids must be 0..{L - 1}, got {int(ids.min())}..{int(ids.max())}")
    return ids


def _per_type(kind: Tensor, n: int) -> Tensor:
    counts = kind.new_zeros(*kind.shape[:-1], n + 1)
    return counts.scatter_add(-1, kind + 1, torch.ones_like(kind))[..., 1:]


def _improper(ids: Tensor, boundaries: SentenceBoundaries, labels: LabelSet) -> Tensor:
    masks = labels.start, labels.transition, labels.end
    start, transition, end = (mask.to(ids.device, non_blocking=True) for mask in masks)
    may_follow = torch.where(boundaries.first, start[ids], transition[shift(ids, 1, 0), ids])
    proper = may_follow & (end[ids] | ~boundaries.last)
    return (~proper & boundaries.real).sum(-1)


def oracle(
    candidates: Candidates, target: Tensor, lengths: Tensor, labels: LabelSet, sentences: Tensor | None = None
) -> Tensor:
    """Return the candidate of highest segment F1 of each sequence.

    Of candidates with equal F1 the one with the fewest segments is chosen (without a gold segment all have F1 = 0, and
    a candidate without segments is right), of these the first. Returns index (B,) int64 of a candidate.

    Args:
        candidates: n-best lists, labels (B, K, T).
        target: gold label numbers (B, T) int64.
        lengths: (B,) int64; later tokens are padding.
        sentences: sentence number (B, T) int64 of each token; by default each sequence is one sentence.
    """
    counts = segment_counts(candidates.labels, target, lengths, labels, sentences)
    correct, found, wanted = (count.sum(-1) for count in (counts.correct, counts.found, counts.gold))
    f1 = (2 * correct).double() / (found + wanted).clamp(min=1)
    f1 = torch.where(candidates.valid, f1, -1.0)
    best = f1 == f1.amax(1, keepdim=True)
    return torch.where(best, found, target.shape[1] + 1).argmin(1)
