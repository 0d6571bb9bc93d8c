"""The candidate lists of a first model, scored by a ranker of global features."""

from collections.abc import Sequence
from typing import NamedTuple

from torch import Tensor

from structperc.data.labels import LabelSet
from structperc.nonlocal_features import GlobalFeature, find_segments
from structperc.reranking.list_features import numbered
from structperc.reranking.local_score import FirstScore
from structperc.reranking.ranker import Ranker
from structperc.reranking.second_model import FirstLattice
from structperc.structures import Batch, Candidates
from structperc.taggers.tagger import Tagger


class Found(NamedTuple):
    """Candidates of a batch and the global features they have, numbered over all features in turn."""

    candidates: Candidates  # scores are the first model's
    labellings: Tensor  # (N,) int64, b * K + k
    ids: Tensor  # (N,) int64


class RankedLists(FirstLattice):
    """The candidates of a first model with the total scores that a ranker gives them.

    Args:
        first: the first model.
        scorer: the first model's score as the ranker weighs it.
        labels: the labels of both.
        ranker: scores global features and the first model's score.
        features: the global features.
    """

    def __init__(
        self, first: Tagger, scorer: FirstScore, labels: LabelSet, ranker: Ranker, features: Sequence[GlobalFeature]
    ) -> None:
        super().__init__(first, scorer, labels)
        self.ranker, self.features = ranker, features

    @property
    def additive(self) -> bool:
        """Whether the ranker is linear; votes of many weight vectors are no sum of weights."""
        return self.ranker.linear

    def total_scores(self, batch: Batch, candidates: Candidates) -> Tensor:
        """Return the ranker's scores (B, K) float64 of candidates; -inf where not valid."""
        return self.rank(self.found(batch, candidates))

    def found(self, batch: Batch, candidates: Candidates) -> Found:
        """Return the candidates of a batch with the global features they have."""
        segments = find_segments(batch, candidates.labels, candidates.valid, self.labels)
        return Found(candidates, *numbered(self.features, segments))

    def rank(self, found: Found) -> Tensor:
        """Return what `total_scores` returns, for candidates whose features are known."""
        candidates = found.candidates
        return self.ranker.total_scores(found.labellings, found.ids, candidates.scores, candidates.valid)
