"""Sub-phrase consistency: the words of one entity within those of another."""

from collections.abc import Sequence

from torch import Tensor

from structperc.nonlocal_features.base import ordered_pairs
from structperc.nonlocal_features.matching import StringFeature
from structperc.nonlocal_features.segments import CandidateSegments


class SubphraseConsistency(StringFeature):
    """Pairs of entities (A, B) where A's words are a proper contiguous part of B's, counted by (class A, class B).

    "A sub-phrase of a phrase tends to have the same entity class as the phrase" (Kazama & Torisawa 2007, section 5,
    after Finkel, Grenager & Manning 2005). A pair counts once, even when A's words occur twice in B. Counted from
    the numbers of entities of each class with the words of A, and with those of B.
    """

    def names(self, types: Sequence[str]) -> list[str]:
        """Return C * C names, the class of the part first, such as "subphrase(LOC,ORG)"."""
        return ordered_pairs(self.named("subphrase"), types)

    def counts(self, segments: CandidateSegments) -> Tensor:
        """Return the number of pairs of each kind in each labelling, (B * K, C * C)."""
        if segments.compiled:
            return self.compiled(segments).subphrase
        a, b, rows, types, held = self.strings(segments).within
        columns = types[a] * len(segments.label_set.type_names) + types[b]
        products = held.index_select(0, a).mul_(held.index_select(0, b))
        return segments.summed(products, rows[a], columns, len(self.weight))
