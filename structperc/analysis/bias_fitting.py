"""Temperatures, and biases for recall or precision, fitted on development data."""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import torch
from scipy.optimize import minimize_scalar
from torch import Tensor

from structperc.chain import Decoder, LabelBias, MinimumSegmentRisk, SegmentThreshold, log_partition, path_score
from structperc.chain.minimum_risk import scale
from structperc.data.corpus import Corpus
from structperc.data.labels import LabelSet
from structperc.datamodules.encoded import split_batch
from structperc.errors import InputError
from structperc.metrics import bootstrap_intervals
from structperc.metrics.counts import opened_segments, segment_counts, sentence_boundaries
from structperc.metrics.f_measure import SegmentScore, check_beta
from structperc.metrics.significance import SegmentIntervals, sum_by_document
from structperc.models.chain_model import ChainModel
from structperc.structures import Batch, Lattice

GRID = np.linspace(-6, 6, 25)  # biases in units of log-odds
LOG_TEMPERATURES = (-7.0, 7.0)
MIN_DOCUMENTS = 10  # with fewer, sequences are drawn for intervals
METHODS = {
    "outside": "a bias of O",
    "begin": "a bias of transitions into segments",
    "types": "a bias of each type",
    "segments": "minimum-risk segments, by threshold",
    "overlap": "all segments above a threshold, with overlap",
}

logger = logging.getLogger("pytorch_lightning.structperc")


# -- temperature ---------------------------------------------------------------------------------------------


@torch.no_grad()
def fit_temperature(tagger: ChainModel, corpus: Corpus) -> float:
    """Return the temperature with the highest likelihood of the gold labels of a corpus.

    It minimises sum of log Z(s / T) - s(y*) / T over T, which has one minimum (Guo et al. 2017, Section 4.2, for
    sequences), between exp(-7) and exp(7). Where it has none, as for data that the tagger was trained on, a warning is
    logged. Sequences whose gold labels are impossible for the tagger are left out. The current temperature of the
    tagger does not matter, and is not changed.

    Args:
        tagger: A tagger without non-local features.
        corpus: Development data, which the tagger was not trained on, with gold labels.

    Returns:
        The temperature; set it as `tagger.temperature`.

    Raises:
        InputError: The tagger has non-local features or is a re-ranker, or no sequence has possible gold labels.

    Example:
        >>> from structperc import Corpus
        >>> from structperc.sklearn import SequenceTagger
        >>> X, y = [["Anna", "left"], ["She", "saw", "Oslo"]], [["B-PER", "O"], ["O", "O", "B-LOC"]]
        >>> tagger = SequenceTagger(max_iterations=5).fit(X, y).tagger_
        >>> wrong = [{"word": ["Anna", "left"], "label": ["B-LOC", "O"]}, {"word": ["Anna"], "label": ["B-PER"]}]
        >>> fit_temperature(tagger, Corpus.from_sentences(wrong)) > 1  # the tagger is too confident
        True
    """
    check_local(tagger)
    return _temperature(list(_lattices(tagger, corpus)), len(tagger.labels), corpus.name)


def check_local(tagger: ChainModel) -> None:
    """Raise InputError for a tagger whose scores have no sum over all label sequences."""
    if tagger.nonlocal_features or tagger.reranks:
        raise InputError("the model has non-local features, so its scores have no normaliser; give a local model")


def _lattices(tagger: ChainModel, corpus: Corpus) -> Iterator[tuple[Batch, Lattice]]:
    for batch in tagger.batches(corpus):
        for part in split_batch(batch, tagger.decoder.k) if tagger.nonlocal_features else [batch]:
            yield part, tagger(part)


def _temperature(scored: Sequence[tuple[Batch, Lattice]], labels: int, name: str) -> float:
    kept: list[tuple[Lattice, Tensor, Tensor]] = []
    for batch, lattice in scored:
        assert batch.gold is not None
        scores = path_score(lattice, batch.gold.clamp(max=labels - 1))
        kept.append((lattice, scores, (batch.gold < labels).all(1) & scores.isfinite()))
    if not any(bool(possible.any()) for *_, possible in kept):
        raise InputError(f"{name}: no gold labels that the model can predict; give labelled development data")

    def loss(log_temperature: float) -> float:
        T = float(np.exp(log_temperature))
        losses = (log_partition(scale(lattice, T)) - scores / T for lattice, scores, _ in kept)
        return sum(float(values[possible].double().sum()) for values, (*_, possible) in zip(losses, kept, strict=True))

    best = float(minimize_scalar(loss, bounds=LOG_TEMPERATURES, method="bounded", options={"xatol": 1e-3}).x)
    for bound, reason in zip(LOG_TEMPERATURES, _AT_BOUNDS, strict=True):
        if loss(bound) <= loss(best):
            logger.warning(
                "%s: the likelihood has no maximum over temperatures, %.4g is used; %s", name, np.exp(best), reason
            )
            break
    return float(np.exp(best))


_AT_BOUNDS = (
    "the model makes no errors here and probabilities become 0 or 1; give data that it was not trained on",
    "the scores are no better than chance here and all label sequences become equally probable; check model and data",
)


# -- goals ---------------------------------------------------------------------------------------------------


class Goal(NamedTuple):
    """The aim that a bias is fitted to.

    Args:
        name: Name of the goal, and default name of the bias.
        text: Description.
        key: Sorts scores, the best one last.
        reached: Returns True for scores that meet the goal.

    Example:
        >>> from structperc.metrics.f_measure import SegmentScore
        >>> goal = recall_goal(0.9)
        >>> low, high = SegmentScore(correct=85, found=90, gold=100), SegmentScore(correct=91, found=120, gold=100)
        >>> goal.key(low) < goal.key(high), goal.reached(low), goal.reached(high)
        (True, False, True)
    """

    name: str
    text: str
    key: Callable[[SegmentScore], tuple[float, ...]]
    reached: Callable[[SegmentScore], bool] = lambda score: True


def recall_goal(recall: float) -> Goal:
    """Return the goal of the highest precision with at least this recall.

    Raises:
        InputError: The recall is outside 0..1.

    Example:
        >>> recall_goal(0.95).name
        'recall'
    """
    _check_share(recall, "recall")
    text = f"recall {recall:g}"
    return Goal("recall", text, lambda s: (min(s.recall, recall), s.precision), lambda s: s.recall >= recall)


def precision_goal(precision: float) -> Goal:
    """Return the goal of the highest recall with at least this precision.

    Raises:
        InputError: The precision is outside 0..1.

    Example:
        >>> precision_goal(0.95).name
        'precision'
    """
    _check_share(precision, "precision")
    text = f"precision {precision:g}"
    return Goal(
        "precision", text, lambda s: (min(s.precision, precision), s.recall), lambda s: s.precision >= precision
    )


def f_goal(beta: float) -> Goal:
    """Return the goal of the highest F_beta.

    Raises:
        InputError: Beta is not positive.

    Example:
        >>> f_goal(2).name
        'f2'
    """
    check_beta(beta)
    return Goal(f"f{beta:g}".replace(".", "_"), f"F{beta:g}", lambda s: (s.f(beta),))


def cost_goal(costs: Mapping[str, float]) -> Goal:
    """Return the goal of the lowest cost of errors.

    Args:
        costs: Cost of a "missed" and of a "spurious" segment, each 1 by default.

    Raises:
        InputError: An unknown error, or a negative cost.

    Example:
        >>> cost_goal({"missed": 5}).text
        'cost of 5 missed, 1 spurious'
    """
    for name, cost in costs.items():
        if name not in ("missed", "spurious") or not 0 <= cost < np.inf:
            raise InputError(f"--cost {name}={cost:g}: give missed=COST or spurious=COST with a cost >= 0")
    missed, spurious = costs.get("missed", 1.0), costs.get("spurious", 1.0)

    def key(s: SegmentScore) -> tuple[float, ...]:
        return (-missed * (s.gold - s.correct) - spurious * (s.found - s.correct),)

    return Goal("cost", f"cost of {missed:g} missed, {spurious:g} spurious", key)


def _check_share(value: float, name: str) -> None:
    if not 0 < value <= 1:
        raise InputError(f"--{name} must be above 0 and at most 1, got {value:g}")


# -- counts --------------------------------------------------------------------------------------------------


class SegmentCounter:
    """Counts of segments of a corpus under any decoder, from scores that are computed once.

    Args:
        tagger: A tagger.
        corpus: Sentences with gold labels.

    Example:
        >>> from structperc import Corpus
        >>> from structperc.chain import LabelBias
        >>> from structperc.sklearn import SequenceTagger
        >>> X, y = [["Anna", "left"], ["She", "saw", "Oslo"]], [["B-PER", "O"], ["O", "O", "B-LOC"]]
        >>> tagger = SequenceTagger(max_iterations=5).fit(X, y).tagger_
        >>> corpus = Corpus.from_sentences([{"word": words, "label": labels} for words, labels in zip(X, y)])
        >>> counter = SegmentCounter(tagger, corpus)
        >>> counter(tagger.decoder).sum((0, 2)).tolist()  # correct, found, gold
        [2, 2, 2]
    """

    def __init__(self, tagger: ChainModel, corpus: Corpus) -> None:
        self.tagger, self.labels, self.size = tagger, tagger.gold_labels(corpus), len(corpus)
        self.dropped = [span.type for span in corpus.dropped]
        with torch.no_grad():
            self.scored = list(_lattices(tagger, corpus))
        self.segments: _ScoredSegments | None = None  # of the lowest threshold so far
        self.gold: np.ndarray | None = None

    @torch.no_grad()
    def __call__(self, decoder: Decoder) -> np.ndarray:
        """Return the numbers of correct, found and gold segments (S, 3, C) of each sequence and type.

        Gold segments that labels cannot represent are counted with the first sequence.
        """
        if isinstance(decoder, SegmentThreshold):
            return self._overlapping(decoder)
        counts = np.zeros((self.size, 3, len(self.labels.type_names)), np.int64)
        for batch, lattice in self.scored:
            best = self.tagger.best_labels(batch, lattice, decoder)
            assert batch.gold is not None
            *three, _ = segment_counts(best, batch.gold, batch.lengths, self.labels, batch.sentences)
            counts[batch.rows.cpu().numpy()] = torch.stack(three, 1).cpu().numpy()
        counts[:1, 2] += np.array([self.dropped.count(name) for name in self.labels.type_names])
        return counts

    def _overlapping(self, decoder: SegmentThreshold) -> np.ndarray:
        """Count all segments above a threshold; those above a higher one are among those above a lower one."""
        kept = self.segments
        if kept is None or kept.temperature != decoder.temperature or kept.threshold > decoder.threshold:
            parts = [_match_segments(decoder, batch, lattice, self.labels) for batch, lattice in self.scored]
            joined = [np.concatenate(part) for part in zip(*parts, strict=True)]
            kept = self.segments = _ScoredSegments(decoder.threshold, decoder.temperature, *joined)
        if self.gold is None:
            self.gold = self(self.tagger.decoder)[:, 2]
        above = kept.probabilities > decoder.threshold
        predicted, correct = (
            np.bincount(kept.at[which], minlength=self.gold.size).reshape(self.gold.shape)
            for which in (above, above & kept.correct)
        )
        return np.stack([correct, predicted, self.gold], 1)

    def score(self, decoder: Decoder) -> SegmentScore:
        """Return the score of all segments."""
        return SegmentScore(*self(decoder).sum((0, 2)).tolist())


class _ScoredSegments(NamedTuple):
    """Probable segments of a corpus, above a threshold at a temperature.

    Attributes:
        threshold: Lowest probability.
        temperature: Temperature of the probabilities.
        at: Sequence and type (n,), as sequence * C + type.
        correct: True (n,) for gold segments.
        probabilities: (n,).
    """

    threshold: float
    temperature: float
    at: np.ndarray
    correct: np.ndarray
    probabilities: np.ndarray


def _match_segments(decoder: SegmentThreshold, batch: Batch, lattice: Lattice, labels: LabelSet) -> list[np.ndarray]:
    """Return sequence * C + type (n,) of the segments that a decoder finds, whether they are correct, probabilities."""
    assert batch.gold is not None
    segments = decoder.segments(lattice)
    gold = opened_segments(batch.gold, sentence_boundaries(batch.lengths, batch.gold.shape[1], batch.sentences), labels)
    number = torch.tensor([labels.type_names.index(name) for name in decoder.labels.type_names])
    kinds, at = number.to(segments.kinds.device)[segments.kinds], (segments.rows, segments.starts)
    correct = (gold.kind[at] == kinds) & (gold.end[at] == segments.ends - 1)
    places = batch.rows[segments.rows] * len(labels.type_names) + kinds
    return [array.cpu().numpy() for array in (places, correct, segments.probabilities)]


def document_numbers(corpus: Corpus) -> np.ndarray:
    """Return the number of the document (S,) of each sequence; with fewer than 10 documents, of each sequence itself.

    Example:
        >>> from structperc import Corpus
        >>> document_numbers(Corpus.from_sentences([{"word": ["Anna"]}] * 3)).tolist()
        [0, 1, 2]
    """
    documents, numbers = np.unique(corpus.documents, return_inverse=True)
    return numbers if len(documents) >= MIN_DOCUMENTS else np.arange(len(corpus))


# -- search --------------------------------------------------------------------------------------------------


class Point(NamedTuple):
    """A decoder and its score on development data."""

    decoder: Decoder
    score: SegmentScore


class Curve(NamedTuple):
    """The decoders that were tried in one of the METHODS, sorted by bias, and the best one for the goal."""

    method: str
    points: list[Point]
    best: Point


class FittedBias(NamedTuple):
    """Result of `fit_bias`.

    Attributes:
        goal: The goal.
        before: The score without a bias.
        curves: The decoders of each method that was tried.
        chosen: The curve with the best decoder.
        intervals: 95 % intervals of the scores of the best decoder on all documents of this kind, from those of the
            development data. Another sample of the same size has more different scores, by a factor of sqrt(2).
        temperature: The temperature of thresholds, and unit of biases.

    Example:
        >>> FittedBias._fields
        ('goal', 'before', 'curves', 'chosen', 'intervals', 'temperature')
    """

    goal: Goal
    before: SegmentScore
    curves: list[Curve]
    chosen: Curve
    intervals: SegmentIntervals
    temperature: float


def fit_bias(tagger: ChainModel, corpus: Corpus, goal: Goal, methods: Sequence[str] = ()) -> FittedBias:
    """Return the decoder that meets a goal best on development data, among several methods.

    Each method has one number, found by search: on a grid, then on finer ones near the best value. A bias of each type
    starts from that of O. Segments that overlap are tried only if no method without overlap reaches the goal.

    Args:
        tagger: A tagger, which is not changed. With non-local features only biases of labels are tried.
        corpus: Development data, which the tagger was not trained on, with gold labels.
        goal: What the best decoder has, such as `recall_goal(0.95)`.
        methods: Names in METHODS; default: all that the tagger supports.

    Returns:
        The decoders and their scores; give `chosen.best.decoder` to `models.Biases`.

    Raises:
        InputError: A re-ranker, labels or data without segments, no possible gold labels, an unknown method, or an
            unsupported one.

    Example:
        >>> from structperc import Corpus
        >>> from structperc.sklearn import SequenceTagger
        >>> X, y = [["Anna", "left"], ["She", "saw", "Oslo"]], [["B-PER", "O"], ["O", "O", "B-LOC"]]
        >>> tagger = SequenceTagger(max_iterations=5).fit(X, y).tagger_
        >>> corpus = Corpus.from_sentences([{"word": words, "label": labels} for words, labels in zip(X, y)])
        >>> found = fit_bias(tagger, corpus, recall_goal(0.95), ["outside", "segments"])
        >>> found.chosen.method, found.chosen.best.score.recall
        ('outside', 1.0)
    """
    first = supported_methods(tagger, methods)
    counter = SegmentCounter(tagger, corpus)
    before = counter.score(tagger.decoder)
    if not before.gold:
        raise InputError(f"{corpus.name}: there are no segments; give development data with segments to find")
    temperature = _temperature(counter.scored, len(tagger.labels), corpus.name)
    search = _Search(counter, goal, temperature)
    curves = [search.curve(method) for method in first if method != "overlap" or methods]
    if "overlap" in first and not methods and not any(goal.reached(curve.best.score) for curve in curves):
        curves.append(search.curve("overlap"))
    chosen = max(curves, key=lambda curve: goal.key(curve.best.score))
    intervals = bootstrap_intervals(sum_by_document(counter(chosen.best.decoder).sum(2), document_numbers(corpus)))
    return FittedBias(goal, before, curves, chosen, intervals, temperature)


def supported_methods(tagger: ChainModel, methods: Sequence[str]) -> list[str]:
    """Return the methods to try. Raises InputError for those that the tagger does not support."""
    if tagger.reranks:
        raise InputError("a re-ranker chooses among the candidates of another model; calibrate a tagger")
    scheme = tagger.labels.scheme
    if scheme == "none":
        raise InputError("the labels of the model are not segments; precision and recall need a tag scheme")
    local, simple = not tagger.nonlocal_features, scheme not in ("IOB1", "IO")
    supported = {"outside": True, "begin": simple, "types": True, "segments": local and simple}
    supported_names = [method for method in METHODS if supported.get(method, local and simple)]
    for method in methods:
        if method not in supported_names:
            raise InputError(f"--methods {method}: the model supports {', '.join(supported_names)}")
    return list(methods) or supported_names


class _Search:
    """Search for the best decoder of each method; biases are in units of log-odds, the temperature of the scores."""

    def __init__(self, counter: SegmentCounter, goal: Goal, temperature: float) -> None:
        self.counter, self.goal, self.temperature = counter, goal, temperature
        self.labels, self.k = counter.tagger.labels, counter.tagger.decoder.k
        types, opening = self.labels.segmentation
        begins = (types >= 0) & opening.all(0)
        self.found: dict[str, Curve] = {}
        self.make: dict[str, Callable[[float], Decoder]] = {
            "outside": lambda x: self._bias(np.where(types < 0, -x, 0)),
            "begin": lambda x: self._bias(np.where(begins, x, 0)),
            "segments": lambda x: MinimumSegmentRisk(threshold_of(x), self.temperature),
            "overlap": lambda x: SegmentThreshold(threshold_of(x), self.temperature),
        }

    def curve(self, method: str) -> Curve:
        """Return the decoders of a method, and the best one."""
        if method not in self.found:
            self.found[method] = self._types() if method == "types" else self._numbers(method)
        return self.found[method]

    def _numbers(self, method: str) -> Curve:
        points: dict[float, Point] = {}
        values: np.ndarray = GRID
        step = float(GRID[1] - GRID[0])
        for _ in range(3):
            points |= {x: self._point(self.make[method](x)) for x in map(float, values) if x not in points}
            best = max(sorted(points, key=abs), key=lambda x: self.goal.key(points[x].score))
            step /= 5
            values = best + step * np.arange(-4, 5)
        return Curve(method, [points[x] for x in sorted(points)], points[best])

    def _types(self) -> Curve:
        """Change the bias of one type after the other, each time with the best common change of all types."""
        types = self.labels.segmentation.types
        n = len(self.labels.type_names)

        def point(biases: np.ndarray) -> Point:
            return self._point(self._bias(np.where(types >= 0, biases[types], 0)))

        start = self.curve("outside").best
        assert isinstance(start.decoder, LabelBias)
        biases = np.full((n,), -start.decoder.bias.get("O", 0.0) / self.temperature)
        points = [point(biases)]
        best = points[0]
        for step in (1.0, 0.3):
            for change in (sign * step * direction for direction in np.eye(n) for sign in (1, -1)):
                trials = [biases + change + common for common in step * np.linspace(-1, 1, 7)]
                tried = [point(trial) for trial in trials]
                points += tried
                at = max(range(len(tried)), key=lambda i: self.goal.key(tried[i].score))
                if self.goal.key(tried[at].score) > self.goal.key(best.score):
                    best, biases = tried[at], trials[at]
        return Curve("types", points, best)

    def _bias(self, values: np.ndarray) -> LabelBias:
        """Return the decoder with biases (L,) in units of log-odds."""
        scores = {
            name: round(float(x) * self.temperature, 6) for name, x in zip(self.labels.names, values, strict=True)
        }
        return LabelBias({name: x for name, x in scores.items() if x}, self.k)

    def _point(self, decoder: Decoder) -> Point:
        decoder.allocate(self.labels)
        return Point(decoder, self.counter.score(decoder))


def threshold_of(log_odds: float) -> float:
    """Return the threshold of probabilities that gives more recall for a higher number."""
    return float(1 / (1 + np.exp(log_odds)))
