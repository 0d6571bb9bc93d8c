"""Consistency features: entities with equal words, or with the words of one inside another.

They count in candidates of the tagger itself; features of the labels of a first model are in
`features/documents/majorities.py`. For few candidates on a CPU, kernels.py counts.
"""

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor

from structperc.errors import InputError
from structperc.nonlocal_features.base import NonlocalFeature, ordered_pairs, unordered_column, unordered_pairs
from structperc.nonlocal_features.segments import CandidateSegments, StringCounts
from structperc.nonlocal_features.strings import NamePairs, SegmentStrings


class ConsistencyFeature(NonlocalFeature):
    """A feature of documents that asks which segments have the same words.

    Args:
        match: "exact", or "folded" to compare words without their case, as headlines in capitals need it.
    """

    needs_documents = True

    def __init__(self, match: Literal["exact", "folded"] = "exact") -> None:
        super().__init__()
        if match not in ("exact", "folded"):
            raise InputError(f"match: {match!r} is not known; choose exact or folded")
        self.match = match

    def strings(self, segments: CandidateSegments) -> SegmentStrings:
        """Return the strings of the segments, compared as `match` says."""
        return segments.exact if self.match == "exact" else segments.folded

    def compiled(self, segments: CandidateSegments) -> StringCounts:
        """Return what compiled functions count, words compared as `match` says."""
        return segments.exact_counts if self.match == "exact" else segments.folded_counts

    def named(self, name: str) -> str:
        """Return "phrase", or "phrase_folded", so that both can be in one tagger."""
        return name if self.match == "exact" else f"{name}_{self.match}"


class PhraseConsistency(ConsistencyFeature):
    """Pairs of entities with the same words, counted by the pair of their classes in any order.

    "Same phrases in a document tend to have the same entity class" (Kazama & Torisawa 2007, section 5, after Finkel,
    Grenager & Manning 2005). Counted from the numbers n_c of entities of class c with these words: n_c n_d for two
    classes, n_c (n_c - 1) / 2 for one.
    """

    def names(self, types: Sequence[str]) -> list[str]:
        """Return C (C + 1) / 2 names, such as "phrase(LOC,PER)"."""
        return unordered_pairs(self.named("phrase"), types)

    def counts(self, segments: CandidateSegments) -> Tensor:
        """Return the number of pairs of each kind in each label sequence, (B * K, C (C + 1) / 2)."""
        if segments.compiled:
            return self.compiled(segments).phrase
        pairs = self.strings(segments).alike
        unordered = (pairs.a <= pairs.b).nonzero().squeeze(1)
        a, b = pairs.a[unordered], pairs.b[unordered]
        one = (a == b).float().unsqueeze(1)
        others = pairs.occurrences.index_select(0, b).sub_(one).mul_(1 - one / 2)
        columns = unordered_column(pairs.types[a], pairs.types[b], len(segments.label_set.type_names))
        return segments.sum_columns(
            others.mul_(pairs.occurrences.index_select(0, a)), pairs.rows[a], columns, len(self.weight)
        )


class SubphraseConsistency(ConsistencyFeature):
    """Pairs of entities (A, B) where A's words are a proper contiguous part of B's, counted by (class A, class B).

    "A sub-phrase of a phrase tends to have the same entity class as the phrase" (Kazama & Torisawa 2007, section 5,
    after Finkel, Grenager & Manning 2005). A pair counts once, even when A's words occur twice in B. Counted from
    the numbers of entities of each class with the words of A, and with those of B.
    """

    def names(self, types: Sequence[str]) -> list[str]:
        """Return C * C names, the class of the part first, such as "subphrase(LOC,ORG)"."""
        return ordered_pairs(self.named("subphrase"), types)

    def counts(self, segments: CandidateSegments) -> Tensor:
        """Return the number of pairs of each kind in each label sequence, (B * K, C * C)."""
        if segments.compiled:
            return self.compiled(segments).subphrase
        a, b, rows, types, occurrences = self.strings(segments).within
        columns = types[a] * len(segments.label_set.type_names) + types[b]
        products = occurrences.index_select(0, a).mul_(occurrences.index_select(0, b))
        return segments.sum_columns(products, rows[a], columns, len(self.weight))


def majority_counts(
    segments: CandidateSegments, pairs: NamePairs, names: Tensor, types: Tensor, votes: Tensor
) -> Tensor:
    """Count the entities of each name by (their class, the class that has most votes) -> (B * K, C * C).

    votes (Q, K) are those for class types (Q,), as entities of names (Q,) see it. Where no class has votes, entities
    do not count. Of classes with equally many votes the entities' own comes first, then the lowest number.
    """
    C, own = len(segments.label_set.type_names), pairs.types[names]
    precedence = torch.where(types == own, C, C - 1 - types)
    rank = (votes * (C + 1)).add_(precedence.unsqueeze(1))
    highest = rank.new_full((len(pairs.types), rank.shape[1]), C + 1)  # the least rank of a class with votes
    highest.scatter_reduce_(0, names.unsqueeze(1).expand_as(rank), rank, "amax")
    wins = rank == highest.index_select(0, names)
    entities = pairs.occurrences.index_select(0, names).mul_(wins)
    return segments.sum_columns(entities, pairs.rows[names], own * C + types, C * C)


class MajorityPhrase(ConsistencyFeature):
    """Entities that are not the only one with their words, counted by (own class, majority class of the others).

    The majority version of phrase consistency (Krishnan & Manning 2006; Kazama & Torisawa 2007, section 5). Each
    entity counts once. Of classes that equally many of the others have, the entity's own is the majority if it is
    among them, else the first in the order of the types.
    """

    def names(self, types: Sequence[str]) -> list[str]:
        """Return C * C names, the majority second, such as "majority_phrase(LOC,ORG)"."""
        return ordered_pairs(self.named("majority_phrase"), types)

    def counts(self, segments: CandidateSegments) -> Tensor:
        """Return the number of entities of each kind in each label sequence, (B * K, C * C)."""
        if segments.compiled:
            return self.compiled(segments).majority_phrase
        pairs = self.strings(segments).alike
        others = pairs.occurrences.index_select(0, pairs.b).sub_((pairs.a == pairs.b).float().unsqueeze(1))
        return majority_counts(segments, pairs, pairs.a, pairs.types[pairs.b], others)


class MajoritySuperphrase(ConsistencyFeature):
    """Entities whose words are a proper part of others', counted by (own class, majority class of these others).

    The majority version of sub-phrase consistency (Krishnan & Manning 2006; Kazama & Torisawa 2007, section 5). Each
    entity counts once, whatever the number of entities that contain its words. Ties as in `MajorityPhrase`.
    """

    def names(self, types: Sequence[str]) -> list[str]:
        """Return C * C names, the majority second, such as "majority_superphrase(LOC,ORG)"."""
        return ordered_pairs(self.named("majority_superphrase"), types)

    def counts(self, segments: CandidateSegments) -> Tensor:
        """Return the number of entities of each kind in each label sequence, (B * K, C * C)."""
        if segments.compiled:
            return self.compiled(segments).majority_superphrase
        pairs = self.strings(segments).within
        C = len(segments.label_set.type_names)
        ballots, of_pairs = (pairs.a * C + pairs.types[pairs.b]).unique(return_inverse=True)
        votes = pairs.occurrences.new_zeros(len(ballots), pairs.occurrences.shape[1])
        votes.index_add_(0, of_pairs, pairs.occurrences.index_select(0, pairs.b))
        return majority_counts(segments, pairs, ballots // C, ballots % C, votes)
