"""Precision, recall and F of segments as metrics of one number each, for loggers, trackers and collections."""

from abc import abstractmethod
from typing import Any, get_args

import torch
from torch import Tensor
from torchmetrics import Metric

from structperc.data.labels import LabelSet
from structperc.errors import InputError
from structperc.metrics.accuracy import check_label_numbers
from structperc.metrics.segments import Average, check_beta, segment_counts
from structperc.nn.inputs import IGNORE_INDEX, TokenPositions


class _SegmentShare(Metric):
    """Base: counts of correct, found and gold segments by type, summed over batches and processes.

    Args:
        labels: their names and tag scheme.
        average: over types. "micro": one share of the counts of all; "macro": the mean of the shares of types that have
            a gold or a predicted segment; "weighted": that mean, weighted by gold segments.

    Raises:
        InputError: labels without segments, an unknown average.
    """

    is_differentiable = False
    higher_is_better = True
    full_state_update = False
    plot_lower_bound = 0.0
    plot_upper_bound = 1.0

    segments: Tensor  # (3, types) int64: correct, found, gold

    def __init__(self, labels: LabelSet, average: Average = "micro", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if labels.scheme == "none":
            raise InputError(f"{type(self).__name__}: labels of scheme none have no segments; use TokenAccuracy")
        if average not in get_args(Average):
            raise InputError(f"{type(self).__name__}: average must be micro, macro or weighted, got {average!r}")
        self.labels, self.average = labels, average
        self.add_state("segments", torch.zeros(3, len(labels.type_names), dtype=torch.int64), "sum")

    @abstractmethod
    def share(self, correct: Tensor, found: Tensor, gold: Tensor) -> Tensor:
        """Return the share for each of some counts; 0 where it has no denominator."""

    def update(
        self, preds: Tensor, target: Tensor, lengths: Tensor | None = None, sentences: Tensor | None = None
    ) -> None:
        """Count the segments of preds (B, T) against gold, target (B, T), both int64.

        Tokens are the first lengths (B,) of each row; without lengths those whose gold label is not -100, wherever they
        stand. `sentences` (B, T) are as in `segment_counts`, and so is how segments are read.
        """
        if lengths is None:
            check_label_numbers(preds, target)
            places = TokenPositions.of(target != IGNORE_INDEX)
            preds, target, lengths = places.chain(preds), places.chain(target), places.lengths
            sentences = None if sentences is None else places.chain(sentences)
        *counts, _ = segment_counts(preds, target, lengths, self.labels, sentences)
        self.segments = self.segments + torch.stack([count.sum(0) for count in counts])

    def compute(self) -> Tensor:
        """Return the share in 0..1, () float64; 0 where there is no segment."""
        counts = self.segments.double()
        if self.average == "micro":
            return self.share(*counts.sum(1))
        weights = counts[2] if self.average == "weighted" else (counts[1:].sum(0) > 0).double()
        return (self.share(*counts) * weights).sum() / weights.sum().clamp(min=1)

    def plot(self, val: Any = None, ax: Any = None) -> Any:
        """Draw the value, or a line through a sequence of values; return figure and axes."""
        return self._plot(val, ax)


class SegmentPrecision(_SegmentShare):
    """Share of the predicted segments that are correct: same type, first and last token as a gold segment.

    Arguments and errors are those of `SegmentFScore`, without beta.
    """

    def share(self, correct: Tensor, found: Tensor, gold: Tensor) -> Tensor:
        """Return correct / found."""
        return correct / found.clamp(min=1)


class SegmentRecall(_SegmentShare):
    """Share of the gold segments that are found: same type, first and last token as a predicted segment.

    Arguments and errors are those of `SegmentFScore`, without beta.
    """

    def share(self, correct: Tensor, found: Tensor, gold: Tensor) -> Tensor:
        """Return correct / gold."""
        return correct / gold.clamp(min=1)


class SegmentFScore(_SegmentShare):
    """F_gamma of segments by the rule of conlleval, as one number; `SegmentF1` has the counts and the table.

    Args:
        labels: their names and tag scheme.
        average: over types. "micro": F of the counts of all, that of conlleval; "macro": the mean of the F of types
            that have a gold or a predicted segment; "weighted": that mean, weighted by gold segments.
        beta: how many times recall counts as much as precision, see `f_measure`.

    Raises:
        InputError: labels without segments, an unknown average, beta <= 0.
    """

    def __init__(self, labels: LabelSet, average: Average = "micro", beta: float = 1.0, **kwargs: Any) -> None:
        super().__init__(labels, average, **kwargs)
        check_beta(beta)
        self.beta = beta

    def share(self, correct: Tensor, found: Tensor, gold: Tensor) -> Tensor:
        """Return (beta^2 + 1) correct / (beta^2 gold + found)."""
        either = self.beta**2 * gold + found
        return (self.beta**2 + 1) * correct / either.where(either > 0, 1)
