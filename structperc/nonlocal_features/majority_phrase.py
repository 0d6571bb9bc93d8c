"""Majority phrase consistency: entities with the same words, and the class that most of them have."""

from collections.abc import Sequence

from torch import Tensor

from structperc.nonlocal_features.base import ordered_pairs
from structperc.nonlocal_features.majority import majority_counts
from structperc.nonlocal_features.matching import StringFeature
from structperc.nonlocal_features.segments import CandidateSegments


class MajorityPhrase(StringFeature):
    """Entities that are not the only one with their words, counted by (own class, majority class of the others).

    The majority version of phrase consistency (Krishnan & Manning 2006; Kazama & Torisawa 2007, section 5). Each
    entity counts once. Of classes that equally many of the others have, the entity's own is the majority if it is
    among them, else the first in the order of the types.
    """

    def names(self, types: Sequence[str]) -> list[str]:
        """Return C * C names, the majority second, such as "majority_phrase(LOC,ORG)"."""
        return ordered_pairs(self.named("majority_phrase"), types)

    def counts(self, segments: CandidateSegments) -> Tensor:
        """Return the number of entities of each kind in each labelling, (B * K, C * C)."""
        if segments.compiled:
            return self.compiled(segments).majority_phrase
        pairs = self.strings(segments).alike
        others = pairs.held.index_select(0, pairs.b).sub_((pairs.a == pairs.b).float().unsqueeze(1))
        return majority_counts(segments, pairs, pairs.a, pairs.types[pairs.b], others)
