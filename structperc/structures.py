"""Every tensor that passes from one room to another, on one page.

Letters for shapes: B sequences, T tokens, L labels, K candidates, F features, n real tokens of a batch.
Sequences are padded to T on the right; nothing in the padding is ever read.
"""

from typing import NamedTuple

import torch
from torch import Tensor


class Transposed(NamedTuple):
    """The same occurrences feature by feature: feature features[r] is at tokens[offsets[r]:offsets[r+1]]."""

    features: Tensor  # (R,) int64, those that occur, ascending
    tokens: Tensor  # (M,) int32, ascending for each feature
    offsets: Tensor  # (R + 1,) int32


class SparseFeatures(NamedTuple):
    """Feature ids of the n real tokens of a batch, ragged: token i has ids[offsets[i]:offsets[i+1]].

    Ragged rather than (B, T, F): of the Table-1 templates of Kazama & Torisawa (2007) fewer than half
    fire at a token, and padding costs nothing this way. Tokens are in row-major order of (B, T).
    """

    ids: Tensor  # (M,) int32, each in 0 <= id < number of features
    offsets: Tensor  # (n + 1,) int32
    transposed: Transposed | None = None  # for dense gradients of batches that are seen many times

    def slice(self, start: int, stop: int) -> "SparseFeatures":
        """Return the features of the tokens start, ..., stop - 1; ids are a view."""
        offsets = self.offsets[start : stop + 1]
        return SparseFeatures(self.ids[int(offsets[0]) : int(offsets[-1])], offsets - offsets[0])

    def select(self, tokens: Tensor) -> "SparseFeatures":
        """Return the features of tokens (m,) int64, which may repeat, in this order."""
        first = self.offsets[tokens]
        counts = self.offsets[tokens + 1] - first
        ends = counts.cumsum(0)
        places = torch.repeat_interleave(first - (ends - counts), counts)
        places = places + torch.arange(len(places), device=tokens.device)
        return SparseFeatures(self.ids[places], torch.nn.functional.pad(ends, (1, 0)).to(self.offsets.dtype))

    def transpose(self) -> "SparseFeatures":
        """Return the same with `transposed`, which makes gradients of many tokens several times faster."""
        token = torch.repeat_interleave(self.offsets.diff().long())
        order = self.ids.argsort(stable=True)
        present, count = self.ids.unique(return_counts=True)
        ends = torch.nn.functional.pad(count.cumsum(0), (1, 0))
        return self._replace(transposed=Transposed(present.long(), token[order].int(), ends.int()))


class Words(NamedTuple):
    """Which words of a batch are equal or look alike; equal ones have equal numbers, in any batch. 0 in the padding."""

    exact: Tensor  # (B, T) int64, number of the word
    folded: Tensor  # (B, T) int64, number of the case-folded word
    shapes: Tensor  # (B, T) int64, number of its character types, see `data.words.word_shape`
    kinds: Tensor  # (B, T) int64, bits that say what it begins with, see `data.words.word_kind`


class Batch(NamedTuple):
    """Sequences as scorers and non-local features read them."""

    nodes: SparseFeatures  # features of (token, label)
    edges: SparseFeatures | None  # features of (token, previous label, label); None when no template asks
    lengths: Tensor  # (B,) int64
    gold: Tensor | None  # (B, T) int64, 0 in the padding; None for text without labels
    sentences: Tensor  # (B, T) int64, number of each token's sentence within its sequence; 0 in the padding
    first: Tensor  # (B, T) bool, first token of a sentence; False in the padding
    last: Tensor  # (B, T) bool, last token of a sentence
    rows: Tensor  # (B,) int64, which sequence of the corpus each row is
    words: Words
    inputs: tuple[SparseFeatures, ...] = ()  # what encoders read, ids of words, characters, pieces; see `encoders`


class Lattice(NamedTuple):
    """Scores of labels and label pairs. -inf marks what is impossible; NaN is not a score."""

    unary: Tensor  # (B, T, L) label j at t; start scores live at t = 0, end scores at the last position
    edge: Tensor  # (B, T, L, L) label i at t-1 followed by j at t; t = 0 is never read. Or (1, 1, L, L): one
    #               stationary transition matrix for all tokens, whose gradient then is as small as it is.
    #               An expanded view (stride 0) of one is read as such, too.
    lengths: Tensor  # (B,) int64, 0 <= length <= T


class Candidates(NamedTuple):
    """The k best labellings of each sequence, best first, without duplicates."""

    labels: Tensor  # (B, K, T) int64, 0 in the padding and in invalid rows
    scores: Tensor  # (B, K), -inf where invalid
    valid: Tensor  # (B, K) bool, False where fewer than K labellings are possible


class Scored(NamedTuple):
    """What a criterion compares: gold and candidates under the current weights, with gradients."""

    lattice: Lattice
    gold: Tensor  # (B, T) int64, 0 in the padding
    candidates: Candidates  # found by the search, without gradients
    gold_scores: Tensor  # (B,) local score of gold
    candidate_scores: Tensor  # (B, K) local scores of the candidates
    gold_nonlocal: Tensor  # (B,) non-local score of gold; zeros when no non-local feature is used
    candidate_nonlocal: Tensor  # (B, K)
    starts: Tensor | None = None  # (B, T) bool, first tokens of sentences; None: each sequence is one sentence


def real_tokens(lengths: Tensor, T: int) -> Tensor:
    """lengths (B,) int64 -> (B, T) bool on their device: True for the tokens of each sequence, False in the padding."""
    return torch.arange(T, device=lengths.device) < lengths.unsqueeze(1)
