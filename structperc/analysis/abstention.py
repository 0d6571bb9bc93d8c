"""Scores of a saved model when its segments of low probability are dropped, as text and as a figure."""

from collections.abc import Iterator, Sequence

import torch
from matplotlib.figure import Figure

from structperc.data.corpus import Corpus
from structperc.metrics.abstention_curve import AbstentionPoint, abstention_curve
from structperc.models.chain_model import ChainModel
from structperc.predictor.base import Prediction
from structperc.reports.figures import escape_dollars, open_frame, series_style
from structperc.reports.tables import percent, text_table

Curve = tuple[str, Sequence[AbstentionPoint]]  # name of a model, and its points


def abstention(tagger: ChainModel, corpus: Corpus, points: int = 20) -> list[AbstentionPoint]:
    """Return the scores of the predicted segments that are kept when those of low probability are dropped.

    Args:
        tagger: A tagger with probabilities.
        corpus: Sentences with gold labels in the scheme of the tagger.
        points: Number of shares of kept segments.

    Returns:
        The points of `metrics.abstention_curve`.

    Raises:
        InputError: The tagger has no probabilities.

    Example:
        >>> from structperc import Corpus
        >>> from structperc.analysis import abstention
        >>> from structperc.sklearn import SequenceTagger
        >>> X, y = [["Anna", "left"], ["She", "saw", "Oslo"]], [["B-PER", "O"], ["O", "O", "B-LOC"]]
        >>> tagger = SequenceTagger(max_iterations=5).fit(X, y).tagger_
        >>> corpus = Corpus.from_sentences([{"word": words, "label": labels} for words, labels in zip(X, y)])
        >>> [(point.share, point.f1) for point in abstention(tagger, corpus, points=2)]
        [(1.0, 1.0), (0.5, 0.6666666666666666)]
    """
    scheme = tagger.labels.scheme
    spans = tagger.predict(corpus, confident=True).with_spans(corpus, [], scheme).spans or []
    labelled = Prediction(list(corpus.columns["label"]), None, None).with_spans(corpus, [], scheme).spans or []
    gold = {span[:3] for span in labelled}
    correct = torch.tensor([span[:3] in gold for span in spans], dtype=torch.bool)
    probabilities = torch.tensor([span.probability for span in spans], dtype=torch.float64)
    return abstention_curve(probabilities, correct, len(gold) + len(corpus.dropped), points)


def abstention_lines(curves: Sequence[Curve]) -> Iterator[str]:
    """Yield the lines of a table of the shares of kept segments for each model, in per cent.

    Args:
        curves: Name and points of each model.

    Example:
        >>> from structperc.metrics.abstention_curve import AbstentionPoint
        >>> [line.split() for line in abstention_lines([("CRF", [AbstentionPoint(2, 2, 5, 4, 0.9)])])][2:]
        [['kept', 'probability', 'precision', 'recall', 'F1'], ['50.00', '0.9000', '100.00', '40.00', '57.14']]
    """
    for name, points in curves:
        rows = [["kept", "probability", "precision", "recall", "F1"]]
        for point in points:
            scores = map(percent, (point.precision, point.recall, point.f1))
            rows.append([percent(point.share), f"{point.probability:.4f}", *scores])
        yield from ("", f"{name}: segments kept, by falling probability", *text_table(rows))


def plot_abstention(curves: Sequence[Curve]) -> Figure:
    """Return a figure of precision, recall and F1 over the share of segments kept, with a panel for each model.

    Args:
        curves: Name and points of each model.

    Example:
        >>> from structperc.metrics.abstention_curve import AbstentionPoint
        >>> points = [AbstentionPoint(4, 3, 5, 4, 0.2), AbstentionPoint(2, 2, 5, 4, 0.9)]
        >>> [ax.get_title() for ax in plot_abstention([("CRF", points)]).axes]
        ['CRF']
    """
    figure = Figure(figsize=(4.5 * len(curves), 3.6), layout="constrained")
    for ax, (name, points) in zip(figure.subplots(1, len(curves), squeeze=False)[0], curves, strict=True):
        for number, (score, attribute) in enumerate((("precision", "precision"), ("F1", "f1"), ("recall", "recall"))):
            values = [100 * getattr(point, attribute) for point in points]
            style = {**series_style(number), "markersize": 3}
            ax.plot([100 * point.share for point in points], values, label=score, **style)
        ax.set(xlabel="segments kept (%)", ylabel="score (%)", title=escape_dollars(name), xlim=(0, 102), ylim=(0, 102))
        ax.legend(frameon=False, loc="lower right")
        open_frame(ax)
    return figure
