"""Majority super-phrase consistency: the words of an entity within others, and the class that most of these have."""

from collections.abc import Sequence

from torch import Tensor

from structperc.nonlocal_features.base import ordered_pairs
from structperc.nonlocal_features.majority import majority_counts
from structperc.nonlocal_features.matching import StringFeature
from structperc.nonlocal_features.segments import CandidateSegments


class MajoritySuperphrase(StringFeature):
    """Entities whose words are a proper part of others', counted by (own class, majority class of these others).

    The majority version of sub-phrase consistency (Krishnan & Manning 2006; Kazama & Torisawa 2007, section 5). Each
    entity counts once, whatever the number of entities that contain its words. Ties as in `MajorityPhrase`.
    """

    def names(self, types: Sequence[str]) -> list[str]:
        """Return C * C names, the majority second, such as "majority_superphrase(LOC,ORG)"."""
        return ordered_pairs(self.named("majority_superphrase"), types)

    def counts(self, segments: CandidateSegments) -> Tensor:
        """Return the number of entities of each kind in each labelling, (B * K, C * C)."""
        if segments.compiled:
            return self.compiled(segments).majority_superphrase
        pairs = self.strings(segments).within
        C = len(segments.label_set.type_names)
        ballots, of_pairs = (pairs.a * C + pairs.types[pairs.b]).unique(return_inverse=True)
        votes = pairs.held.new_zeros(len(ballots), pairs.held.shape[1])
        votes.index_add_(0, of_pairs, pairs.held.index_select(0, pairs.b))
        return majority_counts(segments, pairs, ballots // C, ballots % C, votes)
