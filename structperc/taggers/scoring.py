"""Where the candidates of a tagger come from and which of their scores count."""

from abc import ABC, abstractmethod
from collections.abc import Iterable

from torch import Tensor

from structperc.chain import Constraints, separate
from structperc.criteria import Criterion
from structperc.data.labels import LabelSet
from structperc.nonlocal_features import NonlocalFeature, nonlocal_scores
from structperc.scorers import Scorer
from structperc.structures import Batch, Candidates, Lattice


class Scoring(ABC):
    """Where the lattice of a tagger comes from, and by which scores its candidates are chosen.

    Every `LatticeTagger` holds one. With its own lattice it is a tagger of sequences, with that of another model it
    is a re-ranker.
    """

    @property
    @abstractmethod
    def additive(self) -> bool:
        """Whether the total score of a labelling is a sum of weights, one for each feature that it has."""

    @property
    @abstractmethod
    def reader(self) -> Scorer:
        """The scorer that reads text beside feature ids, for which the batches are made."""

    @abstractmethod
    def lattice(self, batch: Batch) -> Lattice:
        """Return the Lattice of a batch in which candidates are searched for."""

    @abstractmethod
    def rated(self, batch: Batch, candidates: Candidates) -> Candidates:
        """Return the candidates, in their order, with the local scores that count; -inf where not valid."""

    @abstractmethod
    def totals(self, batch: Batch, candidates: Candidates) -> Tensor:
        """Return the total scores (B, K) of candidates, in their order; -inf where not valid."""


class OwnLattice(Scoring):
    """Candidates from the tagger's own lattice: total score = score in this lattice + non-local scores.

    Args:
        scorer: batch -> Lattice.
        constraints: those of the tag scheme; no segment crosses the boundary of a sentence.
        criterion: says how the lattice is read.
        nonlocal_features: what is counted in whole labellings.
        labels: the label set of all of these.
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
        """True: the scores in the lattice and the non-local scores are both sums of weights."""
        return True

    @property
    def reader(self) -> Scorer:
        """The scorer of the lattice itself."""
        return self.scorer

    def lattice(self, batch: Batch) -> Lattice:
        """Return the Lattice as the criterion reads it, with everything the tag scheme forbids at -inf."""
        lattice = self.constraints(self.scorer(batch), batch.first, batch.last)
        return self.criterion.reads(separate(lattice, batch.first) if self.criterion.separate else lattice)

    def rated(self, batch: Batch, candidates: Candidates) -> Candidates:
        """Return the candidates as they are: the scores by which they were found are the local scores."""
        return candidates

    def totals(self, batch: Batch, candidates: Candidates) -> Tensor:
        """Return the total scores (B, K) of candidates, in their order; -inf where not valid."""
        more = nonlocal_scores(self.nonlocal_features, batch, candidates.labels, candidates.valid, self.labels)
        return candidates.scores + more
