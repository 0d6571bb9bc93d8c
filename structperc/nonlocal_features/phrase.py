"""Phrase consistency: entities with the same words tend to have the same class."""

from collections.abc import Sequence

from torch import Tensor

from structperc.nonlocal_features.base import unordered_column, unordered_pairs
from structperc.nonlocal_features.matching import StringFeature
from structperc.nonlocal_features.segments import CandidateSegments


class PhraseConsistency(StringFeature):
    """Pairs of entities with the same words, counted by the pair of their classes in any order.

    "Same phrases in a document tend to have the same entity class" (Kazama & Torisawa 2007, section 5, after Finkel,
    Grenager & Manning 2005). Counted from the numbers n_c of entities of class c with these words: n_c n_d for two
    classes, n_c (n_c - 1) / 2 for one.
    """

    def names(self, types: Sequence[str]) -> list[str]:
        """Return C (C + 1) / 2 names, such as "phrase(LOC,PER)"."""
        return unordered_pairs(self.named("phrase"), types)

    def counts(self, segments: CandidateSegments) -> Tensor:
        """Return the number of pairs of each kind in each labelling, (B * K, C (C + 1) / 2)."""
        if segments.compiled:
            return self.compiled(segments).phrase
        pairs = self.strings(segments).alike
        unordered = (pairs.a <= pairs.b).nonzero().squeeze(1)
        a, b = pairs.a[unordered], pairs.b[unordered]
        one = (a == b).float().unsqueeze(1)
        others = pairs.held.index_select(0, b).sub_(one).mul_(1 - one / 2)
        columns = unordered_column(pairs.types[a], pairs.types[b], len(segments.label_set.type_names))
        return segments.summed(others.mul_(pairs.held.index_select(0, a)), pairs.rows[a], columns, len(self.weight))
