"""Calibration of saved models: confidence of their predictions against accuracy, as text, CSV and diagrams."""

from collections.abc import Iterator, Sequence
from textwrap import fill
from typing import NamedTuple

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from structperc.chain.confidence import segment_confidence, token_confidence
from structperc.chain.segments import Segments
from structperc.data.corpus import Corpus
from structperc.data.labels import LabelSet
from structperc.errors import InputError
from structperc.metrics.confidence_bins import Reliability, bin_sums, check_bins
from structperc.metrics.counts import opened_segments
from structperc.models.chain_model import ChainModel
from structperc.progress import bar
from structperc.reports.figures import escape_dollars, open_frame, plain_log_ticks
from structperc.reports.tables import percent, text_table
from structperc.structures import Batch, SentenceBoundaries, real_tokens


class ModelReliability(NamedTuple):
    """The reliability of one model; `segments` is None for labels that are not segments."""

    name: str
    tokens: Reliability
    segments: Reliability | None
    types: dict[str, Reliability] = {}  # noqa: RUF012  # of segments, by type, on request

    @property
    def levels(self) -> list[tuple[str, Reliability]]:
        """The pairs (name, Reliability) of tokens, segments and types."""
        segments = [] if self.segments is None else [("segments", self.segments)]
        return [("tokens", self.tokens), *segments, *self.types.items()]


def reliability(
    tagger: ChainModel, corpus: Corpus, bins: int = 10, name: str = "model", progress: bool = True, types: bool = False
) -> ModelReliability:
    """Compare the confidence of predicted labels and segments with their accuracy; labels are in the tagger's scheme.

    Confidence is a probability under p(y | x) = exp(s(y) / T - log Z(s / T)), with the tagger's temperature T or 1: of
    the predicted label of a token, and of exactly the predicted segment (see `segment_confidence`), which is correct if
    it is a gold segment. Only likelihood, or a fitted temperature, makes p a probability; `ChainModel.marginals`
    raises an error for other models. Here p is computed for all models, to show the difference.

    Args:
        tagger: A tagger without non-local features.
        corpus: Sentences with gold labels.
        bins: Number of bins of equal width.
        name: Name of the model in tables and figures.
        progress: Show a progress bar.
        types: Add the reliability of the segments of each type.

    Returns:
        The reliability of tokens and, if the labels are segments, of segments.

    Raises:
        InputError: The model has non-local features or is a re-ranker, so that its scores have no sum over all label
            sequences; the corpus has no labels; or `bins` is below 1.

    Example:
        >>> from structperc import Corpus
        >>> from structperc.sklearn import SequenceTagger
        >>> X, y = [["Anna", "left"], ["She", "saw", "Oslo"]], [["B-PER", "O"], ["O", "O", "B-LOC"]]
        >>> tagger = SequenceTagger(max_iterations=5).fit(X, y).tagger_
        >>> corpus = Corpus.from_sentences([{"word": words, "label": labels} for words, labels in zip(X, y)])
        >>> tokens = reliability(tagger, corpus, progress=False).tokens.all
        >>> tokens.n, tokens.accuracy, 0.3 < tokens.confidence < 1
        (5, 1.0, True)
    """
    if tagger.nonlocal_features:
        raise InputError("the model has non-local features, so its scores have no normaliser; give a local model")
    if "label" not in corpus.columns:
        raise InputError(f"{corpus.name}: there are no gold labels; give a column 'label'")
    check_bins(bins)
    labels, total = tagger.gold_labels(corpus), -(-len(corpus) // 64)
    batches = bar(tagger.batches(corpus), f"scoring {name}", total, progress)
    none = torch.empty(0), torch.empty(0, dtype=torch.bool)
    parts = [(none, (*none, torch.empty(0, dtype=torch.int64))), *(_confidences(tagger, x, labels) for x in batches)]
    of_tokens, of_segments = zip(*parts, strict=True)
    tokens = [torch.cat(x) for x in zip(*of_tokens, strict=True)]
    confidence, correct, kinds = (torch.cat(x) for x in zip(*of_segments, strict=True))
    by_type = {}
    for kind in tagger.labels.type_names if types else ():
        of_kind = kinds == labels.type_names.index(kind)
        by_type[kind] = Reliability.from_sums(*bin_sums(confidence[of_kind], correct[of_kind], bins))
    segments = Reliability.from_sums(*bin_sums(confidence, correct, bins))
    segment_result = None if tagger.labels.scheme == "none" else segments
    return ModelReliability(name, Reliability.from_sums(*bin_sums(tokens[0], tokens[1], bins)), segment_result, by_type)


@torch.no_grad()
def _confidences(tagger: ChainModel, batch: Batch, names: LabelSet) -> tuple[list[Tensor], list[Tensor]]:
    """Return confidence (n,) and correct (n,) bool of tokens, and of predicted segments with their types (n,) int64.

    `names` are the labels that number the gold labels and types.
    """
    assert batch.gold is not None
    lattice = tagger(batch)
    labels, lattice = tagger.biases.current(tagger.decoder).best(lattice), tagger.scaled(lattice)
    real = real_tokens(batch.lengths, labels.shape[1])
    of_tokens = token_confidence(lattice, labels)[real], (labels == batch.gold)[real]
    boundaries = SentenceBoundaries(real, batch.first, batch.last)
    predicted, gold = (opened_segments(ids, boundaries, names) for ids in (labels, batch.gold))
    rows, starts = (predicted.kind >= 0).nonzero(as_tuple=True)
    segments = Segments(rows, starts, predicted.end[rows, starts] + 1)
    correct = (predicted.kind == gold.kind) & (predicted.end == gold.end)
    confidence = segment_confidence(lattice, labels, segments, boundaries, tagger.labels)
    of_segments = confidence, correct[rows, starts], predicted.kind[rows, starts]
    return [part.cpu() for part in of_tokens], [part.cpu() for part in of_segments]


HEADER = ("model", "of", "low", "high", "n", "confidence", "accuracy")


def reliability_lines(found: Sequence[ModelReliability]) -> Iterator[str]:
    """Yield a line of totals for each model, in per cent, then its bins."""
    rows = [["model", "of", "n", "accuracy", "confidence", "ECE", "Brier"]]
    for model in found:
        for level, result in model.levels:
            shares = (result.all.accuracy, result.all.confidence, result.ece, result.brier)
            rows.append([model.name, level, str(result.all.n), *map(percent, shares)])
    yield from text_table(rows, "<<>")
    for model in found:
        for level, result in model.levels:
            bins = [["confidence", "n", "mean", "accuracy"]]
            for b in result.bins:
                means = [percent(b.confidence), percent(b.accuracy)] if b.n else []
                bins.append([f"{b.low:.2f} .. {b.high:.2f}", str(b.n), *means])
            yield from ("", f"{model.name}: {level}", *text_table(bins))


def bin_rows(found: Sequence[ModelReliability]) -> Iterator[tuple[object, ...]]:
    """Yield a row of the CSV file for each bin of each model; see HEADER for its columns."""
    for model in found:
        for level, result in model.levels:
            for b in result.bins:
                yield model.name, level, b.low, b.high, b.n, b.confidence, b.accuracy


TITLE_WIDTH = 40  # characters of a line


def plot_reliability(models: Sequence[tuple[str, list[tuple[str, Reliability]]]]) -> Figure:
    r"""Return a figure with one column per model: for tokens and for segments a diagram above its counts.

    The diagrams are those of Guo et al. 2017, Figure 1.

    Args:
        models: Name and `ModelReliability.levels` of each model.

    Example:
        >>> import torch
        >>> sums = bin_sums(torch.tensor([0.9, 0.8, 0.4]), torch.tensor([True, True, False]), 5)
        >>> figure = plot_reliability([("CRF", [("tokens", Reliability.from_sums(*sums))])])
        >>> [ax.get_title() for ax in figure.axes]
        ['CRF\ntokens', '']
    """
    levels = max(len(results) for _, results in models)
    figure = Figure(figsize=(3.6 * len(models), 4.6 * levels), layout="constrained")
    axes = figure.subplots(2 * levels, len(models), squeeze=False, sharex=True, height_ratios=[3, 1] * levels)
    for column, (name, results) in enumerate(models):
        for level, (of, result) in enumerate(results):
            _diagram(axes[2 * level, column], result, escape_dollars(f"{fill(name, TITLE_WIDTH)}\n{of}"))
            _draw_counts(axes[2 * level + 1, column], result)
        for ax in axes[2 * len(results) :, column]:
            ax.set_axis_off()
    return figure


def _diagram(ax: Axes, result: Reliability, title: str) -> None:
    filled = [b for b in result.bins if b.n]
    lows, width = [b.low for b in filled], 1 / len(result.bins)
    ax.bar(lows, [b.accuracy for b in filled], width, align="edge", color="tab:blue", edgecolor="white")
    ax.plot([b.confidence for b in filled], [b.accuracy for b in filled], "o-", color="tab:orange", ms=3)
    ax.plot([0, 1], [0, 1], "--", color="black", linewidth=0.8)
    ax.text(0.03, 0.95, f"ECE {100 * result.ece:.2f} %", va="top", transform=ax.transAxes)
    ax.set(xlim=(0, 1), ylim=(0, 1), ylabel="accuracy")
    ax.set_title(title, fontsize=10)
    open_frame(ax)


def _draw_counts(ax: Axes, result: Reliability) -> None:
    width = 1 / len(result.bins)
    ax.bar([b.low for b in result.bins], [b.n for b in result.bins], width, align="edge", color="tab:gray")
    if result.all.n:
        ax.set(yscale="log", ylim=(0.5, 2 * max(b.n for b in result.bins)))
        plain_log_ticks(ax.yaxis, 3)
    ax.set(xlabel="confidence", ylabel="number")
    open_frame(ax)
