"""The tensors that pass from one package to another.

Letters for shapes: B sequences, T tokens, L labels, K candidates, F features, n real tokens of a batch.
Sequences are padded to T on the right, and the padding is never read. Lists of ids are `Ragged`, without padding.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from structperc.ragged import Ragged


class Words(NamedTuple):
    """Numbers of the words of a batch, the same for equal or similar words in all batches; 0 in the padding."""

    exact: Tensor  # (B, T) int64, number of the word
    folded: Tensor  # (B, T) int64, number of the case-folded word
    shapes: Tensor  # (B, T) int64, number of its character types, see `data.words.word_shape`
    kinds: Tensor  # (B, T) int64, bits of its first character, see `data.words.word_kind`


class Batch(NamedTuple):
    """The padded sequences of a mini-batch, input of scorers and non-local features."""

    nodes: Ragged  # features of (token, label), a list for each of the n real tokens in row-major order of (B, T)
    edges: Ragged | None  # features of (token, previous label, label); None without such templates
    lengths: Tensor  # (B,) int64
    gold: Tensor | None  # (B, T) int64, 0 in the padding; None for text without labels
    sentences: Tensor  # (B, T) int64, number of each token's sentence within its sequence; 0 in the padding
    first: Tensor  # (B, T) bool, first token of a sentence; False in the padding
    last: Tensor  # (B, T) bool, last token of a sentence
    rows: Tensor  # (B,) int64, index of each sequence in the corpus
    words: Words
    inputs: tuple[Ragged, ...] = ()  # of encoders: ids of words, characters, pieces; see `encoders`


class FlatBatch(NamedTuple):
    """The concatenated sequences of a mini-batch, without padding, for updates after each sequence."""

    nodes: Ragged  # features of (token, label), a list for each of the n tokens
    edges: Ragged | None
    lengths: Tensor  # (B,) int64
    gold: Tensor  # (n,) int64
    sentences: Tensor  # (n,) int64, number of each token's sentence within its sequence
    first: Tensor  # (n,) bool, first token of a sentence
    last: Tensor  # (n,) bool, last token of a sentence
    rows: Tensor  # (B,) int64, index of each sequence in the corpus
    words: Words  # (n,) each
    inputs: tuple[Ragged, ...] = ()


class Lattice(NamedTuple):
    """Scores of labels and label pairs; -inf is impossible, NaN is invalid."""

    unary: Tensor  # (B, T, L) label j at t, with start scores at t = 0 and end scores at the last token
    edge: Tensor  # (B, T, L, L) label i at t-1 followed by j at t; t = 0 is never read. Or (1, 1, L, L): one
    #               stationary transition matrix for all tokens, with a gradient of this shape.
    #               An expanded view (stride 0) of such a matrix is treated as stationary.
    lengths: Tensor  # (B,) int64, 0 <= length <= T


class Candidates(NamedTuple):
    """The k best label sequences of each sequence, best first, without duplicates."""

    labels: Tensor  # (B, K, T) int64, 0 in the padding and in invalid rows
    scores: Tensor  # (B, K), -inf where invalid
    valid: Tensor  # (B, K) bool, False if there are fewer than K label sequences


class Scored(NamedTuple):
    """Input of a criterion: gold and candidates under the current weights, with gradients."""

    lattice: Lattice
    gold: Tensor  # (B, T) int64, 0 in the padding
    candidates: Candidates  # of the search, without gradients
    gold_scores: Tensor  # (B,) local score of gold
    candidate_scores: Tensor  # (B, K) local scores of the candidates
    gold_nonlocal: Tensor  # (B,) non-local score of gold; zeros without non-local features
    candidate_nonlocal: Tensor  # (B, K)
    starts: Tensor | None = None  # (B, T) bool, first tokens of sentences; None: each sequence is one sentence


def real_tokens(lengths: Tensor, T: int) -> Tensor:
    """Return a mask (B, T) bool, True for the tokens of each sequence of lengths (B,) int64, False in the padding."""
    return torch.arange(T, device=lengths.device) < lengths.unsqueeze(1)


def padded_places(starts: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """Return the indices (B, T) of tokens in a corpus, 0 in the padding, and the mask of `real_tokens`.

    Sequence b begins at starts[b]; starts and lengths are (B,) int64.
    """
    T = int(lengths.max()) if len(lengths) else 0
    real = real_tokens(lengths, T)
    return (starts.unsqueeze(1) + torch.arange(T, device=starts.device)) * real, real
