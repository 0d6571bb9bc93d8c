"""The segments of all labellings of a batch, found once and shared by all non-local features."""

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from structperc.data.labels import LabelSet
from structperc.data.segment_masks import opening_tokens, shift
from structperc.nonlocal_features.spans import Spans, find_spans
from structperc.nonlocal_features.strings import Strings
from structperc.nonlocal_features.text import Labellings, Text, compare_labellings, read
from structperc.ragged import Ragged
from structperc.structures import Batch, real_tokens

PLACES = 2**22  # segments x labellings that are compared at a time: 32 MiB


@dataclass(frozen=True)
class CandidateSegments:
    """The segments of K labellings of each of B sequences, and the questions that features ask about them."""

    batch: Batch
    label_set: LabelSet
    valid: Tensor  # (B, K) bool
    labellings: Labellings
    possible: Tensor  # (B, T) bool, tokens that may be inside of a segment
    text: Text
    spans: Spans

    @cached_property
    def exact(self) -> Strings:
        """The strings of the segments, which are equal where segments have the same words."""
        return Strings(self.batch.words.exact, self.text, self.spans, len(self.label_set.type_names))

    @cached_property
    def folded(self) -> Strings:
        """The strings of the segments, which are equal where segments have the same words but for their case."""
        return Strings(self.batch.words.folded, self.text, self.spans, len(self.label_set.type_names))

    @cached_property
    def holders(self) -> Ragged:
        """The valid labellings b * K + k that have each of the `spans`, ascending: they hold the copy it stands in."""
        rows, K = self.spans.starts // self.possible.shape[1], self.valid.shape[1]
        variants = self.text.variants(self.spans.copies)
        found = [rows.new_zeros(0, 2)]
        for start in range(0, len(rows), max(1, PLACES // K)):
            part = slice(start, start + max(1, PLACES // K))
            held = self.text.taken[self.text.stretches[variants[part]]] == variants[part].unsqueeze(1)
            found.append((held & self.valid[rows[part]]).nonzero() + rows.new_tensor([start, 0]))
        span, k = torch.cat(found).unbind(1)
        return Ragged.of_counts(rows[span] * K + k, span.bincount(minlength=len(rows)))

    @cached_property
    def sentences(self) -> Tensor:
        """(B * T,) int64, a number for each sentence of the batch, -1 in the padding."""
        real = real_tokens(self.batch.lengths, self.possible.shape[1])
        return self.batch.first.flatten().cumsum(0).where(real.flatten(), -1)

    def tallied(self, columns: Tensor, F: int) -> Tensor:
        """Count what each labelling holds of `spans`: columns (E,) of F, -1 for those left out -> counts (B * K, F)."""
        kept = (columns >= 0).nonzero().squeeze(1)
        groups = self.spans.starts[kept] // self.possible.shape[1] * F + columns[kept]
        return self.per_labelling(self.text.tally(self.spans.copies[kept], groups, len(self.valid) * F), F)

    def summed(self, values: Tensor, rows: Tensor, columns: Tensor, F: int) -> Tensor:
        """Add up values (Q, K) of sequences rows (Q,) in columns (Q,) of F -> counts (B * K, F)."""
        sums = values.new_zeros(len(self.valid) * F, self.valid.shape[1])
        return self.per_labelling(sums.index_add_(0, rows * F + columns, values), F)

    def per_labelling(self, sums: Tensor, F: int) -> Tensor:
        """Turn sums (B * F, K) into counts of each labelling, (B * K, F)."""
        B, K = self.valid.shape
        return sums.view(B, F, K).transpose(1, 2).reshape(B * K, F)


def find_segments(batch: Batch, labels: Tensor, valid: Tensor, label_set: LabelSet) -> CandidateSegments:
    """Read the segments of labels (B, K, T) int64, of which valid (B, K) bool count; gold is one of the K.

    They are those that `segment_boundaries` reads. The padding may hold anything, and so may
    labellings that are not valid. One comparison looks at all B K T labels; the rest of the work is O(K) for each
    token at which labellings of a sequence differ, and what they agree on is read once.
    """
    T = labels.shape[2]
    real = real_tokens(batch.lengths, T)
    labellings = compare_labellings(labels, valid, real)
    reference, varies = labellings.reference, labellings.varies
    possible = ((label_set.types.to(labels.device)[reference] >= 0) & real) | varies
    parted = batch.first | (opening_tokens(reference, label_set) & ~varies & ~shift(varies, 1, False))
    places = varies.flatten().nonzero().squeeze(1)
    columns = labellings.labels[places // T, :, places % T]
    text = read(labellings, possible, parted, places, columns, len(label_set))
    return CandidateSegments(batch, label_set, valid, labellings, possible, text, find_spans(text, label_set))
