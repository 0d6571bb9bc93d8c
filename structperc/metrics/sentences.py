"""The places where sentences begin and end inside the sequences of a batch, which may be whole documents."""

from typing import NamedTuple

import torch
from torch import Tensor

from structperc.data.segment_masks import shift
from structperc.errors import InputError
from structperc.structures import real_tokens


class SentenceBoundaries(NamedTuple):
    """The real tokens, and the first and last one of each sentence, as masks."""

    real: Tensor  # (B, T) bool, False in the padding
    first: Tensor  # (B, T) bool
    last: Tensor  # (B, T) bool


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
    """Return the boundaries of sentences, from lengths (B,) int64 and sentences (B, T) int64, a number per token.

    A sentence begins wherever the number changes; it may be an index within the document or the corpus.
    Without numbers each sequence is one sentence. Sentences without tokens do not exist here.
    """
    real = real_tokens(lengths, T)
    begins = torch.arange(T, device=lengths.device) == 0
    if sentences is not None:
        begins = begins | (sentences != shift(sentences, 1, 0))
    first = real & begins
    last = real & (shift(first, -1, False) | ~shift(real, -1, False))
    return SentenceBoundaries(real, first, last)


def right_sentences(right: Tensor, boundaries: SentenceBoundaries) -> Tensor:
    """Return whether all tokens of each sentence are right, (R,) bool in row-major order, from right (B, T) bool."""
    return ~wrong_sentences(right, boundaries)[: int(boundaries.first.sum())]


def wrong_sentences(right: Tensor, boundaries: SentenceBoundaries) -> Tensor:
    """Return whether some token of each sentence is wrong, from right (B, T) bool: (B * T,) bool, False after the last.

    There are as many sentences as tokens at most, so that no GPU is asked for their number.
    """
    number = (boundaries.first.flatten().cumsum(0) - 1).clamp(min=0)  # is -1 in padding before the first sentence
    wrong = (boundaries.real & ~right).flatten()
    return torch.zeros_like(number).scatter_add(0, number, wrong.long()) > 0
