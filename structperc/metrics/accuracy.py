"""The places where sentences begin and end inside the sequences of a batch, which may be whole documents.

Accuracy of tokens and of whole sentences.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torchmetrics import Metric

from structperc.data.labels import shift
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
    return ~sentence_errors(right, boundaries)[: int(boundaries.first.sum())]


def sentence_errors(right: Tensor, boundaries: SentenceBoundaries) -> Tensor:
    """Return whether some token of each sentence is wrong, from right (B, T) bool: (B * T,) bool, False after the last.

    There are as many sentences as tokens at most, so that no GPU is asked for their number.
    """
    number = (boundaries.first.flatten().cumsum(0) - 1).clamp(min=0)  # is -1 in padding before the first sentence
    wrong = (boundaries.real & ~right).flatten()
    return torch.zeros_like(number).scatter_add(0, number, wrong.long()) > 0


def token_counts(preds: Tensor, target: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """Return how many tokens are labelled correctly, and how many there are; () int64 each.

    preds (B, T) predicted and target (B, T) gold label numbers, lengths (B,): all int64.

    Raises InputError for tensors of other shapes or types.
    """
    check_label_numbers(preds, target, lengths)
    real = sentence_boundaries(lengths, target.shape[1]).real
    return ((preds == target) & real).sum(), real.sum()


def sentence_counts(
    preds: Tensor, target: Tensor, lengths: Tensor, sentences: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Return how many sentences have no wrong token, and how many there are; () int64 each.

    preds (B, T) predicted and target (B, T) gold label numbers, lengths (B,): all int64. `sentences` (B, T) says which
    tokens of a document make a sentence, as in `sentence_boundaries`; without it each sequence is one. Sentences
    without tokens are not counted. Raises InputError for tensors of other shapes or types.
    """
    check_label_numbers(preds, target, lengths)
    boundaries = sentence_boundaries(lengths, target.shape[1], sentences)
    total = boundaries.first.sum()
    return total - sentence_errors(preds == target, boundaries).sum(), total


class _Accuracy(Metric):
    is_differentiable = False
    higher_is_better = True
    full_state_update = False
    plot_lower_bound = 0.0
    plot_upper_bound = 1.0

    def plot(self, val: Any = None, ax: Any = None) -> Any:
        """Draw the value, or a line through a sequence of values; return figure and axes."""
        return self._plot(val, ax)


class TokenAccuracy(_Accuracy):
    """Share of tokens whose label is correct; compute() -> () float64, 0.0 where there is no token."""

    tokens: Tensor
    right_tokens: Tensor

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        for name in ("tokens", "right_tokens"):
            self.add_state(name, torch.zeros((), dtype=torch.int64), "sum")

    def update(self, preds: Tensor, target: Tensor, lengths: Tensor, sentences: Tensor | None = None) -> None:
        """Count the tokens of preds (B, T) against gold, target (B, T); `sentences` make no difference."""
        right, total = token_counts(preds, target, lengths)
        self.right_tokens = self.right_tokens + right
        self.tokens = self.tokens + total

    def compute(self) -> Tensor:
        """Return the share of correct tokens in 0..1, () float64."""
        return self.right_tokens.double() / self.tokens.clamp(min=1)


class SentenceAccuracy(_Accuracy):
    """Share of sentences without a wrong token; compute() -> () float64, 0.0 where there is no sentence."""

    sentences: Tensor
    right_sentences: Tensor

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        for name in ("sentences", "right_sentences"):
            self.add_state(name, torch.zeros((), dtype=torch.int64), "sum")

    def update(self, preds: Tensor, target: Tensor, lengths: Tensor, sentences: Tensor | None = None) -> None:
        """Count the sentences of preds (B, T) against gold, target (B, T); lengths (B,). See `sentence_counts`."""
        right, total = sentence_counts(preds, target, lengths, sentences)
        self.right_sentences = self.right_sentences + right
        self.sentences = self.sentences + total

    def compute(self) -> Tensor:
        """Return the share of sentences without a wrong token in 0..1, () float64."""
        return self.right_sentences.double() / self.sentences.clamp(min=1)
