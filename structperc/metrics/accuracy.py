"""Accuracy of tokens and of whole sentences."""

from typing import Any

import torch
from torch import Tensor
from torchmetrics import Metric

from structperc.metrics.sentences import right_sentences, sentence_borders


def token_counts(predicted: Tensor, gold: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """predicted (B, T), gold (B, T), lengths (B,) -> right tokens, all tokens; () int64 each."""
    real = sentence_borders(lengths, gold.shape[1]).real
    return ((predicted == gold) & real).sum(), real.sum()


def sentence_counts(
    predicted: Tensor, gold: Tensor, lengths: Tensor, sentences: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """predicted (B, T), gold (B, T), lengths (B,) -> sentences without a wrong token, all sentences; () int64 each.

    `sentences` (B, T) says which tokens of a document make a sentence, as in `sentence_borders`; without it
    each sequence is one. Sentences without tokens are not counted.
    """
    borders = sentence_borders(lengths, gold.shape[1], sentences)
    return right_sentences(predicted == gold, borders).sum(), borders.first.sum()


class _Accuracy(Metric):
    """Right ones and all, summed over batches and processes, divided once; 0.0 when there was nothing."""

    is_differentiable = False
    higher_is_better = True
    full_state_update = False
    plot_lower_bound = 0.0
    plot_upper_bound = 1.0
    counted: (
        str  # gives each class its own state names: a MetricCollection merges metrics whose states look alike
    )

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        for name in (self.counted, f"right_{self.counted}"):
            self.add_state(name, torch.zeros((), dtype=torch.int64), "sum")

    def count(self, right: Tensor, total: Tensor) -> None:
        """Add a batch's counts, () int64 each."""
        setattr(self, f"right_{self.counted}", getattr(self, f"right_{self.counted}") + right)
        setattr(self, self.counted, getattr(self, self.counted) + total)

    def compute(self) -> Tensor:
        """-> share () float64, in 0..1."""
        right, total = getattr(self, f"right_{self.counted}"), getattr(self, self.counted)
        return right.double() / total.clamp(min=1)

    def plot(self, val: Any = None, ax: Any = None) -> Any:
        """-> (figure, axes) with the value, or with a line through a sequence of values."""
        return self._plot(val, ax)


class TokenAccuracy(_Accuracy):
    """Share of tokens whose label is right; compute() -> () float64."""

    counted = "tokens"

    def update(
        self, predicted: Tensor, gold: Tensor, lengths: Tensor, sentences: Tensor | None = None
    ) -> None:
        """predicted (B, T), gold (B, T), lengths (B,); sentences change nothing."""
        self.count(*token_counts(predicted, gold, lengths))


class SentenceAccuracy(_Accuracy):
    """Share of sentences without a wrong token; compute() -> () float64."""

    counted = "sentences"

    def update(
        self, predicted: Tensor, gold: Tensor, lengths: Tensor, sentences: Tensor | None = None
    ) -> None:
        """predicted (B, T), gold (B, T), lengths (B,), sentences (B, T) or None; see `sentence_counts`."""
        self.count(*sentence_counts(predicted, gold, lengths, sentences))
