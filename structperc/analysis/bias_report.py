"""Fitted biases as a table, and precision against recall as a figure."""

from collections.abc import Iterator

from matplotlib.figure import Figure

from structperc.analysis.bias_fitting import METHODS, FittedBias
from structperc.analysis.certified_bias import CertifiedBias
from structperc.chain import Decoder, LabelBias, MinimumSegmentRisk
from structperc.metrics.f_measure import SegmentScore
from structperc.reports.figures import open_frame, series_style
from structperc.reports.tables import percent, text_table

LISTED = 4  # labels with a bias in the table
MEASURES = "precision", "recall"
INTERVALS = "95 % intervals for all text of this kind"


def bias_lines(found: FittedBias, name: str) -> Iterator[str]:
    """Yield a table of the best decoder of each method, in per cent, and the scores of the chosen one with intervals.

    Args:
        found: Result of `fit_bias`.
        name: Name of the bias.

    Example:
        >>> from structperc import Corpus
        >>> from structperc.analysis import f_goal, fit_bias
        >>> from structperc.sklearn import SequenceTagger
        >>> X, y = [["Anna", "left"], ["She", "saw", "Oslo"]], [["B-PER", "O"], ["O", "O", "B-LOC"]]
        >>> tagger = SequenceTagger(max_iterations=5).fit(X, y).tagger_
        >>> corpus = Corpus.from_sentences([{"word": words, "label": labels} for words, labels in zip(X, y)])
        >>> print(*bias_lines(fit_bias(tagger, corpus, f_goal(2), ["outside"]), "f2"), sep="\\n")
        method          precision  recall      F1  decoder
        no bias         100.00  100.00  100.00
        a bias of O     100.00  100.00  100.00
        <BLANKLINE>
        f2: a bias of O, for F2
        precision 100.00 (100.00 .. 100.00), recall 100.00 (100.00 .. 100.00), ... 95 % intervals ...
    """
    rows = [["method", "precision", "recall", "F1", "decoder"], ["no bias", *_shares(found.before), ""]]
    for curve in found.curves:
        rows.append([METHODS[curve.method], *_shares(curve.best.score), describe_decoder(curve.best.decoder)])
    yield from text_table(rows, "<>>><")
    score, intervals = found.chosen.best.score, found.intervals
    parts = [
        f"{kind} {percent(value)} ({percent(low)} .. {percent(high)})"
        for kind, value, (low, high) in (
            ("precision", score.precision, intervals.precision),
            ("recall", score.recall, intervals.recall),
            ("F1", score.f1, intervals.f1),
        )
    ]
    yield from (
        "",
        f"{name}: {METHODS[found.chosen.method]}, for {found.goal.text}",
        f"{', '.join(parts)}, {INTERVALS}",
    )
    yield from _cost_lines(found)
    if not found.goal.reached(score):
        yield f"no method reaches {found.goal.text} on these data; this one comes closest"


def _cost_lines(found: FittedBias) -> Iterator[str]:
    """Yield what the bias costs in precision or recall, and the limit of recall that only overlap exceeds."""
    changes = [(getattr(found.chosen.best.score, kind) - getattr(found.before, kind), kind) for kind in MEASURES]
    (lost, price), (won, gain) = sorted(changes)
    if lost < 0:
        bought = f", for {percent(won)} of {gain}" if won > 0 else ""
        yield f"cost: {percent(-lost)} points of {price}{bought}"
    plain = [point.score.recall for curve in found.curves if curve.method != "overlap" for point in curve.points]
    if found.chosen.method == "overlap" and plain:
        yield f"without overlapping segments the limit of recall is {percent(max(plain))}"


def certified_lines(found: CertifiedBias, name: str) -> Iterator[str]:
    """Yield the lines of `bias_lines` for a certified bias, and the guarantee.

    Args:
        found: Result of `fit_certified_bias`.
        name: Name of the bias.
    """
    yield from bias_lines(found.fitted, name)
    text = "all text of this kind" if found.next_documents is None else f"the next {found.next_documents} {found.unit}"
    yield f"guarantee: at least {found.fitted.goal.text} on {text}, with probability {found.probability:g}"
    yield (
        f"recall is that of all segments together; tested on {found.documents} {found.unit}, assumed to be "
        "independent and like later ones; the scores above are theirs"
    )


def _shares(score: SegmentScore) -> list[str]:
    return [percent(score.precision), percent(score.recall), percent(score.f1)]


def describe_decoder(decoder: Decoder) -> str:
    """Return the numbers of a fitted decoder in one line.

    Example:
        >>> from structperc.chain import LabelBias
        >>> describe_decoder(LabelBias({"O": -1.25}))
        'O -1.25'
    """
    if isinstance(decoder, MinimumSegmentRisk):
        return f"threshold {decoder.threshold:.4g}, temperature {decoder.temperature:.4g}"
    assert isinstance(decoder, LabelBias)
    numbers = [f"{label} {bias:.4g}" for label, bias in decoder.bias.items()]
    return ", ".join(numbers[:LISTED] + [f"... {len(numbers) - LISTED} more"] * (len(numbers) > LISTED))


def plot_precision_recall(found: FittedBias) -> Figure:
    """Return a figure of precision against recall, with a curve and the best decoder for each method.

    Args:
        found: Result of `fit_bias`.

    Example:
        >>> from structperc import Corpus
        >>> from structperc.sklearn import SequenceTagger
        >>> X, y = [["Anna", "left"], ["She", "saw", "Oslo"]], [["B-PER", "O"], ["O", "O", "B-LOC"]]
        >>> tagger = SequenceTagger(max_iterations=5).fit(X, y).tagger_
        >>> corpus = Corpus.from_sentences([{"word": words, "label": labels} for words, labels in zip(X, y)])
        >>> from structperc.analysis.bias_fitting import f_goal, fit_bias
        >>> figure = plot_precision_recall(fit_bias(tagger, corpus, f_goal(2), ["outside"]))
        >>> figure.axes[0].get_xlabel()
        'recall (%)'
    """
    figure = Figure(figsize=(6, 4.6), layout="constrained")
    ax = figure.subplots()
    for number, curve in enumerate(found.curves):
        style = series_style(number)
        points = [] if curve.method == "types" else [_place(point.score) for point in curve.points]
        ax.plot(*zip(*points, strict=True), color=style["color"], linestyle=style["linestyle"]) if points else None
        chosen = curve is found.chosen
        ax.plot(*_place(curve.best.score), **style, ms=9 if chosen else 5, label=METHODS[curve.method])
    ax.plot(*_place(found.before), "k+", ms=10, label="no bias")
    best = [_place(score) for score in (found.before, *(curve.best.score for curve in found.curves))]
    ax.set(xlim=(max(0, min(x for x, _ in best) - 10), 100), ylim=(max(0, min(y for _, y in best) - 15), 100))
    ax.set(xlabel="recall (%)", ylabel="precision (%)", title=found.goal.text)
    ax.grid(alpha=0.3)
    figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=8)
    open_frame(ax)
    return figure


def _place(score: SegmentScore) -> tuple[float, float]:
    return 100 * score.recall, 100 * score.precision
