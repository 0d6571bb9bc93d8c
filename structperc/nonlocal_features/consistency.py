"""Consistency features: entities with the same words, with the words of one inside another, or in one enumeration.

They count in candidates of the tagger itself; features of the labels of a first model are in
`features/documents/majorities.py`. For few candidates on a CPU the compiled functions of kernels.py count.
"""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Literal, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from structperc.data.words import word_hashes
from structperc.errors import InputError
from structperc.nonlocal_features.base import NonlocalFeature, ordered_pairs, unordered_column, unordered_pairs
from structperc.nonlocal_features.candidate_segments import CandidateSegments
from structperc.nonlocal_features.candidate_text import CandidateText, Spans, build_text, find_spans
from structperc.nonlocal_features.strings import NamePairs, SegmentStrings


class ConsistencyFeature(NonlocalFeature):
    """Base class of features that count pairs of segments in a document by their words.

    Args:
        match: "exact", or "folded" to compare words without their case, for headlines in capitals.
    """

    needs_documents = True
    template: str  # name of the counts, a field of `StringCounts`
    ordered = True  # False if pairs of types in any order are counted, C (C + 1) / 2 instead of C * C

    def __init__(self, match: Literal["exact", "folded"] = "exact") -> None:
        super().__init__()
        if match not in ("exact", "folded"):
            raise InputError(f"match: {match!r} is not known; choose exact or folded")
        self.match = match

    def names(self, types: Sequence[str]) -> list[str]:
        """Return the names of the counts, such as "phrase(LOC,PER)" or "phrase_folded(LOC,PER)"."""
        pairs = ordered_pairs if self.ordered else unordered_pairs
        return pairs(self.template if self.match == "exact" else f"{self.template}_{self.match}", types)

    def counts(self, segments: CandidateSegments) -> Tensor:
        """Return the counts of each pair of types in each label sequence, (B * K, F)."""
        exact = self.match == "exact"
        if segments.compiled:
            return getattr(segments.exact_counts if exact else segments.folded_counts, self.template)
        return self.tensor_counts(segments, segments.exact if exact else segments.folded)

    @abstractmethod
    def tensor_counts(self, segments: CandidateSegments, strings: SegmentStrings) -> Tensor:
        """Return the counts, (B * K, F), computed by tensor operations."""


class PhraseConsistency(ConsistencyFeature):
    """Pairs of entities with the same words, counted by the unordered pair of their classes.

    "Same phrases in a document tend to have the same entity class" (Kazama & Torisawa 2007, section 5, after Finkel,
    Grenager & Manning 2005). With n_c entities of class c with these words, there are n_c n_d pairs of two classes and
    n_c (n_c - 1) / 2 pairs of one class. Counts have names such as "phrase(LOC,PER)".
    """

    template, ordered = "phrase", False

    def tensor_counts(self, segments: CandidateSegments, strings: SegmentStrings) -> Tensor:
        """Return the number of pairs of each kind in each label sequence, (B * K, C (C + 1) / 2)."""
        pairs = strings.equal_pairs
        unordered = (pairs.a <= pairs.b).nonzero().squeeze(1)
        a, b = pairs.a[unordered], pairs.b[unordered]
        one = (a == b).float().unsqueeze(1)
        others = pairs.counts.index_select(0, b).sub_(one).mul_(1 - one / 2)
        columns = unordered_column(pairs.types[a], pairs.types[b], len(segments.label_set.type_names))
        products = others.mul_(pairs.counts.index_select(0, a))
        return segments.sum_columns(products, pairs.rows[a], columns, len(self.weight))


class SubphraseConsistency(ConsistencyFeature):
    """Pairs of entities (A, B) where A's words are a proper contiguous part of B's, counted by (class A, class B).

    "A sub-phrase of a phrase tends to have the same entity class as the phrase" (Kazama & Torisawa 2007, section 5,
    after Finkel, Grenager & Manning 2005). A pair counts once, even when A's words occur twice in B. Counts have names
    such as "subphrase(LOC,ORG)", with the class of the part first.
    """

    template = "subphrase"

    def tensor_counts(self, segments: CandidateSegments, strings: SegmentStrings) -> Tensor:
        """Return the number of pairs of each kind in each label sequence, (B * K, C * C)."""
        a, b, rows, types, counts = strings.contained_pairs
        columns = types[a] * len(segments.label_set.type_names) + types[b]
        products = counts.index_select(0, a).mul_(counts.index_select(0, b))
        return segments.sum_columns(products, rows[a], columns, len(self.weight))


def majority_counts(
    segments: CandidateSegments, pairs: NamePairs, names: Tensor, types: Tensor, votes: Tensor
) -> Tensor:
    """Count the entities of each name by (their class, the class with most votes) -> (B * K, C * C).

    votes (Q, K) are the votes for classes types (Q,) that entities with names (Q,) receive. Entities without votes do
    not count. Of classes with equally many votes the class of the entity itself wins, else the lowest number.
    """
    C, own = len(segments.label_set.type_names), pairs.types[names]
    precedence = torch.where(types == own, C, C - 1 - types)
    rank = (votes * (C + 1)).add_(precedence.unsqueeze(1))
    highest = rank.new_full((len(pairs.types), rank.shape[1]), C + 1)  # the least rank of a class with votes
    highest.scatter_reduce_(0, names.unsqueeze(1).expand_as(rank), rank, "amax")
    wins = rank == highest.index_select(0, names)
    entities = pairs.counts.index_select(0, names).mul_(wins)
    return segments.sum_columns(entities, pairs.rows[names], own * C + types, C * C)


class MajorityPhrase(ConsistencyFeature):
    """Entities with the same words as others, counted by (class of the entity, majority class of the others).

    The majority version of phrase consistency (Krishnan & Manning 2006; Kazama & Torisawa 2007, section 5). Each
    entity counts once. If several classes of the others are equally frequent, the majority is the class of the
    entity if it is among them, else the first in the order of the types. Counts have names such as
    "majority_phrase(LOC,ORG)".

    Example:
        >>> from structperc import LabelSet
        >>> from structperc.nn.inputs import TokenPositions, build_batch
        >>> words, labels = "Ford met Ford".split(), LabelSet.from_corpus(["B-LOC", "B-PER"], "IOB2")
        >>> places = TokenPositions.from_mask(torch.ones(1, 3, dtype=torch.bool))
        >>> batch = build_batch(places, None, None, [words])
        >>> candidate = torch.from_numpy(labels.encode("B-PER O B-LOC".split())).view(1, 1, -1)
        >>> segments = CandidateSegments(batch, candidate, torch.tensor([[True]]), labels)
        >>> feature = MajorityPhrase()
        >>> counts = zip(feature.names(labels.type_names), feature.counts(segments)[0].tolist())
        >>> {name: count for name, count in counts if count}
        {'majority_phrase(LOC,PER)': 1.0, 'majority_phrase(PER,LOC)': 1.0}
    """

    template = "majority_phrase"

    def tensor_counts(self, segments: CandidateSegments, strings: SegmentStrings) -> Tensor:
        """Return the number of entities of each kind in each label sequence, (B * K, C * C)."""
        pairs = strings.equal_pairs
        others = pairs.counts.index_select(0, pairs.b).sub_((pairs.a == pairs.b).float().unsqueeze(1))
        return majority_counts(segments, pairs, pairs.a, pairs.types[pairs.b], others)


class MajoritySuperphrase(ConsistencyFeature):
    """Entities whose words are a proper part of others', by (class of the entity, majority class of the others).

    The majority version of sub-phrase consistency (Krishnan & Manning 2006; Kazama & Torisawa 2007, section 5). Each
    entity counts once, even if several entities contain its words. Ties are resolved as in
    `MajorityPhrase`.
    """

    template = "majority_superphrase"

    def tensor_counts(self, segments: CandidateSegments, strings: SegmentStrings) -> Tensor:
        """Return the number of entities of each kind in each label sequence, (B * K, C * C)."""
        pairs = strings.contained_pairs
        C = len(segments.label_set.type_names)
        keys, of_pairs = (pairs.a * C + pairs.types[pairs.b]).unique(return_inverse=True)
        votes = pairs.counts.new_zeros(len(keys), pairs.counts.shape[1])
        votes.index_add_(0, of_pairs, pairs.counts.index_select(0, pairs.b))
        return majority_counts(segments, pairs, keys // C, keys % C, votes)


class ConjunctionConsistency(NonlocalFeature):
    """Pairs of entities of one chain, as in "U.S., EU, and Japan", counted by the unordered pair of their classes.

    "Entities tend to have the same entity class if they are in the same conjunctive or disjunctive expression"
    (Kazama & Torisawa 2007, section 5). A chain is a maximal run of neighbouring entities of one sentence where all
    tokens between two neighbours are connectors, and there is at least one. All pairs of its members count.

    Args:
        connectors: connecting words, compared without their case.
    """

    connecting: Tensor  # hashes of the connectors

    def __init__(self, connectors: Sequence[str] = (",", "and", "or", "&", "nor")) -> None:
        super().__init__()
        if isinstance(connectors, str) or not connectors:
            raise InputError(f'connectors: give a list of words, such as [",", "and"], not {connectors!r}')
        self.connectors = list(connectors)
        hashes = torch.from_numpy(word_hashes(word.casefold() for word in self.connectors))
        self.register_buffer("connecting", hashes, persistent=False)

    def names(self, types: Sequence[str]) -> list[str]:
        """Return C (C + 1) / 2 names, such as "conjunction(LOC,PER)"."""
        return unordered_pairs("conjunction", types)

    def counts(self, segments: CandidateSegments) -> Tensor:
        """Return the number of pairs of each kind in each label sequence, (B * K, C (C + 1) / 2)."""
        C = len(segments.label_set.type_names)
        connects = torch.isin(segments.batch.words.folded, self.connecting)
        if segments.compiled:
            from structperc.nonlocal_features.segment_counts import count_chains  # needs a compiler

            connecting, first = (x.flatten().numpy() for x in (connects, segments.batch.first))
            return torch.from_numpy(count_chains(*segments.lists, connecting, first, C))
        text = expressions(segments, connects)
        copies, starts, members = find_chains(find_spans(text, segments.label_set), connects, C)
        a, b = torch.triu_indices(C, C, device=connects.device)
        one = (a == b).float()
        pairs = members[:, a] * (members[:, b] - one) * (1 - one / 2)
        chain, column = pairs.nonzero().unbind(1)
        rows, F = starts // connects.shape[1], len(self.weight)
        places = rows[chain] * F + column
        sums = text.tally(copies[chain], places, len(connects) * F, pairs[chain, column])
        return segments.per_candidate(sums, F)


class Chains(NamedTuple):
    """Chains of segments; an unconnected segment is a chain of one."""

    copies: Tensor  # (H,) int64, the copy of the text that contains it
    starts: Tensor  # (H,) int64, b * T + t of its first token
    members: Tensor  # (H, C) float32, number of segments of each type


def find_chains(spans: Spans, connects: Tensor, C: int) -> Chains:
    """Join neighbouring segments of one copy if all tokens between them, at least one, are connectors (B, T)."""
    connectors = pad(connects.flatten().cumsum(0), (1, 0))
    between = spans.starts[1:] - spans.ends[:-1]
    connected = (connectors[spans.starts[1:]] - connectors[spans.ends[:-1]] == between) & (between > 0)
    apart = ~connected | (spans.copies[1:] != spans.copies[:-1])
    opens = torch.cat([torch.ones_like(spans.starts[:1], dtype=torch.bool), apart])
    first = opens.nonzero().squeeze(1)
    members = ((opens.cumsum(0) - 1) * C + spans.types).bincount(minlength=len(first) * C)
    return Chains(spans.copies[first], spans.starts[first], members.view(-1, C).float())


def expressions(segments: CandidateSegments, connects: Tensor) -> CandidateText:
    """Return the text of runs of tokens that may be in segments, with at least one connector (B, T)."""
    kept = segments.possible | bridges(connects, segments.possible)
    run = (~kept).flatten().cumsum(0).view_as(kept)
    connected = torch.zeros(kept.numel() + 1, dtype=torch.bool, device=kept.device)
    connected[run[kept & connects]] = True
    kept = kept & connected[run]

    text = segments.text
    inside = kept.flatten()[text.starts].nonzero().squeeze(1)
    variants = (text.taken - text.firsts.unsqueeze(1)).index_select(0, inside + 1)
    return build_text(
        segments.candidate_labels, kept, segments.batch.first, text.starts[inside], variants, int(text.sizes.max())
    )


def bridges(connects: Tensor, possible: Tensor) -> Tensor:
    """Return the runs of connectors (B, T) outside segments between two tokens that may be in segments (B, T)."""
    T = connects.shape[1]
    t = torch.arange(T, device=connects.device)
    connects = connects & ~possible
    before = t.where(~connects, 0).cummax(1).values
    after = t.where(~connects, T - 1).flip(1).cummin(1).values.flip(1)
    return connects & possible.gather(1, before) & possible.gather(1, after)
