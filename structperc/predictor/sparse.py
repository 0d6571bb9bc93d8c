"""Predictor of a saved tagger of sparse features, without PyTorch."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from structperc.compiled_forms import CriterionForm
from structperc.data.corpus import Corpus
from structperc.data.forbidden_spans import StateArrays, forbidden_spans
from structperc.data.labels import LabelSet
from structperc.data.possible_labels import check_predicted, possible_masks
from structperc.data.splits import Extent, widest
from structperc.errors import InvalidScoreError
from structperc.features import FeatureExtractor
from structperc.features.string_arrays import IdLists
from structperc.kernels.array_types import FeatureArrays, TagSchemeMasks, WeightTables
from structperc.predictor.base import (
    Prediction,
    Predictor,
    ProbableSpan,
    check_min_probability,
    missing_probabilities,
)
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
        best, (tokens, segments, logs), found = self._search(corpus, confident, min_probability)
        names = self.labels.decode(best)
        check_predicted(corpus, self.labels, names)
        if not confident:
            return Prediction(names, None, None)
        prediction = Prediction(names, tokens, segments, log_probabilities=logs)
        if min_probability is None:
            return prediction
        kinds = self.labels.type_names
        own = (ProbableSpan(kinds[k], a, b, p) for a, b, k, p in found)
        return prediction.with_spans(corpus, own, self.labels.scheme)

    def _search(
        self, corpus: Corpus, confident: bool, min_probability: float | None
    ) -> tuple[np.ndarray, np.ndarray, list[tuple[int, int, int, float]]]:
        """Return the ids (N,) int64 of the best labels, and if confident their probabilities and probable segments.

        Probabilities (3, N) are those of labels, of segments, and of labels given the labels before.
        """
        best, probabilities = np.zeros(corpus.tokens, np.int64), np.zeros((3, corpus.tokens))
        if not corpus.tokens:
            return best, probabilities, []
        bounds = np.unique(corpus.sentences)  # without empty sentences
        first, last = np.zeros(corpus.tokens, bool), np.zeros(corpus.tokens, bool)
        first[bounds[:-1]], last[bounds[1:] - 1] = True, True
        threshold = 1.0 if min_probability is None else float(min_probability)
        search = self._search_labels if self._segments is None else self._search_segments
        return best, probabilities, search(corpus, first, last, best, probabilities if confident else None, threshold)

    def _search_labels(
        self,
        corpus: Corpus,
        first: np.ndarray,
        last: np.ndarray,
        best: np.ndarray,
        probabilities: np.ndarray | None,
        threshold: float,
    ) -> list[tuple[int, int, int, float]]:
        """Fill `best` and `probabilities` by label pairs, and return the segments above a threshold."""
        from structperc.predictor.search import SequenceBounds, best_labels, label_probabilities  # needs a compiler

        scheme, masks = TagSchemeMasks(*self.labels.allowed), possible_masks(corpus, self.labels)
        possible = np.ones((0, len(self.labels)), bool) if masks is None else masks
        features = self._features(corpus)
        found: list[tuple[int, int, int, float]] = []
        for starts, states in _parts(corpus, self.labels, masks):
            sequences = SequenceBounds(starts, first, last)
            scores = sequences, features, self._weights, scheme, self._criterion.independent_sentences, possible, states
            _check_scores(corpus, best_labels(*scores, self._bias, best))
            if probabilities is not None:
                kinds = self.labels.segmentation.take(states.labels)
                found += label_probabilities(*scores, self._temperature or 1.0, kinds, best, *probabilities, threshold)
            tokens = slice(starts[0], starts[-1])
            best[tokens] = states.labels[best[tokens]]
        return found

    def _search_segments(
        self,
        corpus: Corpus,
        first: np.ndarray,
        last: np.ndarray,
        best: np.ndarray,
        probabilities: np.ndarray | None,
        threshold: float,
    ) -> list[tuple[int, int, int, float]]:
        """Fill `best` and `probabilities` by segments, and return the segments above a threshold."""
        from structperc.predictor.search import SequenceBounds
        from structperc.predictor.segment_search import (  # needs a compiler
            SegmentInputs,
            best_labels_with_segments,
            segment_label_probabilities,
        )

        assert self._segments is not None
        masks = possible_masks(corpus, self.labels)
        starts = np.unique(corpus.sentences) if self._criterion.independent_sentences else corpus.starts
        inputs = SegmentInputs(
            SequenceBounds(starts, first, last),
            self._features(corpus),
            self._weights,
            TagSchemeMasks(*self.labels.allowed),
            np.ones((0, len(self.labels)), bool) if masks is None else masks,
            self._segments.arrays(self.features.with_documents(corpus, self._segments.columns), self.labels),
            self._segments.weights,
            self._segments.left(corpus, self.labels, masks),
        )
        _check_scores(corpus, best_labels_with_segments(inputs, self._bias, best))
        if probabilities is None:
            return []
        temperature = self._temperature or 1.0
        found: list[tuple[int, int, int, float]] = segment_label_probabilities(
            inputs, temperature, best, *probabilities, threshold
        )
        return found

    def _features(self, corpus: Corpus) -> FeatureArrays:
        nodes, edges = self.features.ids(corpus)
        if edges is None or not len(self._weights.edge):
            edges = IdLists(np.empty(0, np.int32), np.zeros_like(nodes.ends))
        return FeatureArrays(*_arrays(nodes), *_arrays(edges))


def _check_scores(corpus: Corpus, invalid: int) -> None:
    if invalid >= 0:
        place = corpus.where(invalid)
        raise InvalidScoreError(f"scores: there is +inf or NaN at {place}; weights are too large")


def _parts(corpus: Corpus, labels: LabelSet, allowed: np.ndarray | None) -> Iterator[tuple[np.ndarray, StateArrays]]:
    """Yield the boundaries of neighbouring sequences without forbidden spans, and of each one with such, and states."""
    starts, first, L = corpus.starts, 0, len(labels)
    none = StateArrays(np.arange(L), np.ones((0, L), bool), np.ones((0, L, L), bool))
    if (forbidden := forbidden_spans(corpus, labels, allowed)) is not None:
        for sequence in sorted(forbidden.spans):
            if first < sequence:
                yield starts[first : sequence + 1], none
            yield starts[sequence : sequence + 2], forbidden.states(sequence)
            first = sequence + 1
    if first < len(corpus):
        yield starts[first:], none


def _arrays(lists: IdLists) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return lists.ids, lists.ends, np.empty(0, np.float32) if lists.weights is None else lists.weights
