"""Accuracy of tokens and of whole sentences."""

from typing import Any

import torch
from torch import Tensor
from torchmetrics import Metric

from structperc.metrics.sentences import check_label_numbers, sentence_boundaries, wrong_sentences


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
    return total - wrong_sentences(preds == target, boundaries).sum(), total


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
