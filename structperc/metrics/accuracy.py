"""Accuracy of tokens and of whole sentences, and the boundaries of sentences in a batch of documents."""

from abc import abstractmethod
from typing import Any

import torch
from torch import Tensor
from torchmetrics import Metric
from torchmetrics.utilities.plot import plot_single_or_multi_val

from structperc.data.labels import shift
from structperc.errors import InputError
from structperc.structures import SentenceBoundaries, real_tokens


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
    """Count the correctly labelled tokens and all tokens.

    Args:
        preds: predicted label numbers (B, T) int64.
        target: gold label numbers (B, T) int64.
        lengths: (B,) int64; later tokens are padding.

    Returns:
        The two numbers, () int64 each.

    Raises:
        InputError: tensors of other shapes or types.
    """
    check_label_numbers(preds, target, lengths)
    real = sentence_boundaries(lengths, target.shape[1]).real
    return ((preds == target) & real).sum(), real.sum()


def sentence_counts(
    preds: Tensor, target: Tensor, lengths: Tensor, sentences: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Count the sentences without a wrong token and all sentences.

    Args:
        preds: predicted label numbers (B, T) int64.
        target: gold label numbers (B, T) int64.
        lengths: (B,) int64; later tokens are padding.
        sentences: sentence number (B, T) int64 of each token: a sentence begins wherever it changes. By default each
            sequence is one sentence.

    Returns:
        The two numbers, () int64 each.

    Raises:
        InputError: tensors of other shapes or types.
    """
    check_label_numbers(preds, target, lengths)
    boundaries = sentence_boundaries(lengths, target.shape[1], sentences)
    total = boundaries.first.sum()
    return total - sentence_errors(preds == target, boundaries).sum(), total


class ShareMetric(Metric):
    """Base class of metrics whose value is a share in 0..1, () float64."""

    is_differentiable = False
    higher_is_better = True
    full_state_update = False

    def plot(self, val: Any = None, ax: Any = None) -> Any:
        """Draw the value, or a line through a sequence of values; return figure and axes."""
        return plot_single_or_multi_val(
            self.compute() if val is None else val,
            ax=ax,
            higher_is_better=True,
            name=type(self).__name__,
            lower_bound=0.0,
            upper_bound=1.0,
        )


class _Accuracy(ShareMetric):
    """Base class of accuracies, which count right items and all items."""

    items: str

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        # different names, since a MetricCollection merges states of equal names and values
        for name in (self.items, f"right_{self.items}"):
            self.add_state(name, torch.zeros((), dtype=torch.int64), "sum")

    @staticmethod
    @abstractmethod
    def count(preds: Tensor, target: Tensor, lengths: Tensor, sentences: Tensor | None) -> tuple[Tensor, Tensor]:
        """Return the numbers of right items and of all items."""

    def update(self, preds: Tensor, target: Tensor, lengths: Tensor, sentences: Tensor | None = None) -> None:
        """Count the items of a batch.

        Args:
            preds: predicted label numbers (B, T) int64.
            target: gold label numbers (B, T) int64.
            lengths: (B,) int64; later tokens are padding.
            sentences: sentence number (B, T) int64 of each token; by default each sequence is one sentence.
        """
        right, total = self.count(preds, target, lengths, sentences)
        setattr(self, f"right_{self.items}", getattr(self, f"right_{self.items}") + right)
        setattr(self, self.items, getattr(self, self.items) + total)

    def compute(self) -> Tensor:
        """Return the share of right items, () float64; 0.0 without items."""
        return getattr(self, f"right_{self.items}").double() / getattr(self, self.items).clamp(min=1)


class TokenAccuracy(_Accuracy):
    """Share of tokens whose label is correct; compute() -> () float64, 0.0 without tokens.

    Args:
        kwargs: options of `torchmetrics.Metric`.

    Example:
        >>> import torch
        >>> from structperc.metrics import TokenAccuracy
        >>> accuracy = TokenAccuracy()
        >>> accuracy.update(torch.tensor([[0, 1, 1]]), torch.tensor([[0, 1, 2]]), torch.tensor([3]))
        >>> round(accuracy.compute().item(), 3)
        0.667
    """

    items = "tokens"

    @staticmethod
    def count(preds: Tensor, target: Tensor, lengths: Tensor, sentences: Tensor | None) -> tuple[Tensor, Tensor]:
        """Return `token_counts`."""
        return token_counts(preds, target, lengths)


class SentenceAccuracy(_Accuracy):
    """Share of sentences without a wrong token; compute() -> () float64, 0.0 without sentences.

    Args:
        kwargs: options of `torchmetrics.Metric`.
    """

    items = "sentences"

    @staticmethod
    def count(preds: Tensor, target: Tensor, lengths: Tensor, sentences: Tensor | None) -> tuple[Tensor, Tensor]:
        """Return `sentence_counts`."""
        return sentence_counts(preds, target, lengths, sentences)
