"""The tensors that pass from one package to another.

Letters for shapes: B sequences, T tokens, L labels, K candidates, F features, n real tokens of a batch.
Sequences are padded to T on the right, and the padding is never read. Lists of ids are `Ragged`, without padding.
"""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor

from structperc.ragged import Ragged

Axis = Literal["node", "edge", "label", "label pair"]  # an axis as long as the number of node features, ...
WeightAxes = Mapping[str, tuple[Axis | None, ...]]  # the axes of weights by name; None: of another length


class Words(NamedTuple):
    """Numbers of the words of a batch, the same for equal or similar words in all batches; 0 in the padding."""

    exact: Tensor  # (B, T) int64, number of the word
    folded: Tensor  # (B, T) int64, number of the case-folded word
    shapes: Tensor  # (B, T) int64, number of its character types, see `data.words.word_shape`
    kinds: Tensor  # (B, T) int64, bits of its first character, see `data.words.word_kind`


class Batch(NamedTuple):
    """The padded sequences of a mini-batch, input of scorers and non-local features.

    Example:
        >>> from structperc import Corpus, FeatureExtractor, LabelSet
        >>> from structperc.datamodules.encoded import EncodedCorpus
        >>> sentences = [{"word": ["Anna", "left"], "label": ["B-PER", "O"]}, {"word": ["Yes"], "label": ["O"]}]
        >>> corpus, features = Corpus.from_sentences(sentences), FeatureExtractor(["w[0]"], cutoff=1)
        >>> features.fit(corpus)
        >>> batch = EncodedCorpus(corpus, features, LabelSet(("O", "B-PER", "I-PER")))[[0, 1]]
        >>> batch.lengths.tolist(), batch.gold.tolist()
        ([2, 1], [[1, 0], [0, 0]])
    """

    nodes: Ragged  # features of (token, label), a list for each of the n real tokens in row-major order of (B, T)
    edges: Ragged | None  # features of (token, previous label, label); None without such templates
    lengths: Tensor  # (B,) int64
    gold: Tensor | None  # (B, T) int64, 0 in the padding; None for text without labels
    sentences: Tensor  # (B, T) int64, number of each token's sentence within its sequence; 0 in the padding
    first: Tensor  # (B, T) bool, first token of a sentence; False in the padding
    last: Tensor  # (B, T) bool, last token of a sentence
    rows: Tensor  # (B,) int64, index of each sequence in the corpus
    words: Words
    inputs: tuple[Ragged, ...] = ()  # input of encoders: ids of words, characters, subwords; see `encoders`
    allowed: Tensor | None = None  # (B, T, L) bool, labels that may be right, True in the padding; `gold` is then one
    #                                of them at each token. None: all labels are known, as `gold`
    weights: Tensor | None = None  # (B, T) float32, weights of the tokens in training; None: 1 each
    restriction: Any = None  # what may be predicted, a `chain.Restriction`; None: all


class SentenceBoundaries(NamedTuple):
    """Masks of the real tokens, and of the first and last one of each sentence."""

    real: Tensor  # (B, T) bool, False in the padding
    first: Tensor  # (B, T) bool
    last: Tensor  # (B, T) bool


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
    allowed: Tensor | None = None  # (n, L) bool, see `Batch`
    weights: Tensor | None = None  # (n,) float32


class SegmentScores(NamedTuple):
    """Scores of segments by type, and the labels of their tokens (Sarawagi & Cohen 2004)."""

    scores: Tensor  # (B or 1, T or 1, D, C) score of the segment of type c that begins at t and has d + 1 tokens.
    #                 1: the same for all sequences or tokens. Segments that end after the last token are never read
    labels: Tensor  # (C + 1, 4) int64, labels of a segment of one token, and of the first, the middle and the last
    #                 tokens of a longer one, by type; in the last row O. See `LabelSet.segment_labels`


class Lattice(NamedTuple):
    """Scores of labels, of label pairs, and of segments; -inf is impossible, NaN is invalid.

    With scores of segments, as in a semi-Markov model, the score of a label sequence includes that of each of its
    segments, and a segment of more than D tokens is impossible. Labels show where segments begin and end. The functions
    of `chain` support it, except for those of label pairs. Of equal label sequences the first in the order of their
    segments wins: at the first difference, segments of one token by type, then O, then longer segments by type, the
    shorter one first.

    Example:
        >>> from structperc.chain import viterbi
        >>> unary = torch.tensor([[[1.0, 0.0], [0.0, 0.5]]])  # one sequence, two tokens, two labels
        >>> edge = torch.tensor([[2.0, 0.0], [0.0, 0.0]]).view(1, 1, 2, 2)  # prefers label 0 after label 0
        >>> lattice = Lattice(unary, edge, torch.tensor([2]))
        >>> viterbi(lattice)
        (tensor([3.]), tensor([[0, 0]]))
        >>> viterbi(lattice._replace(starts=torch.tensor([[True, True]])))  # two sentences
        (tensor([1.5000]), tensor([[0, 1]]))
        >>> scores = torch.tensor([[[0.0, 5.0], [0.0, 0.0]]]).unsqueeze(3)  # 5 for two tokens from the first one
        >>> segments = SegmentScores(scores, torch.tensor([[1, 1, 2, 2], [0, 0, 0, 0]]))  # O, B, I
        >>> viterbi(Lattice(torch.zeros(1, 2, 3), torch.zeros(1, 1, 3, 3), torch.tensor([2]), segments=segments))
        (tensor([5.]), tensor([[1, 2]]))
    """

    unary: Tensor  # (B, T, L) score of label j at t, with start scores at t = 0 and end scores at the last token
    edge: Tensor  # (B, T, L, L) score of label i at t-1 followed by j at t; t = 0 is never read. Or (1, 1, L, L): one
    #               stationary transition matrix for all tokens, with a gradient of this shape.
    #               An expanded view (stride 0) of such a matrix is treated as stationary.
    lengths: Tensor  # (B,) int64, 0 <= length <= T
    starts: Tensor | None = None  # (B, T) bool, first tokens of independent sentences: the score of the label pair is 0
    #                               there, and no segment crosses. None: the tokens of a sequence depend on one another
    segments: SegmentScores | None = None  # needs stationary scores of label pairs


class Candidates(NamedTuple):
    """The k best label sequences of each sequence, best first, without duplicates."""

    labels: Tensor  # (B, K, T) int64, 0 in the padding and in invalid rows
    scores: Tensor  # (B, K), -inf where invalid
    valid: Tensor  # (B, K) bool, False if there are fewer than K label sequences


class Scored(NamedTuple):
    """Input of a criterion: gold labels and candidates with their scores under the current weights, with gradients."""

    lattice: Lattice
    gold: Tensor  # (B, T) int64, 0 in the padding; for incomplete labels, the best path of allowed labels
    candidates: Candidates  # result of the search, without gradients
    gold_scores: Tensor  # (B,) local score of the gold labels
    candidate_scores: Tensor  # (B, K) local scores of the candidates
    gold_nonlocal: Tensor  # (B,) non-local score of the gold labels; zeros without non-local features
    candidate_nonlocal: Tensor  # (B, K)
    starts: Tensor | None = None  # (B, T) bool, first tokens of sentences; None: each sequence is one sentence
    allowed: Tensor | None = None  # (B, T, L) bool, labels that may be right, True in the padding; None: gold only
    weights: Tensor | None = None  # (B, T) float32, weights of the tokens, equal within sequences for most criteria


def to_device(value: Any, device: torch.device) -> Any:
    """Return a tensor, or a named tuple of tensors such as `Batch`, on a device; other values are not changed."""
    if isinstance(value, Tensor):
        return value.to(device)
    if not isinstance(value, tuple):
        return value
    parts = [to_device(part, device) for part in value]
    return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)


def real_tokens(lengths: Tensor, T: int) -> Tensor:
    """Return a mask of the tokens that are not padding.

    `lengths`: (B,) int64, number of tokens of each sequence. `T`: number of columns. Returns (B, T) bool, False in the
    padding.
    """
    return torch.arange(T, device=lengths.device) < lengths.unsqueeze(1)


def padded_places(starts: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """Return the indices of padded tokens in a corpus.

    `starts`: (B,) int64, index of the first token of each sequence. `lengths`: (B,) int64, number of tokens of each
    sequence. Returns the indices (B, T) int64, 0 in the padding, and the mask of `real_tokens`.
    """
    T = int(lengths.max()) if len(lengths) else 0
    real = real_tokens(lengths, T)
    return (starts.unsqueeze(1) + torch.arange(T, device=starts.device)) * real, real
