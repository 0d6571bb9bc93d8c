"""Entities of one conjunctive or disjunctive expression."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from structperc.data.words import word_hashes
from structperc.errors import InputError
from structperc.nonlocal_features.base import NonlocalFeature, unordered_pairs
from structperc.nonlocal_features.candidate_text import CandidateText, Spans, build_text, find_spans
from structperc.nonlocal_features.segments import CandidateSegments


class ConjunctionConsistency(NonlocalFeature):
    """Pairs of entities of one chain, as in "U.S., EU, and Japan", by the pair of their classes in any order.

    "Entities tend to have the same entity class if they are in the same conjunctive or disjunctive expression"
    (Kazama & Torisawa 2007, section 5). A chain is a maximal run of neighbouring entities of one sentence where all
    tokens between two neighbours are connectors, and there is at least one. All pairs of its members count, from
    the numbers of members of each class.

    Args:
        connectors: the words that connect, compared without their case.
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
            from structperc.nonlocal_features.kernels import count_chains  # needs a compiler

            flat = (x.flatten().numpy() for x in (connects, segments.batch.first))
            return torch.from_numpy(count_chains(*segments.lists, *flat, C))
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
    """Chains of segments; a segment that nothing connects is one too."""

    copies: Tensor  # (H,) int64, the copy of the text that holds it
    starts: Tensor  # (H,) int64, b * T + t of its first token
    members: Tensor  # (H, C) float32, how many segments of each type


def find_chains(spans: Spans, connects: Tensor, C: int) -> Chains:
    """Chain segments of one copy where all tokens between two, at least one, are connectors (B, T)."""
    connectors = pad(connects.flatten().cumsum(0), (1, 0))
    between = spans.starts[1:] - spans.ends[:-1]
    connected = (connectors[spans.starts[1:]] - connectors[spans.ends[:-1]] == between) & (between > 0)
    apart = ~connected | (spans.copies[1:] != spans.copies[:-1])
    opens = torch.cat([torch.ones_like(spans.starts[:1], dtype=torch.bool), apart])
    first = opens.nonzero().squeeze(1)
    members = ((opens.cumsum(0) - 1) * C + spans.types).bincount(minlength=len(first) * C)
    return Chains(spans.copies[first], spans.starts[first], members.view(-1, C).float())


def expressions(segments: CandidateSegments, connects: Tensor) -> CandidateText:
    """Return the text of runs of tokens that may be segments, and of connectors (B, T) between them, at least one."""
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
    """Find the runs of connectors (B, T), themselves no segments, between two tokens that may be segments (B, T)."""
    T = connects.shape[1]
    t = torch.arange(T, device=connects.device)
    connects = connects & ~possible
    before = t.where(~connects, 0).cummax(1).values
    after = t.where(~connects, T - 1).flip(1).cummin(1).values.flip(1)
    return connects & possible.gather(1, before) & possible.gather(1, after)
