"""Segments of all candidates of a batch, computed once for all non-local features."""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import torch
from numpy import ndarray
from torch import Tensor

from structperc.data.labels import LabelSet, segment_starts, shift
from structperc.nonlocal_features.candidate_text import (
    CandidateLabels,
    CandidateText,
    Spans,
    build_text,
    compare_candidates,
    find_spans,
)
from structperc.nonlocal_features.strings import SegmentStrings
from structperc.ragged import Ragged
from structperc.structures import Batch, real_tokens


class SegmentLists(NamedTuple):
    """Segments, candidate by candidate (b * K + k), in the order of their tokens."""

    bounds: ndarray  # (B * K + 1,) int64, label sequence i has the segments bounds[i]:bounds[i + 1]
    starts: ndarray  # (n,) int64, b * T + t of the first token
    stops: ndarray  # (n,) int64, b * T + t after the last token
    types: ndarray  # (n,) int64, position in `LabelSet.type_names`


class StringCounts(NamedTuple):
    """Counts of string features in N label sequences, whose segments have C types; each float32."""

    phrase: Tensor  # (N, C (C + 1) / 2), see `PhraseConsistency`
    subphrase: Tensor  # (N, C * C), see `SubphraseConsistency`
    majority_phrase: Tensor  # (N, C * C), see `MajorityPhrase`
    majority_superphrase: Tensor  # (N, C * C), see `MajoritySuperphrase`


MAX_COMPILED = 64  # candidates of a sequence; for more, `CandidateText` is faster
PLACES = 2**22  # segments x label sequences compared in one step: 32 MiB


@dataclass(frozen=True)
class CandidateSegments:
    """Segments of K label sequences of each of B sequences, and quantities that features share, computed lazily.

    Compiled functions read `lists`, the segments of each label sequence. All other properties are computed by tensor
    operations on any device, which process the common parts of label sequences once.

    Example:
        >>> from structperc import LabelSet
        >>> from structperc.nn.inputs import TokenPositions, build_batch
        >>> words, labels = "Ford met Anna".split(), LabelSet.from_corpus(["B-LOC", "B-PER"], "IOB2")
        >>> places = TokenPositions.from_mask(torch.ones(1, 3, dtype=torch.bool))
        >>> batch = build_batch(places, None, None, [words])
        >>> candidate = torch.from_numpy(labels.encode("B-PER O B-LOC".split())).view(1, 1, -1)
        >>> segments = CandidateSegments(batch, candidate, torch.tensor([[True]]), labels)
        >>> segments.spans.starts.tolist(), [labels.type_names[i] for i in segments.spans.types]
        ([0, 2], ['PER', 'LOC'])
    """

    batch: Batch
    labels: Tensor  # (B, K, T) int64; padding and invalid label sequences may contain any numbers
    valid: Tensor  # (B, K) bool
    label_set: LabelSet

    @property
    def compiled(self) -> bool:
        """True if compiled functions count: for few label sequences on a CPU."""
        return self.labels.device.type == "cpu" and self.labels.shape[1] <= MAX_COMPILED

    @cached_property
    def lists(self) -> SegmentLists:
        """The segments of each label sequence, on a CPU."""
        from structperc.nonlocal_features.segment_counts import list_segments  # needs a compiler

        own = self.labels, self.valid, self.batch.lengths, self.batch.first
        tables = self.label_set.types, self.label_set.opening
        return SegmentLists(*list_segments(*(x.contiguous().numpy() for x in (*own, *tables))))

    @cached_property
    def exact_counts(self) -> StringCounts:
        """Counts of segments that have the same words."""
        return self._string_counts(self.batch.words.exact)

    @cached_property
    def folded_counts(self) -> StringCounts:
        """Counts of segments that have the same words, ignoring case."""
        return self._string_counts(self.batch.words.folded)

    def _string_counts(self, words: Tensor) -> StringCounts:
        from structperc.nonlocal_features.segment_counts import count_strings

        counts = count_strings(*self.lists, words.flatten().numpy(), len(self.label_set.type_names))
        return StringCounts(*map(torch.from_numpy, counts))

    @cached_property
    def candidate_labels(self) -> CandidateLabels:
        """The label sequences and the tokens at which they differ."""
        return compare_candidates(self.labels, self.valid, real_tokens(self.batch.lengths, self.labels.shape[2]))

    @cached_property
    def possible(self) -> Tensor:
        """Tokens that are in a segment of some label sequence, (B, T) bool; may contain others."""
        real = real_tokens(self.batch.lengths, self.labels.shape[2])
        types = self.label_set.types.to(self.labels.device)
        return ((types[self.candidate_labels.reference] >= 0) & real) | self.candidate_labels.varies

    @cached_property
    def text(self) -> CandidateText:
        """Text of the `possible` tokens. Takes time O(K) for each token at which label sequences differ."""
        T, varies = self.labels.shape[2], self.candidate_labels.varies
        opening = segment_starts(self.candidate_labels.reference, self.label_set)
        parted = self.batch.first | (opening & ~varies & ~shift(varies, 1, False))
        places = varies.flatten().nonzero().squeeze(1)
        columns = self.candidate_labels.labels[places // T, :, places % T]
        return build_text(self.candidate_labels, self.possible, parted, places, columns, len(self.label_set))

    @cached_property
    def spans(self) -> Spans:
        """The segments of the text."""
        return find_spans(self.text, self.label_set)

    @cached_property
    def exact(self) -> SegmentStrings:
        """Strings of the segments, equal for segments with the same words."""
        return SegmentStrings(self.batch.words.exact, self.text, self.spans, len(self.label_set.type_names))

    @cached_property
    def folded(self) -> SegmentStrings:
        """Strings of the segments, equal for segments with the same words, ignoring case."""
        return SegmentStrings(self.batch.words.folded, self.text, self.spans, len(self.label_set.type_names))

    @cached_property
    def holders(self) -> Ragged:
        """Valid candidates b * K + k that contain each of the `spans`, ascending."""
        rows, K = self.spans.starts // self.possible.shape[1], self.valid.shape[1]
        variants = self.text.variants(self.spans.copies)
        found = [rows.new_zeros(0, 2)]
        for start in range(0, len(rows), max(1, PLACES // K)):
            part = slice(start, start + max(1, PLACES // K))
            contained = self.text.taken[self.text.stretches[variants[part]]] == variants[part].unsqueeze(1)
            found.append((contained & self.valid[rows[part]]).nonzero() + rows.new_tensor([start, 0]))
        span, k = torch.cat(found).unbind(1)
        return Ragged.from_counts(rows[span] * K + k, span.bincount(minlength=len(rows)))

    @cached_property
    def sentences(self) -> Tensor:
        """Number of the sentence of each token in the batch, (B * T,) int64, -1 in the padding."""
        real = real_tokens(self.batch.lengths, self.possible.shape[1])
        return self.batch.first.flatten().cumsum(0).where(real.flatten(), -1)

    def count_spans(self, columns: Tensor, F: int) -> Tensor:
        """Count the `spans` of each candidate by columns (E,) of F, -1 for no column -> counts (B * K, F)."""
        kept = (columns >= 0).nonzero().squeeze(1)
        groups = self.spans.starts[kept] // self.possible.shape[1] * F + columns[kept]
        return self.per_candidate(self.text.tally(self.spans.copies[kept], groups, len(self.valid) * F), F)

    def sum_columns(self, values: Tensor, rows: Tensor, columns: Tensor, F: int) -> Tensor:
        """Add up values (Q, K) of sequences rows (Q,) in columns (Q,) of F -> counts (B * K, F)."""
        sums = values.new_zeros(len(self.valid) * F, self.valid.shape[1])
        return self.per_candidate(sums.index_add_(0, rows * F + columns, values), F)

    def per_candidate(self, sums: Tensor, F: int) -> Tensor:
        """Rearrange sums (B * F, K) as counts of each label sequence, (B * K, F)."""
        B, K = self.valid.shape
        return sums.view(B, F, K).transpose(1, 2).reshape(B * K, F)
