"""What a tagger with a lattice says about labellings: which there are, and which of their scores count."""

from abc import ABC, abstractmethod
from collections.abc import Iterable

from torch import Tensor

from structperc.chain import Constraints
from structperc.criteria import Criterion
from structperc.data.labels import LabelSet
from structperc.nonlocal_features import NonlocalFeature, nonlocal_scores
from structperc.scorers import Scorer
from structperc.structures import Batch, Candidates, Lattice


class Scoring(ABC):
    """Where the lattice of a tagger comes from, and what its candidates are chosen by.

    Every `LatticeTagger` holds one. With its own lattice it is a tagger of sequences, with that of another model it
    is a re-ranker.
    """

    @property
    @abstractmethod
    def additive(self) -> bool:
        """Whether a total score is the sum of the weights of what a labelling has."""

    @property
    @abstractmethod
    def reader(self) -> Scorer:
        """The scorer that reads text beside feature ids."""

    @abstractmethod
    def lattice(self, batch: Batch) -> Lattice:
        """-> Lattice in which candidates are searched for."""

    @abstractmethod
    def rated(self, batch: Batch, candidates: Candidates) -> Candidates:
        """Candidates, in their order, with the local scores that count; -inf where not valid."""

    @abstractmethod
    def totals(self, batch: Batch, candidates: Candidates) -> Tensor:
        """-> (B, K) total scores of candidates, in their order; -inf where not valid."""


class OwnLattice(Scoring):
    """total score = score in the tagger's own lattice + non-local scores.

    Args:
        scorer: batch -> Lattice.
        constraints: of the tag scheme; no segment crosses the boundary of a sentence.
        criterion: says how the lattice is read.
        nonlocal_features: what is counted in whole labellings.
        labels: the labels of all of these.
    """

    def __init__(
        self,
        scorer: Scorer,
        constraints: Constraints,
        criterion: Criterion,
        nonlocal_features: Iterable[NonlocalFeature],
        labels: LabelSet,
    ) -> None:
        self.scorer, self.constraints, self.criterion = scorer, constraints, criterion
        self.nonlocal_features, self.labels = list(nonlocal_features), labels

    @property
    def additive(self) -> bool:
        """Both are sums of weights."""
        return True

    @property
    def reader(self) -> Scorer:
        """The scorer itself."""
        return self.scorer

    def lattice(self, batch: Batch) -> Lattice:
        """-> Lattice as the criterion reads it, with everything the tag scheme forbids at -inf."""
        return self.criterion.reads(self.constraints(self.scorer(batch), batch.first, batch.last))

    def rated(self, batch: Batch, candidates: Candidates) -> Candidates:
        """The candidates as they are: the scores by which they were found count."""
        return candidates

    def totals(self, batch: Batch, candidates: Candidates) -> Tensor:
        """-> (B, K) total scores of candidates, in their order; -inf where not valid."""
        more = nonlocal_scores(self.nonlocal_features, batch, candidates.labels, candidates.valid, self.labels)
        return candidates.scores + more
