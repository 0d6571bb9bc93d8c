"""Predictor of a saved tagger of sparse features, without PyTorch."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from structperc.compiled_forms import CriterionForm
from structperc.data.corpus import Corpus
from structperc.data.forbidden_spans import StateArrays
from structperc.data.labels import LabelSet
from structperc.data.splits import Extent, widest
from structperc.errors import InvalidScoreError
from structperc.features import FeatureExtractor
from structperc.features.string_arrays import IdLists
from structperc.kernels.array_types import FeatureArrays, WeightTables
from structperc.predictor.base import (
    Prediction,
    Predictor,
    ProbableSpan,
    check_min_probability,
    missing_probabilities,
)
from structperc.predictor.limits import CorpusLimits
from structperc.predictor.segment_weights import SegmentWeights


class SparsePredictor(Predictor):
    """Predictor with the labels of a `Tagger` with sparse and local features, bit for bit.

    Its scorer is a `SparseLinear`, or a `SegmentLinear` over it. All sequences of a corpus are labelled in one compiled
    call, by one thread. Probabilities are those of a conditional random field, equal to those of the tagger up to
    rounding.

    Args:
        features: fitted feature extractor.
        unit: "sentence" or "document", unit of the sequences in training.
        training_files: reading options of the training files, see `data.read_options`.
        weights: float32 weights of node features, edge features and transitions; `transition` may have no rows.
        criterion: form of the training criterion.
        bias: (L,) float32, added to the scores of labels in the search, see `chain.LabelBias`; None for none.
        temperature: number by which scores are divided to be log-probabilities; None for none.
        segments: features of segments and their weights; None for none.

    Example:
        >>> import structperc
        >>> from structperc.sklearn import SequenceTagger
        >>> X, y = [["Anna", "left"], ["Oslo", "slept"]], [["B-PER", "O"], ["B-LOC", "O"]]
        >>> SequenceTagger(max_iterations=5).fit(X, y).tagger_.save("model")
        >>> predictor = structperc.load("model")
        >>> type(predictor).__name__, predictor.tag([["Anna", "sang"]])
        ('SparsePredictor', [['B-PER', 'O']])
    """

    def __init__(
        self,
        features: FeatureExtractor,
        labels: LabelSet,
        unit: str,
        training_files: Mapping[str, Any],
        weights: WeightTables,
        criterion: CriterionForm,
        bias: np.ndarray | None = None,
        temperature: float | None = None,
        segments: SegmentWeights | None = None,
    ) -> None:
        self.features, self.labels, self.unit = features, labels, unit
        self.training_files = training_files
        self._weights, self._criterion = weights, criterion
        self._bias = np.zeros(len(labels), np.float32) if bias is None else bias
        self._temperature, self._segments = temperature, segments

    @property
    def probabilistic(self) -> bool:
        """True if predictions have probabilities: of a tagger trained with `CRFLoss`, or with a temperature."""
        return self._criterion.probabilistic or self._temperature is not None

    @property
    def columns(self) -> list[str]:
        """Roles of the columns that new text must have, the word first."""
        return self.features.columns_with([] if self._segments is None else self._segments.columns)

    @property
    def extent(self) -> Extent:
        """Extent of the text that determines the scores of the labels of a token."""
        return widest([self.features.extent, *([] if self._segments is None else [self._segments.extractor.extent])])

    def predict(self, corpus: Corpus, confident: bool = False, min_probability: float | None = None) -> Prediction:
        """Return the labels of all tokens of a corpus.

        Args:
            corpus: N tokens, with the columns that the features read.
            confident: add the probabilities of labels, segments and label sequences.
            min_probability: add these and `spans`, see `Predictor.predict`.

        Raises:
            InputError: a missing column, or a model without probabilities if they are requested.
            InvalidScoreError: an infinite sum of weights.
        """
        if min_probability is not None:
            check_min_probability(min_probability, self.labels)
        confident = confident or min_probability is not None
        if confident and not self.probabilistic:
            raise missing_probabilities(f"trained with {self._criterion.name}")
        limits, threshold = (
            CorpusLimits.read(corpus, self.labels),
            1.0 if min_probability is None else float(min_probability),
        )
        best, probabilities, found = self._search(limits, confident, threshold)
        names = self.labels.decode(best)
        limits.check_predicted(names)
        if not confident:
            return Prediction(names, None, None)
        tokens, segments, logs = probabilities
        prediction = Prediction(names, tokens, segments, log_probabilities=logs)
        if min_probability is None:
            return prediction
        kinds = self.labels.type_names
        own = (ProbableSpan(kinds[k], a, b, p) for a, b, k, p in found)
        return prediction.with_spans(corpus, own, self.labels.scheme)

    def _search(
        self, limits: CorpusLimits, confident: bool, threshold: float
    ) -> tuple[np.ndarray, np.ndarray, list[tuple[int, int, int, float]]]:
        """Return the ids (N,) int64 of the best labels, and if confident their probabilities and probable segments.

        Probabilities (3, N) are those of labels, of segments, and of labels given the labels before. Segments are those
        with a probability above the threshold.
        """
        corpus, found = limits.corpus, []
        best, probabilities = np.zeros(corpus.tokens, np.int64), np.zeros((3, corpus.tokens))
        if corpus.tokens:
            if self._segments is None:  # kernels need a compiler
                from structperc.predictor.search import best_labels, label_probabilities
            else:
                from structperc.predictor.segment_search import best_labels, label_probabilities
            for inputs, numbers in self._inputs(limits):
                _check_scores(corpus, best_labels(inputs, self._bias, best))
                if confident:
                    found += label_probabilities(inputs, self._temperature or 1.0, best, *probabilities, threshold)
                tokens = slice(inputs.sequences.bounds[0], inputs.sequences.bounds[-1])
                best[tokens] = numbers[best[tokens]]
        return best, probabilities, found

    def _inputs(self, limits: CorpusLimits) -> Iterator[tuple[Any, np.ndarray]]:
        """Yield the inputs of kernels for parts of a corpus, and the labels of their states."""
        from structperc.predictor.search import SearchInputs, SequenceBounds  # needs a compiler

        corpus, labels = limits.corpus, self.labels
        scheme, independent = labels.allowed, self._criterion.independent_sentences
        bounds = np.unique(corpus.sentences)  # without empty sentences
        first, last = np.zeros(corpus.tokens, bool), np.zeros(corpus.tokens, bool)
        first[bounds[:-1]], last[bounds[1:] - 1] = True, True
        features = self._features(corpus)
        if self._segments is None:
            for starts, states in _parts(limits):
                sequences, kinds = SequenceBounds(starts, first, last), labels.segmentation.take(states.labels)
                inputs = SearchInputs(sequences, features, self._weights, scheme, independent, states, kinds)
                yield inputs, states.labels
            return
        from structperc.predictor.segment_search import SegmentInputs

        segments = self._segments
        both = SegmentInputs(
            SequenceBounds(bounds if independent else corpus.starts, first, last),
            features,
            self._weights,
            scheme,
            np.ones((0, len(labels)), bool) if limits.masks is None else limits.masks,
            segments.arrays(self.features.with_documents(corpus, segments.columns), labels, limits.spans),
            segments.weights,
        )
        yield both, np.arange(len(labels))

    def _features(self, corpus: Corpus) -> FeatureArrays:
        nodes, edges = self.features.ids(corpus)
        if edges is None or not len(self._weights.edge):
            edges = IdLists(np.empty(0, np.int32), np.zeros_like(nodes.ends))
        return FeatureArrays(*_arrays(nodes), *_arrays(edges))


def _check_scores(corpus: Corpus, invalid: int) -> None:
    if invalid >= 0:
        place = corpus.where(invalid)
        raise InvalidScoreError(f"scores: there is +inf or NaN at {place}; weights are too large")


def _parts(limits: CorpusLimits) -> Iterator[tuple[np.ndarray, StateArrays]]:
    """Yield the boundaries of neighbouring sequences without forbidden spans, and of each one with such, and states."""
    starts, n, L = limits.corpus.starts, len(limits.corpus), len(limits.labels)
    first, masks = 0, np.ones((0, L), bool) if limits.masks is None else limits.masks
    for sequence in [*sorted(limits.spans), n]:
        if first < sequence:
            possible = masks[starts[first] : starts[sequence]]
            yield starts[first : sequence + 1], StateArrays(np.arange(L), possible, np.ones((0, L, L), bool))
        if sequence < n:
            yield starts[sequence : sequence + 2], limits.states(sequence)
        first = sequence + 1


def _arrays(lists: IdLists) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return lists.ids, lists.ends, np.empty(0, np.float32) if lists.weights is None else lists.weights
