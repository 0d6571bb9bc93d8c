"""Precision, recall and F of segments by the rule of the conlleval script (Tjong Kim Sang & Buchholz 2000)."""

from abc import abstractmethod
from collections.abc import Sequence
from math import inf
from typing import Any, Literal, NamedTuple, get_args

import torch
from torch import Tensor
from torchmetrics import Metric

from structperc.data.labels import LabelSet, segment_boundaries, shift
from structperc.errors import InputError
from structperc.metrics.accuracy import (
    SentenceBoundaries,
    ShareMetric,
    check_label_numbers,
    sentence_boundaries,
    token_counts,
)
from structperc.nn.inputs import IGNORE_INDEX, TokenPositions


def f_measure(*, correct: int, found: int, gold: int, beta: float = 1.0) -> float:
    """Return F_beta from counts of segments. Suzuki, McDermott & Isozaki 2006, Eq. 13 (beta is gamma there).

    F_beta = (beta^2 + 1) TP / (beta^2 FN + FP + (beta^2 + 1) TP). With TP = correct, FN = gold - correct and
    FP = found - correct the denominator is beta^2 gold + found.

    Args:
        correct: number of correct segments.
        found: number of predicted segments.
        gold: number of gold segments.
        beta: weight of recall relative to precision; 1 is the measure of conlleval.

    Returns:
        F_beta in 0..1; 0.0 without gold and predicted segments.

    Raises:
        InputError: beta is not positive, or infinite.
    """
    check_beta(beta)
    weighted = beta * beta * gold + found
    return (beta * beta + 1) * correct / weighted if weighted else 0.0


def check_beta(beta: float) -> None:
    """Raise InputError unless 0 < beta < infinity."""
    if not 0 < beta < inf:
        raise InputError(f"beta must be > 0 and finite, got {beta}; 1 is the F measure of conlleval")


Average = Literal["micro", "macro", "weighted"]  # over segment types


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
    of a sentence. A label is improper if it may not follow the previous label, or not begin or end a sentence.

    Args:
        preds: predicted label numbers (B, T) int64, or those of candidates (B, K, T).
        target: gold label numbers (B, T) int64.
        lengths: (B,) int64; later tokens are padding, with any labels.
        labels: names and tag scheme of the labels.
        sentences: sentence number (B, T) int64 of each token: a sentence begins wherever it changes. By default each
            sequence is one sentence.

    Returns:
        Counts of each sequence, or of each candidate.

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


class SegmentScore(NamedTuple):
    """Counts of segments and their scores; a score without a denominator is 0.0.

    Attributes:
        correct: number of predicted segments with the type, first and last token of a gold segment.
        found: number of predicted segments.
        gold: number of gold segments.
    """

    correct: int
    found: int
    gold: int

    @property
    def precision(self) -> float:
        """The share of correct segments among the predicted ones."""
        return self.correct / max(self.found, 1)

    @property
    def recall(self) -> float:
        """The share of correctly predicted segments among the gold ones."""
        return self.correct / max(self.gold, 1)

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall: 2 correct / (found + gold)."""
        return 2 * self.correct / max(self.found + self.gold, 1)

    def f(self, beta: float = 1.0) -> float:
        """Return F_beta, see `f_measure`.

        Raises:
            InputError: beta is not positive, or infinite.
        """
        return f_measure(**self._asdict(), beta=beta)


class SegmentScores(NamedTuple):
    """Scores of segments over a corpus, per type and in total; types without segments are not in the table.

    Attributes:
        types: counts of each type.
        n_improper: number of predicted labels that the tag scheme does not allow at their position.
        tokens: number of tokens.
        correct_tokens: number of tokens whose label is correct.
    """

    types: dict[str, SegmentScore]
    n_improper: int
    tokens: int
    correct_tokens: int

    @property
    def total(self) -> SegmentScore:
        """The sums of counts over all types, so that scores are micro averages."""
        scores = self.types.values()
        return SegmentScore(sum(s.correct for s in scores), sum(s.found for s in scores), sum(s.gold for s in scores))

    @property
    def f1(self) -> float:
        """The F1 of all segments, in 0..1."""
        return self.total.f1

    def f(self, beta: float = 1.0) -> float:
        """Return the F_beta of all segments, in 0..1; see `f_measure`."""
        return self.total.f(beta)

    @property
    def precision(self) -> float:
        """The precision of all segments, in 0..1."""
        return self.total.precision

    @property
    def recall(self) -> float:
        """The recall of all segments, in 0..1."""
        return self.total.recall

    @property
    def macro_f1(self) -> float:
        """The mean F1 of the `nonempty_types`, in 0..1; 0.0 without any."""
        return sum(score.f1 for score in self.nonempty_types.values()) / max(len(self.nonempty_types), 1)

    @property
    def nonempty_types(self) -> dict[str, SegmentScore]:
        """The types with at least one gold or predicted segment, and their counts."""
        return {name: score for name, score in self.types.items() if score.found or score.gold}

    def table(self, beta: float = 1.0) -> str:
        """Return the lines that conlleval prints, with F_beta as FB{beta}, and the number of improper labels."""
        correct, found, gold = self.total
        accuracy = 100 * self.correct_tokens / max(self.tokens, 1)
        lines = [
            f"processed {self.tokens} tokens with {gold} phrases; found: {found} phrases; correct: {correct}.",
            f"accuracy: {accuracy:6.2f}%; {_line(self.total, beta)}",
            *(f"{name:>17}: {_line(score, beta)}  {score.found}" for name, score in self.nonempty_types.items()),
            f"improper labels: {self.n_improper}",
        ]
        return "\n".join(lines)


def _line(score: SegmentScore, beta: float) -> str:
    precision, recall, f = (100 * share for share in (score.precision, score.recall, score.f(beta)))
    return f"precision: {precision:6.2f}%; recall: {recall:6.2f}%; FB{beta:g}: {f:6.2f}"


class SegmentF1(Metric):
    """Precision, recall and F1 of segments over a corpus; compute() -> `SegmentScores`.

    Counts are summed over batches and processes. Without gold and predicted segments F1 is 0.0, without a warning.

    Args:
        labels: names and tag scheme of the labels.
        kwargs: options of `torchmetrics.Metric`.

    Example:
        >>> import torch
        >>> from structperc.data import LabelSet
        >>> from structperc.metrics import SegmentF1
        >>> metric = SegmentF1(LabelSet(("O", "B-LOC", "B-PER"), "IOB2"))
        >>> metric.update(torch.tensor([[1, 0, 0]]), torch.tensor([[1, 0, 2]]), lengths=torch.tensor([3]))
        >>> scores = metric.compute()
        >>> scores.precision, scores.recall, round(scores.f1, 3), scores.types["LOC"].f1
        (1.0, 0.5, 0.667, 1.0)
    """

    is_differentiable = False
    higher_is_better = True
    full_state_update = False

    segments: Tensor  # (3, types) int64: correct, found, gold
    improper: Tensor
    tokens: Tensor
    correct_tokens: Tensor

    def __init__(self, labels: LabelSet, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.labels = labels
        self.add_state("segments", torch.zeros(3, len(labels.type_names), dtype=torch.int64), "sum")
        for name in ("improper", "tokens", "correct_tokens"):
            self.add_state(name, torch.zeros((), dtype=torch.int64), "sum")

    def add_missed(self, types: Sequence[str]) -> None:
        """Count further gold segments, given by their types, as missed."""
        self.segments[2] += torch.tensor([types.count(name) for name in self.labels.type_names]).to(self.segments)

    def update(self, preds: Tensor, target: Tensor, lengths: Tensor, sentences: Tensor | None = None) -> None:
        """Count the segments of a batch.

        Args:
            preds: predicted label numbers (B, T) int64.
            target: gold label numbers (B, T) int64.
            lengths: (B,) int64; later tokens are padding.
            sentences: sentence number (B, T) int64 of each token; by default each sequence is one sentence.

        Raises:
            InputError: labels without a scheme, or tensors of other shapes or types.
        """
        *counts, improper = segment_counts(preds, target, lengths, self.labels, sentences)
        correct, total = token_counts(preds, target, lengths)
        self.segments = self.segments + torch.stack([count.sum(0) for count in counts])
        self.improper = self.improper + improper.sum()
        self.correct_tokens = self.correct_tokens + correct
        self.tokens = self.tokens + total

    def compute(self) -> SegmentScores:
        """Return the SegmentScores of all batches since the last reset."""
        scores = [SegmentScore(*counts) for counts in self.segments.t().tolist()]
        types = dict(zip(self.labels.type_names, scores, strict=True))
        return SegmentScores(types, int(self.improper), int(self.tokens), int(self.correct_tokens))

    def table(self) -> str:
        """Return the lines that conlleval prints; see `SegmentScores.table`."""
        return self.compute().table()

    def plot(self, val: SegmentScores | Sequence[SegmentScores] | None = None, ax: Any = None) -> Any:
        """Draw bars of F1, in total and per type, with one bar for each of a sequence of results.

        Returns:
            Figure and axes of matplotlib.
        """
        from matplotlib import pyplot as plt

        results = [val or self.compute()] if val is None or isinstance(val, SegmentScores) else list(val)
        ax = ax or plt.subplots()[1]
        names = [name for name in self.labels.type_names if any(name in result.nonempty_types for result in results)]
        width = 0.8 / len(results)
        for i, result in enumerate(results):
            shares = [result.f1, *(result.types[name].f1 for name in names)]
            ax.bar([x + i * width for x in range(len(shares))], [100 * share for share in shares], width)
        ax.set_xticks([x + 0.4 - width / 2 for x in range(len(names) + 1)], ["all", *names])
        ax.set(ylim=(0, 100), ylabel="segment F1 (%)")
        return ax.figure, ax


class _SegmentShare(ShareMetric):
    """Base class of single scores of segments, whose counts are summed over batches and processes.

    Args:
        labels: names and tag scheme of the labels.
        average: "micro": the score of the summed counts; "macro": the mean over types that have a gold or a predicted
            segment; "weighted": the mean over types, weighted by gold segments.

    Raises:
        InputError: labels without segments, or an unknown average.
    """

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
        """Return the score of each element of the counts; 0 without a denominator."""

    def update(
        self, preds: Tensor, target: Tensor, lengths: Tensor | None = None, sentences: Tensor | None = None
    ) -> None:
        """Count the segments of a batch; see `segment_counts`.

        Args:
            preds: predicted label numbers (B, T) int64.
            target: gold label numbers (B, T) int64.
            lengths: number of tokens (B,) int64 of each row; by default tokens are the positions whose gold label is
                not -100.
            sentences: sentence number (B, T) int64 of each token; by default each sequence is one sentence.
        """
        if lengths is None:
            check_label_numbers(preds, target)
            places = TokenPositions.from_mask(target != IGNORE_INDEX)
            preds, target, lengths = places.gather(preds), places.gather(target), places.lengths
            sentences = None if sentences is None else places.gather(sentences)
        *counts, _ = segment_counts(preds, target, lengths, self.labels, sentences)
        self.segments = self.segments + torch.stack([count.sum(0) for count in counts])

    def compute(self) -> Tensor:
        """Return the score in 0..1, () float64; 0 without segments."""
        counts = self.segments.double()
        if self.average == "micro":
            return self.share(*counts.sum(1))
        weights = counts[2] if self.average == "weighted" else (counts[1:].sum(0) > 0).double()
        return (self.share(*counts) * weights).sum() / weights.sum().clamp(min=1)


class SegmentPrecision(_SegmentShare):
    """Precision: the share of correct segments among the predicted ones, by the rule of conlleval, as one number.

    A segment is correct if a gold segment has the same type, first and last token.

    Args:
        labels: names and tag scheme of the labels.
        average: "micro": precision of the summed counts, as in conlleval; "macro": the mean over types that have a gold
            or a predicted segment; "weighted": the mean over types, weighted by gold segments.
        kwargs: options of `torchmetrics.Metric`.

    Raises:
        InputError: labels without segments, or an unknown average.
    """

    def share(self, correct: Tensor, found: Tensor, gold: Tensor) -> Tensor:
        """Return correct / found."""
        return correct / found.clamp(min=1)


class SegmentRecall(_SegmentShare):
    """Recall: the share of gold segments that are predicted, by the rule of conlleval, as one number.

    A gold segment is predicted if a predicted segment has the same type, first and last token.

    Args:
        labels: names and tag scheme of the labels.
        average: "micro": recall of the summed counts, as in conlleval; "macro": the mean over types that have a gold
            or a predicted segment; "weighted": the mean over types, weighted by gold segments.
        kwargs: options of `torchmetrics.Metric`.

    Raises:
        InputError: labels without segments, or an unknown average.
    """

    def share(self, correct: Tensor, found: Tensor, gold: Tensor) -> Tensor:
        """Return correct / gold."""
        return correct / gold.clamp(min=1)


class SegmentFScore(_SegmentShare):
    """F_beta of segments by the rule of conlleval, as one number; `SegmentF1` returns counts and a table.

    Args:
        labels: names and tag scheme of the labels.
        average: "micro": F of the summed counts, as in conlleval; "macro": the mean over types that have a gold or a
            predicted segment; "weighted": the mean over types, weighted by gold segments.
        beta: weight of recall relative to precision, see `f_measure`.
        kwargs: options of `torchmetrics.Metric`.

    Raises:
        InputError: labels without segments, an unknown average, or beta <= 0.
    """

    def __init__(self, labels: LabelSet, average: Average = "micro", beta: float = 1.0, **kwargs: Any) -> None:
        super().__init__(labels, average, **kwargs)
        check_beta(beta)
        self.beta = beta

    def share(self, correct: Tensor, found: Tensor, gold: Tensor) -> Tensor:
        """Return (beta^2 + 1) correct / (beta^2 gold + found)."""
        either = self.beta**2 * gold + found
        return (self.beta**2 + 1) * correct / either.where(either > 0, 1)
