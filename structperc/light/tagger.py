"""A saved tagger of sparse features that labels without PyTorch."""

from collections.abc import Callable

import numpy as np

from structperc.data.corpus import Corpus
from structperc.data.labels import LabelSet
from structperc.errors import InvalidScore
from structperc.features import FeatureExtractor
from structperc.features.id_lists import IdLists
from structperc.kernels.arrays import Features, Scheme, Tables
from structperc.light.inference import Decided
from structperc.light.labeller import Labeller


class LightTagger(Labeller):
    """Labels as a `Tagger` whose scorer is `SparseLinear` and whose features are local, bit for bit.

    It has no batches: all sequences of a corpus are decided in one compiled call, by one thread. Probabilities, which
    take more than that, are those of the whole tagger, which is made when they are first asked for.

    Args:
        features: templates and resources, with their index.
        labels: the label set.
        unit: "sentence" or "document", what one sequence was in training.
        weights: float32, `transition` may be without rows.
        apart: whether the sentences of a document have nothing to do with one another.
        probabilistic: whether the whole tagger has probabilities.
        whole: makes the whole tagger.
    """

    def __init__(
        self,
        features: FeatureExtractor,
        labels: LabelSet,
        unit: str,
        weights: Tables,
        apart: bool,
        probabilistic: bool,
        whole: Callable[[], Labeller],
    ) -> None:
        self.features, self.labels, self.unit = features, labels, unit
        self._weights, self._apart, self._probabilistic, self._make_whole = weights, apart, probabilistic, whole

    @property
    def probabilistic(self) -> bool:
        """Whether the tagger was trained by likelihood."""
        return self._probabilistic

    def decided(self, corpus: Corpus, confident: bool = False) -> Decided:
        """Return the labels of all tokens of a corpus, in its order; `confident` adds their probabilities.

        Raises InputError for a missing column, for weights whose sums are infinite, and where probabilities are asked
        for that the tagger does not have.
        """
        if confident:
            return self._make_whole().decided(corpus, confident)
        return Decided(self.labels.decode(self._best(corpus)), None, None)

    def _best(self, corpus: Corpus) -> np.ndarray:
        """The ids (N,) int64 of the best labels."""
        best = np.zeros(corpus.tokens, np.int64)
        if not corpus.tokens:
            return best
        from structperc.light.search import Stretches, best_labels  # which needs a compiler

        bounds = np.unique(corpus.sentences)  # of an empty sentence there is no token
        first, last = np.zeros(corpus.tokens, bool), np.zeros(corpus.tokens, bool)
        first[bounds[:-1]], last[bounds[1:] - 1] = True, True
        stretches, scheme = Stretches(corpus.starts, first, last), Scheme(*self.labels.allowed)
        invalid = best_labels(stretches, self._features(corpus), self._weights, scheme, self._apart, best)
        if invalid >= 0:
            raise InvalidScore(f"scores: there is +inf or NaN at {corpus.where(invalid)}; weights are too large")
        return best

    def _features(self, corpus: Corpus) -> Features:
        nodes, edges = self.features.ids(corpus)
        if edges is None or not len(self._weights.edge):
            edges = IdLists(np.empty(0, np.int32), np.zeros_like(nodes.ends))
        return Features(*_arrays(nodes), *_arrays(edges))


def _arrays(lists: IdLists) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return lists.ids, lists.ends, np.empty(0, np.float32) if lists.weights is None else lists.weights
