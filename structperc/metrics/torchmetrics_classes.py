"""Metrics of torchmetrics: counts are summed over batches and processes, and divided once."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, get_args

import torch
from torch import Tensor
from torchmetrics import Metric, MetricCollection
from torchmetrics.utilities.plot import plot_single_or_multi_val

from structperc.data.labels import LabelSet
from structperc.errors import InputError
from structperc.metrics.confidence_bins import Reliability, bin_sums, check_bins
from structperc.metrics.corpus_scores import CorpusScores
from structperc.metrics.counts import check_label_numbers, oracle, segment_counts, sentence_counts, token_counts
from structperc.metrics.f_measure import Average, SegmentScores, check_beta
from structperc.nn.inputs import IGNORE_INDEX, TokenPositions
from structperc.structures import Candidates


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

        `preds`: predicted label numbers (B, T) int64. `target`: gold label numbers (B, T) int64. `lengths`: (B,) int64;
        later tokens are padding. `sentences`: sentence number (B, T) int64 of each token; by default each sequence is
        one sentence.
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
    """

    items = "tokens"

    @staticmethod
    def count(preds: Tensor, target: Tensor, lengths: Tensor, sentences: Tensor | None) -> tuple[Tensor, Tensor]:
        """Return `token_counts`."""
        return token_counts(preds, target, lengths)


class SentenceAccuracy(_Accuracy):
    """Share of sentences without a wrong token; compute() -> () float64, 0.0 without sentences."""

    items = "sentences"

    @staticmethod
    def count(preds: Tensor, target: Tensor, lengths: Tensor, sentences: Tensor | None) -> tuple[Tensor, Tensor]:
        """Return `sentence_counts`."""
        return sentence_counts(preds, target, lengths, sentences)


class SegmentF1(Metric):
    """Precision, recall and F1 of segments over a corpus; compute() -> `SegmentScores`.

    Counts are summed over batches and processes. Without gold and predicted segments F1 is 0.0, without a warning.

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
        counts = (int(count) for count in (self.improper, self.tokens, self.correct_tokens))
        return SegmentScores.from_counts(self.labels.type_names, self.segments, *counts)

    def table(self) -> str:
        """Return the lines that conlleval prints; see `SegmentScores.table`."""
        return self.compute().table()

    def plot(self, val: SegmentScores | Sequence[SegmentScores] | None = None, ax: Any = None) -> Any:
        """Draw bars of F1, in total and per type, with one bar for each of a sequence of results.

        Returns figure and axes of matplotlib.
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

        `preds`: predicted label numbers (B, T) int64. `target`: gold label numbers (B, T) int64. `lengths`: number of
        tokens (B,) int64 of each row; by default tokens are the positions whose gold label is not -100. `sentences`:
        sentence number (B, T) int64 of each token; by default each sequence is one sentence.
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

    A segment is correct if a gold segment has the same type, first and last token. Arguments are those of
    `SegmentFScore`, without beta.
    """

    def share(self, correct: Tensor, found: Tensor, gold: Tensor) -> Tensor:
        """Return correct / found."""
        return correct / found.clamp(min=1)


class SegmentRecall(_SegmentShare):
    """Recall: the share of gold segments that are predicted, by the rule of conlleval, as one number.

    A gold segment is predicted if a predicted segment has the same type, first and last token. Arguments are those of
    `SegmentFScore`, without beta.
    """

    def share(self, correct: Tensor, found: Tensor, gold: Tensor) -> Tensor:
        """Return correct / gold."""
        return correct / gold.clamp(min=1)


class SegmentFScore(_SegmentShare):
    """F_beta of segments by the rule of conlleval, as one number; `SegmentF1` returns counts and a table.

    Args:
        average: "micro": F of the summed counts, as in conlleval; "macro": the mean over types that have a gold or a
            predicted segment; "weighted": the mean over types, weighted by gold segments.
        beta: weight of recall relative to precision, see `f_measure`.

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


class Evaluation(MetricCollection):
    """All scores of a tagger: segment F1 (for labels with a tag scheme), token accuracy and sentence accuracy.

    Call update(preds (B, T), target (B, T), lengths (B,), sentences (B, T) or None).

    Args:
        beta: weight of recall in the F measure of segments, see `f_measure`; 1 is that of conlleval.

    Raises:
        InputError: beta is not positive.
    """

    def __init__(self, labels: LabelSet, beta: float = 1.0) -> None:
        check_beta(beta)
        metrics = {"tokens": TokenAccuracy(), "sentences": SentenceAccuracy()}
        segments = {} if labels.scheme == "none" else {"segments": SegmentF1(labels)}
        super().__init__({**segments, **metrics}, compute_groups=False)
        self.beta = beta

    def scores(self) -> CorpusScores:
        """Return all scores."""
        segments = self["segments"].compute() if "segments" in self else None
        tokens, sentences = (float(self[name].compute()) for name in ("tokens", "sentences"))
        return CorpusScores(segments, tokens, sentences, self.beta)

    def compute(self) -> dict[str, float]:
        """Return the scores by name, in 0..1; see `CorpusScores.by_name`."""
        return self.scores().by_name()

    def table(self) -> str:
        """Return the table of segments (if the labels have any), token accuracy and sentence accuracy."""
        return self.scores().table()


class OracleF1(SegmentF1):
    """Segment F1 of the best candidate of each n-best list: an upper bound of re-ranking.

    compute() returns `SegmentScores`; counts are summed over the corpus, as in `SegmentF1`.
    """

    sequences: Tensor

    def __init__(self, labels: LabelSet, **kwargs: Any) -> None:
        super().__init__(labels, **kwargs)
        # a MetricCollection merges metrics of equal states: one state must have a different name
        self.add_state("sequences", torch.zeros((), dtype=torch.int64), "sum")

    def update(  # type: ignore[override]
        self, candidates: Candidates, target: Tensor, lengths: Tensor, sentences: Tensor | None = None
    ) -> None:
        """Count the segments of the best candidate of each sequence; see `oracle` for the arguments."""
        choice = oracle(candidates, target, lengths, self.labels, sentences)
        rows = torch.arange(len(choice), device=choice.device)
        self.sequences = self.sequences + len(choice)
        super().update(candidates.labels[rows, choice], target, lengths, sentences)


class Calibration(Metric):
    """Calibration of confidences, summed over batches and processes; compute() -> `Reliability`. Guo et al. 2017.

    Args:
        bins: number of bins of equal width, 1 to 10,000.

    Raises:
        InputError: bins out of range.

    Example:
        >>> import torch
        >>> from structperc.metrics import Calibration
        >>> calibration = Calibration(bins=10)
        >>> calibration.update(confidence=torch.tensor([0.75, 0.75]), correct=torch.tensor([True, False]))
        >>> calibration.compute().ece  # confidence 0.75, but half of them are right
        0.25
    """

    is_differentiable = False
    higher_is_better = None
    full_state_update = False

    counts: Tensor  # (2, bins) int64
    sums: Tensor  # (2, bins) float64

    def __init__(self, bins: int = 10, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        check_bins(bins)
        self.n_bins = bins
        self.add_state("counts", torch.zeros(2, bins, dtype=torch.int64), "sum")
        self.add_state("sums", torch.zeros(2, bins, dtype=torch.float64), "sum")

    def update(self, confidence: Tensor, correct: Tensor) -> None:
        """Add decisions.

        `confidence`: (n,), in 0..1. `correct`: (n,) bool, True for right decisions.
        """
        counts, sums = bin_sums(confidence, correct, self.n_bins)
        self.counts = self.counts + counts
        self.sums = self.sums + sums

    def compute(self) -> Reliability:
        """Return the Reliability of all decisions since the last reset."""
        return Reliability.from_sums(self.counts, self.sums)
