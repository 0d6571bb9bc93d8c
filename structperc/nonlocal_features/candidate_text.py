"""Parts that the candidates of one sequence share, without repetition.

The k best label sequences of a document differ at few tokens. A stretch is a run of tokens that no segment reaches
beyond. Where all candidates agree on a stretch, the text has one copy of it; where they differ, a copy for each
variant. What is counted in a copy is looked up for each candidate.
"""

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from structperc.data.labels import LabelSet, segment_boundaries, shift
from structperc.ragged import spread

SPARE = (
    1024  # codes of variants are made denser when they could take so many more values than there are label sequences
)


class CandidateLabels(NamedTuple):
    """K label sequences of each of B sequences, and where they differ."""

    labels: Tensor  # (B, K, T) int64, those that are not valid replaced by one that is
    chosen: Tensor  # (B,) int64, a valid label sequence, if there is one
    reference: Tensor  # (B, T) int64, its labels, 0 in the padding
    varies: Tensor  # (B, T) bool, False in the padding


class CandidateText(NamedTuple):
    """Copies of stretches, token by token, and which copies make up each label sequence.

    First come the copies that all label sequences of a sequence hold; together they are variant 0, the one variant of
    stretch 0. The other copies are the variants 1 <= v < V of the stretches 1 <= z < Z where label sequences differ.
    """

    places: Tensor  # (n,) int64, b * T + t of each token
    labels: Tensor  # (n,) int64
    copies: Tensor  # (n,) int64, the copy that each token belongs to, ascending
    common: int  # copies that all label sequences hold
    starts: Tensor  # (Z - 1,) int64, b * T + t of the first token of stretches 1 <= z < Z
    stretches: Tensor  # (V,) int64, stretch of each variant, ascending
    sizes: Tensor  # (Z,) int64, how many variants each stretch has
    taken: Tensor  # (Z, K) int64, variant of each stretch in each label sequence

    def tally(self, copies: Tensor, groups: Tensor, size: int, weights: Tensor | None = None) -> Tensor:
        """Sum what label sequences hold: entries (E,) in copies, of groups 0 <= g < size -> (size, K) float32.

        Entries weigh 1 unless weights (E,) are given. The entries of a group must be of one sequence. For each
        group and stretch, the sums of the variants are a table, in which the label sequences look up theirs.
        """
        Z, K = self.taken.shape
        variants = self.variants(copies)
        pairs, entry = (groups * Z + self.stretches[variants]).unique(return_inverse=True)
        group, stretch = pairs // Z, pairs % Z
        sizes = self.sizes[stretch]
        shifts = sizes.cumsum(0) - sizes - self.firsts[stretch]  # from variants to places in all tables
        weights = torch.ones_like(copies, dtype=torch.float32) if weights is None else weights
        tables = weights.new_zeros(int(sizes.sum())).index_add_(0, shifts[entry] + variants, weights)
        places = self.taken.index_select(0, stretch).add_(shifts.unsqueeze(1))
        looked_up = tables.index_select(0, places.flatten()).view(-1, K)
        return weights.new_zeros(size, K).index_add_(0, group, looked_up)

    def variants(self, copies: Tensor) -> Tensor:
        """The variant that each copy (E,) is or belongs to -> (E,) int64."""
        return (copies - (self.common - 1)).clamp_(min=0)

    @property
    def firsts(self) -> Tensor:
        """(Z,) int64, the first variant of each stretch."""
        return self.sizes.cumsum(0) - self.sizes


def compare_candidates(labels: Tensor, valid: Tensor, real: Tensor) -> CandidateLabels:
    """labels (B, K, T), valid (B, K), real (B, T), False in the padding -> Labellings.

    The padding may hold anything, and so may label sequences that are not valid.
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
    """The text of all stretches.

    kept (B, T): tokens of stretches, neighbours in one unless parted (B, T) from the token before.
    columns (N, K): numbers below `size` that tell the label sequences of a stretch apart, given at places (N,),
    ascending.
    """
    K, T = candidates.labels.shape[1:]
    opens = kept & (parted | ~shift(kept, 1, False))
    starts = opens.flatten().nonzero().squeeze(1)
    lengths = (opens.flatten().cumsum(0)[kept.flatten()] - 1).bincount(minlength=len(starts))
    differing, inverse = (torch.searchsorted(starts, places, right=True) - 1).unique_consecutive(return_inverse=True)
    numbers, sizes, example = _numbered(columns, inverse, len(differing), size)

    agreed = torch.ones_like(starts, dtype=torch.bool).index_fill_(0, differing, False).nonzero().squeeze(1)
    stretches = torch.repeat_interleave(sizes)
    source = torch.cat([agreed, differing[stretches]])  # of each copy, its place among all stretches
    example = torch.cat([candidates.chosen[starts[agreed] // T], example])
    copies, places = spread(lengths[source], starts[source])
    line = places // T * (K - 1) + example[copies]  # lines of labels before, less one per sequence
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

    -> numbers (Z, K), ascending with z and never the same in two; how many each z has (Z,); for each number a k.
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
    """codes (Z, K) < below -> numbers 0, 1, ... of the pairs (z, code) that occur, and which do (Z, below) bool."""
    places = (codes + below * torch.arange(len(codes), device=codes.device).unsqueeze(1)).flatten()
    seen = torch.zeros(len(codes) * below, dtype=torch.bool, device=codes.device).index_fill_(0, places, True)
    return (seen.cumsum(0) - 1).index_select(0, places).view_as(codes), seen.view(len(codes), below)


class Spans(NamedTuple):
    """The segments of a text in its order, copy after copy."""

    starts: Tensor  # (E,) int64, b * T + t of the first token
    ends: Tensor  # (E,) int64, b * T + t after the last token
    types: Tensor  # (E,) int64, position in `LabelSet.type_names`
    copies: Tensor  # (E,) int64, the copy that holds it


def find_spans(text: CandidateText, label_set: LabelSet) -> Spans:
    """Read the segments as `segment_boundaries` does; none goes on in the next copy."""
    real = torch.ones_like(text.labels, dtype=torch.bool)
    boundaries = segment_boundaries(text.labels, real, text.copies != shift(text.copies, 1, -1), label_set)
    starts, ends = (tokens.nonzero().squeeze(1) for tokens in boundaries)
    types = label_set.types.to(text.labels.device)[text.labels[starts]]
    return Spans(text.places[starts], text.places[ends] + 1, types, text.copies[starts])
