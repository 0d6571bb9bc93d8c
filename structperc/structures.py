"""Every tensor that passes from one room to another, on one page.

Letters for shapes: B sequences, T tokens, L labels, K candidates, F features, n real tokens of a batch.
Sequences are padded to T on the right; nothing in the padding is ever read. Lists of ids, whose lengths differ, are
not padded: they are `Ragged`.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from structperc.ragged import Ragged


class Words(NamedTuple):
    """Numbers of the words of a batch, equal for words that are equal or look alike, in any batch; 0 in the padding."""

    exact: Tensor  # (B, T) int64, number of the word
    folded: Tensor  # (B, T) int64, number of the case-folded word
    shapes: Tensor  # (B, T) int64, number of its character types, see `data.words.word_shape`
    kinds: Tensor  # (B, T) int64, bits that say what it begins with, see `data.words.word_kind`


class Batch(NamedTuple):
    """The sequences of a mini-batch as scorers and non-local features read them."""

    nodes: Ragged  # features of (token, label), a list for each of the n real tokens in row-major order of (B, T)
    edges: Ragged | None  # features of (token, previous label, label); None when no template asks
    lengths: Tensor  # (B,) int64
    gold: Tensor | None  # (B, T) int64, 0 in the padding; None for text without labels
    sentences: Tensor  # (B, T) int64, number of each token's sentence within its sequence; 0 in the padding
    first: Tensor  # (B, T) bool, first token of a sentence; False in the padding
    last: Tensor  # (B, T) bool, last token of a sentence
    rows: Tensor  # (B,) int64, which sequence of the corpus each row is
    words: Words
    inputs: tuple[Ragged, ...] = ()  # what encoders read, ids of words, characters, pieces; see `encoders`


class FlatBatch(NamedTuple):
    """The sequences of a mini-batch one after the other, without padding, for learning one sequence at a time."""

    nodes: Ragged  # features of (token, label), a list for each of the n tokens
    edges: Ragged | None
    lengths: Tensor  # (B,) int64
    gold: Tensor  # (n,) int64
    sentences: Tensor  # (n,) int64, number of each token's sentence within its sequence
    first: Tensor  # (n,) bool, first token of a sentence
    last: Tensor  # (n,) bool, last token of a sentence
    rows: Tensor  # (B,) int64, which sequence of the corpus each one is
    words: Words  # (n,) each
    inputs: tuple[Ragged, ...] = ()


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
    """Input of a criterion: gold and candidates under the current weights, with gradients."""

    lattice: Lattice
    gold: Tensor  # (B, T) int64, 0 in the padding
    candidates: Candidates  # found by the search, without gradients
    gold_scores: Tensor  # (B,) local score of gold
    candidate_scores: Tensor  # (B, K) local scores of the candidates
    gold_nonlocal: Tensor  # (B,) non-local score of gold; zeros when no non-local feature is used
    candidate_nonlocal: Tensor  # (B, K)
    starts: Tensor | None = None  # (B, T) bool, first tokens of sentences; None: each sequence is one sentence


def real_tokens(lengths: Tensor, T: int) -> Tensor:
    """Return a mask (B, T) bool, True for the tokens of each sequence of lengths (B,) int64, False in the padding."""
    return torch.arange(T, device=lengths.device) < lengths.unsqueeze(1)


def padded_places(starts: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """Where the tokens of some sequences stand in a corpus, sequence b from starts[b] on; both (B,) int64.

    -> places (B, T), 0 in the padding; (B, T) bool as of `real_tokens`.
    """
    T = int(lengths.max()) if len(lengths) else 0
    real = real_tokens(lengths, T)
    return (starts.unsqueeze(1) + torch.arange(T, device=starts.device)) * real, real
