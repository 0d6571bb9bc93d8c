"""Compact representation of the candidates of a sequence: parts that they share are stored once.

The k best label sequences of a document differ at few tokens. A stretch is a run of tokens whose boundaries no segment
crosses. The text has one copy of a stretch on which all candidates agree, and a copy for each variant of other
stretches. Counts of a copy are looked up for each candidate.
"""

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from structperc.data.labels import LabelSet, segment_boundaries, shift
from structperc.ragged import spread

SPARE = 1024  # codes of variants are renumbered when they exceed the number of label sequences by more than this


class CandidateLabels(NamedTuple):
    """K label sequences of each of B sequences, and the tokens at which they differ."""

    labels: Tensor  # (B, K, T) int64, invalid label sequences replaced by a valid one
    chosen: Tensor  # (B,) int64, number of a valid label sequence, if there is one
    reference: Tensor  # (B, T) int64, its labels, 0 in the padding
    varies: Tensor  # (B, T) bool, True where label sequences differ, False in the padding


class CandidateText(NamedTuple):
    """Copies of stretches, token by token, and the variants of stretches in each label sequence.

    The copies that all label sequences of a sequence share come first; together they are variant 0, the only variant of
    stretch 0. The other copies are the variants 1 <= v < V of the stretches 1 <= z < Z where label sequences differ.
    """

    places: Tensor  # (n,) int64, b * T + t of each token
    labels: Tensor  # (n,) int64
    copies: Tensor  # (n,) int64, copy of each token, ascending
    common: int  # number of copies that all label sequences share
    starts: Tensor  # (Z - 1,) int64, b * T + t of the first token of stretches 1 <= z < Z
    stretches: Tensor  # (V,) int64, stretch of each variant, ascending
    sizes: Tensor  # (Z,) int64, number of variants of each stretch
    taken: Tensor  # (Z, K) int64, variant of each stretch in each label sequence

    def tally(self, copies: Tensor, groups: Tensor, size: int, weights: Tensor | None = None) -> Tensor:
        """Sum the weights of entries (E,) by group and label sequence -> (size, K) float32.

        copies (E,) are the copies of the entries, groups (E,) their groups 0 <= g < size, each of entries of one
        sequence, and weights (E,) are 1 by default. The sums of the variants of a stretch in a group are a table, from
        which each label sequence reads one value.
        """
        Z, K = self.taken.shape
        variants = self.variants(copies)
        pairs, entry = (groups * Z + self.stretches[variants]).unique(return_inverse=True)
        group, stretch = pairs // Z, pairs % Z
        sizes = self.sizes[stretch]
        shifts = sizes.cumsum(0) - sizes - self.firsts[stretch]  # from variants to positions in all tables
        weights = torch.ones_like(copies, dtype=torch.float32) if weights is None else weights
        tables = weights.new_zeros(int(sizes.sum())).index_add_(0, shifts[entry] + variants, weights)
        places = self.taken.index_select(0, stretch).add_(shifts.unsqueeze(1))
        looked_up = tables.index_select(0, places.flatten()).view(-1, K)
        return weights.new_zeros(size, K).index_add_(0, group, looked_up)

    def variants(self, copies: Tensor) -> Tensor:
        """Return the variant of each copy (E,), (E,) int64."""
        return (copies - (self.common - 1)).clamp_(min=0)

    @property
    def firsts(self) -> Tensor:
        """First variant of each stretch, (Z,) int64."""
        return self.sizes.cumsum(0) - self.sizes


def compare_candidates(labels: Tensor, valid: Tensor, real: Tensor) -> CandidateLabels:
    """Compare labels (B, K, T); valid (B, K) and real (B, T) are bool.

    Padding and invalid label sequences may contain any numbers.
    """
    chosen = valid.byte().argmax(1)
    reference = labels[torch.arange(len(labels), device=labels.device), chosen]
    reference = reference.where(real & valid.any(1, keepdim=True), 0)
    if not valid.all():
        labels = labels.where(valid.unsqueeze(2), reference.unsqueeze(1))
    differs = (labels != reference.unsqueeze(1)).view(torch.uint8).amax(1).bool()  # faster than any(1)
    return CandidateLabels(labels, chosen, reference, differs & real)


def build_text(
    candidates: CandidateLabels, kept: Tensor, parted: Tensor, places: Tensor, columns: Tensor, size: int
) -> CandidateText:
    """Return the text of all stretches.

    `candidates`: the label sequences. `kept`: (B, T) bool, tokens of stretches; neighbours belong to one stretch unless
    `parted` separates them. `parted`: (B, T) bool, tokens separated from the token before. `places`: (N,) int64,
    ascending, the tokens of `columns`. `columns`: (N, K) int64, numbers below `size` that distinguish the label
    sequences of a stretch. `size`: exclusive upper bound of `columns`.
    """
    K, T = candidates.labels.shape[1:]
    opens = kept & (parted | ~shift(kept, 1, False))
    starts = opens.flatten().nonzero().squeeze(1)
    lengths = (opens.flatten().cumsum(0)[kept.flatten()] - 1).bincount(minlength=len(starts))
    differing, inverse = (torch.searchsorted(starts, places, right=True) - 1).unique_consecutive(return_inverse=True)
    numbers, sizes, example = _numbered(columns, inverse, len(differing), size)

    agreed = torch.ones_like(starts, dtype=torch.bool).index_fill_(0, differing, False).nonzero().squeeze(1)
    stretches = torch.repeat_interleave(sizes)
    source = torch.cat([agreed, differing[stretches]])  # stretch of each copy
    example = torch.cat([candidates.chosen[starts[agreed] // T], example])
    copies, places = spread(lengths[source], starts[source])
    line = places // T * (K - 1) + example[copies]  # row of labels, minus the sequence
    return CandidateText(
        places,
        candidates.labels.flatten()[places + line * T],
        copies,
        len(agreed),
        starts[differing],
        pad(stretches + 1, (1, 0)),
        pad(sizes, (1, 0), value=1),
        pad(numbers + 1, (0, 0, 1, 0)),
    )


def _numbered(columns: Tensor, stretch: Tensor, Z: int, size: int) -> tuple[Tensor, Tensor, Tensor]:
    """Number the different columns[stretch == z, k] (N, K) of each stretch 0 <= z < Z (N,), ascending.

    Returns numbers (Z, K), ascending with z and different for different z; their count for each z (Z,); a k for each
    number.
    """
    K = columns.shape[1]
    _, rank = spread(stretch.bincount(minlength=Z))
    codes, below, largest = columns.new_zeros(Z, K), 1, 1
    for chosen in rank.argsort(stable=True).split(rank.bincount().tolist()):  # all first columns, all second, ...
        z = stretch[chosen]
        earlier = codes.index_select(0, z)
        if below * size > K + SPARE:
            earlier, seen = _dense(earlier, below)
            found = seen.sum(1)
            earlier, below = earlier - (found.cumsum(0) - found).unsqueeze(1), int(found.max())
        codes.index_copy_(0, z, earlier.mul_(size).add_(columns.index_select(0, chosen)))
        below *= size
        largest = max(largest, below)
    numbers, seen = _dense(codes, largest)
    sizes = seen.sum(1)
    holder = torch.arange(K, device=codes.device).expand(Z, K).flatten()
    return numbers, sizes, holder.new_empty(int(sizes.sum())).scatter_(0, numbers.flatten(), holder)


def _dense(codes: Tensor, below: int) -> tuple[Tensor, Tensor]:
    """Number the pairs (z, code) in codes (Z, K) < below -> numbers (Z, K), pairs that occur (Z, below) bool."""
    places = (codes + below * torch.arange(len(codes), device=codes.device).unsqueeze(1)).flatten()
    seen = torch.zeros(len(codes) * below, dtype=torch.bool, device=codes.device).index_fill_(0, places, True)
    return (seen.cumsum(0) - 1).index_select(0, places).view_as(codes), seen.view(len(codes), below)


class Spans(NamedTuple):
    """The segments of a text in its order, copy after copy."""

    starts: Tensor  # (E,) int64, b * T + t of the first token
    ends: Tensor  # (E,) int64, b * T + t after the last token
    types: Tensor  # (E,) int64, position in `LabelSet.type_names`
    copies: Tensor  # (E,) int64, copy that contains the segment


def find_spans(text: CandidateText, label_set: LabelSet) -> Spans:
    """Return the segments of a text as defined by `segment_boundaries`; they do not cross copies."""
    real = torch.ones_like(text.labels, dtype=torch.bool)
    boundaries = segment_boundaries(text.labels, real, text.copies != shift(text.copies, 1, -1), label_set)
    starts, ends = (tokens.nonzero().squeeze(1) for tokens in boundaries)
    types = label_set.types.to(text.labels.device)[text.labels[starts]]
    return Spans(text.places[starts], text.places[ends] + 1, types, text.copies[starts])
