"""Thresholds whose recall reaches a goal with a given probability, certified on development data."""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from structperc.analysis.bias_fitting import (
    Curve,
    FittedBias,
    Goal,
    Point,
    SegmentCounter,
    document_numbers,
    fit_temperature,
    recall_goal,
    supported_methods,
    threshold_of,
)
from structperc.chain import Decoder, MinimumSegmentRisk, SegmentThreshold
from structperc.data.corpus import Corpus
from structperc.errors import InputError
from structperc.metrics import bootstrap_intervals, recall_p_value
from structperc.metrics.certified_recall import RecallTest, fixed_sequence, highest_certified_recall
from structperc.metrics.f_measure import SegmentScore
from structperc.metrics.significance import sum_by_document
from structperc.models.chain_model import ChainModel

SEQUENCE = np.linspace(8, -8, 161)  # thresholds in log-odds, that of the highest recall first
DECODERS = {"segments": MinimumSegmentRisk, "overlap": SegmentThreshold}
EVERY = 5  # every fifth document chooses the temperature and the method
PROBABILITIES = 0.5, 0.999


class CertifiedBias(NamedTuple):
    """Result of `fit_certified_bias`.

    Attributes:
        fitted: The certified decoder and its scores on the documents of the tests.
        probability: Probability of the guarantee.
        documents: Number of documents of the tests.
        unit: "documents", or "sequences" of data with fewer than 10 documents.
        next_documents: Number of documents of another sample that the guarantee is for; None for all text.

    Example:
        >>> CertifiedBias._fields
        ('fitted', 'probability', 'documents', 'unit', 'next_documents')
    """

    fitted: FittedBias
    probability: float
    documents: int
    unit: str
    next_documents: int | None


def fit_certified_bias(
    tagger: ChainModel,
    corpus: Corpus,
    recall: float,
    probability: float = 0.9,
    next_documents: int | None = None,
    methods: Sequence[str] = (),
) -> CertifiedBias:
    """Return the threshold with the highest precision among those certified to reach a recall.

    Learn-then-test (Angelopoulos et al. 2021): every fifth document chooses temperature and method. The other documents
    test the hypotheses "recall is below the goal" of a sequence of thresholds, the lowest one first, until the first
    that is not rejected. With the given probability, all thresholds before it reach the goal on all text of this kind,
    or on the next documents, if documents are independent and of the same distribution. Recall is that of all segments
    together, not a mean over documents. `recall_p_value` is the test; its level is approximate.

    Args:
        tagger: A tagger without non-local features, which is not changed.
        corpus: Development data, which the tagger was not trained on, with gold labels.
        recall: The goal, above 0 and at most 1.
        probability: Probability that the goal is reached, between 0.5 and 0.999.
        next_documents: Number of documents of another sample whose recall reaches the goal; default: all text.
        methods: "segments" or "overlap"; default: "segments" if its limit of recall is above the goal with some margin
            on the documents that choose (lower bound of its 95 % interval), else "overlap".

    Returns:
        The decoder, as `fitted.chosen.best.decoder`, with its scores on the documents of the tests.

    Raises:
        InputError: No threshold can be certified; the message contains the highest recall that can. Or a method without
            a threshold, an unsupported tagger, too few documents, or a number out of range.

    Example:
        >>> from structperc.data import Synthetic
        >>> from structperc.sklearn import SequenceTagger
        >>> data = Synthetic(train=20, dev=50)
        >>> train, dev = data.corpus("train"), data.corpus("dev")
        >>> X, y = (train.sentences_of(train.columns[role]) for role in ("word", "label"))
        >>> tagger = SequenceTagger(max_iterations=10).fit(X, y).tagger_
        >>> found = fit_certified_bias(tagger, dev, recall=0.8, probability=0.9)
        >>> found.documents, found.fitted.chosen.best.score.recall > 0.8
        (40, True)
    """
    goal = recall_goal(recall)
    _check_methods(supported_methods(tagger, methods or list(DECODERS)), methods)
    if not PROBABILITIES[0] <= probability <= PROBABILITIES[1]:
        raise InputError(f"--guarantee must be between {PROBABILITIES[0]} and {PROBABILITIES[1]}, got {probability:g}")
    numbers = document_numbers(corpus)
    choosing = choosing_documents(numbers.max() + 1)
    temperature = fit_temperature(tagger, corpus.subset(choosing[numbers]))
    counter = SegmentCounter(tagger, corpus)
    before = _counts(counter, tagger.decoder, numbers)[~choosing]
    if not before[:, 2].any():
        raise InputError(f"{corpus.name}: there are no segments; give development data with segments to find")
    limit, of_limit = next(threshold_counts(counter, numbers, "segments", temperature))
    method = methods[0] if methods else _choose_method(of_limit[choosing], recall)
    test = partial(recall_p_value, next_documents=next_documents)
    sequence = threshold_counts(counter, numbers, method, temperature)
    points = _certify(((decoder, counts[~choosing]) for decoder, counts in sequence), goal, recall, probability, test)
    curve = Curve(method, points, max(points, key=lambda point: goal.key(point.score)))
    limits = [Point(limit, _score(of_limit[~choosing]))]
    curves = [Curve("segments", limits, limits[0]), curve] if method == "overlap" else [curve]
    tested = _counts(counter, curve.best.decoder, numbers)[~choosing]
    fitted = FittedBias(goal, _score(before), curves, curve, bootstrap_intervals(tested), temperature)
    unit = "documents" if len(np.unique(corpus.documents)) > numbers.max() else "sequences"
    return CertifiedBias(fitted, probability, len(tested), unit, next_documents)


def choosing_documents(D: int) -> np.ndarray:
    """Return True (D,) for every fifth document: it chooses the sequence of thresholds, the others test it.

    The first one tests, because gold segments that labels cannot represent are counted there.

    Example:
        >>> choosing_documents(7).nonzero()[0].tolist()
        [4]
    """
    return np.arange(D) % EVERY == EVERY - 1


def threshold_counts(
    counter: SegmentCounter, numbers: np.ndarray, method: str, temperature: float
) -> Iterator[tuple[Decoder, np.ndarray]]:
    """Yield the decoders of a sequence of thresholds, the lowest one first, with their counts (D, 3) of documents.

    Args:
        counter: Counts segments of a corpus.
        numbers: Document number (S,) of each sequence; see `document_numbers`.
        method: "segments" or "overlap".
        temperature: Temperature of the probabilities.

    Example:
        >>> import numpy as np
        >>> from structperc import Corpus
        >>> from structperc.sklearn import SequenceTagger
        >>> X, y = [["Anna", "left"], ["She", "saw", "Oslo"]], [["B-PER", "O"], ["O", "O", "B-LOC"]]
        >>> tagger = SequenceTagger(max_iterations=5).fit(X, y).tagger_
        >>> corpus = Corpus.from_sentences([{"word": words, "label": labels} for words, labels in zip(X, y)])
        >>> decoder, counts = next(threshold_counts(SegmentCounter(tagger, corpus), np.arange(2), "overlap", 1.0))
        >>> round(decoder.threshold, 5), counts[:, [0, 2]].tolist()  # correct and gold
        (0.00034, [[1, 1], [1, 1]])
    """
    for log_odds in SEQUENCE:
        decoder = DECODERS[method](threshold_of(log_odds), temperature)
        decoder.allocate(counter.tagger.labels)
        yield decoder, _counts(counter, decoder, numbers)


def _check_methods(supported: Sequence[str], methods: Sequence[str]) -> None:
    if len(methods) > 1 or not DECODERS.keys() >= set(supported):
        raise InputError(f"--methods {' '.join(methods)}: a guarantee is of one threshold; set segments or overlap")


def _counts(counter: SegmentCounter, decoder: Decoder, numbers: np.ndarray) -> np.ndarray:
    """Return the counts (D, 3) of documents."""
    return sum_by_document(counter(decoder).sum(2), numbers)


def _choose_method(limit: np.ndarray, recall: float) -> str:
    """Return "segments" if its limit of recall, from the counts (D, 3) of the lowest threshold, suffices."""
    return "segments" if bootstrap_intervals(limit).recall[0] >= recall else "overlap"


def _score(counts: np.ndarray) -> SegmentScore:
    return SegmentScore(*counts.sum(0).tolist())


def _certify(
    sequence: Iterable[tuple[Decoder, np.ndarray]], goal: Goal, recall: float, probability: float, test: RecallTest
) -> list[Point]:
    """Return the certified decoders of a sequence. Raises InputError if there are none."""
    tried: list[tuple[Decoder, np.ndarray]] = []

    def p_values() -> Iterator[float]:
        for decoder, counts in sequence:
            tried.append((decoder, counts))
            yield test(counts, recall)

    certified = tried[: fixed_sequence(p_values(), probability)]
    if not certified:
        counts = tried[0][1]
        raise InputError(
            f"{goal.text} cannot be certified with probability {probability:g} by tests on {len(counts)} documents; "
            f"the highest recall that can is {highest_certified_recall(counts, probability, test):g}"
        )
    return [Point(decoder, _score(counts)) for decoder, counts in certified]
