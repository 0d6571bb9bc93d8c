"""Token embedders: word vectors, character convolutions, embeddings of features; their vocabularies."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from structperc.data.corpus import Corpus
from structperc.data.json_data import check_value
from structperc.data.word_vectors import read_vectors
from structperc.encoders.base import TokenEmbedder, check_share
from structperc.errors import InputError
from structperc.ragged import Ragged
from structperc.structures import Batch, WeightAxes, real_tokens

UNKNOWN = 0  # number of strings outside the vocabulary


class StringVocabulary:
    """Numbers 1, 2, ... of known strings; every other string is UNKNOWN."""

    def __init__(self, known: Sequence[str]) -> None:
        self.known = list(known)
        self._numbers = {string: number for number, string in enumerate(self.known, UNKNOWN + 1)}

    @classmethod
    def frequent(cls, strings: Iterable[str], cutoff: int) -> "StringVocabulary":
        """Return the strings that occur at least `cutoff` times, most frequent first, equal counts in their order."""
        return cls([string for string, count in Counter(strings).most_common() if count >= cutoff])

    @classmethod
    def from_json(cls, known: Any, place: str) -> "StringVocabulary":
        """Return the vocabulary of saved strings.

        `known`: saved strings. `place`: name of the vocabulary for messages. Raises InputError: invalid or repeated
        strings.
        """
        check_value(known, list[str], place)
        if len(set(known)) < len(known):
            raise InputError(f"{place}: a string is repeated")
        return cls(known)

    def __len__(self) -> int:
        """Size of a table that has a row for each number."""
        return len(self.known) + 1

    def __contains__(self, string: str) -> bool:
        return string in self._numbers

    def numbers(self, strings: Iterable[str]) -> np.ndarray:
        """Return the numbers (n,) int32 of n strings."""
        return np.array([self._numbers.get(string, UNKNOWN) for string in strings], dtype=np.int32)


class VocabularyEmbedder(TokenEmbedder):
    """Base class of embedders with a vocabulary of strings and a table (V, D) of their vectors."""

    table: nn.Parameter
    table_width: int  # D
    trainable = True

    def __init__(self) -> None:
        super().__init__()
        self.known = StringVocabulary([])

    def to_state(self) -> list[str]:
        """Return the known strings."""
        return self.known.known

    def load_state(self, state: list[str]) -> None:
        """Create a table of zeros for these strings; saved weights fill it."""
        vocabulary = StringVocabulary.from_json(state, type(self).__name__)
        self._set_table(vocabulary, torch.zeros(len(vocabulary), self.table_width))

    def _set_table(self, known: StringVocabulary, table: Tensor) -> None:
        self.known, self.table = known, nn.Parameter(table, requires_grad=self.trainable)


class WordEmbedding(VocabularyEmbedder):
    """Word embedding: a trainable vector for each word, and one for all unknown words.

    Known words occur at least `cutoff` times in the training data or are in the file. Vectors that are not in the file
    are initialised from a normal distribution with the standard deviation of the file, or 1 / sqrt(width) without a
    file.

    Args:
        width: D, dimension of the vectors.
        cutoff: minimal count of a word in the training data; with 1 the vector of unknown words is trained only by
            `word_dropout`.
        path: file of vectors, see `word_vectors.read_vectors`; not needed by a saved model.
        fold: fold case, for files of vectors with folded case.
        column: column of the corpus; each of its values has a vector.
        word_dropout: share of tokens that are replaced by the unknown word in training.
        frozen: do not train the vectors.

    Raises:
        InputError: sizes below 1, an invalid share, or frozen vectors without a file; in training, vectors of another
            width and the errors of `read_vectors`.

    Example:
        >>> from structperc.data import Corpus
        >>> from structperc.encoders import WordEmbedding
        >>> embedder = WordEmbedding(width=50, cutoff=1)
        >>> embedder.build_vocabulary(Corpus.from_sentences([{"word": ["Anna", "slept"]}]))
        >>> (numbers,) = embedder.encode_inputs(Corpus.from_sentences([{"word": ["slept", "Ben"]}]))
        >>> numbers.ids.tolist(), embedder(numbers).shape  # 0 is the unknown word
        ([2, 0], torch.Size([2, 50]))
    """

    def __init__(
        self,
        width: int = 100,
        cutoff: int = 2,
        path: str | None = None,
        fold: bool = False,
        column: str = "word",
        word_dropout: float = 0.0,
        frozen: bool = False,
    ) -> None:
        super().__init__()
        for name, size in (("width", width), ("cutoff", cutoff)):
            if size < 1:
                raise InputError(f"WordEmbedding: {name} must be >= 1, got {size}")
        if frozen and path is None:
            raise InputError("WordEmbedding: frozen=True requires path")
        check_share("WordEmbedding: word_dropout", word_dropout)
        self.width, self.cutoff, self.path, self.fold, self.column = width, cutoff, path, fold, column
        self.word_dropout, self.frozen = word_dropout, frozen
        self.table_width, self.trainable = width, not frozen

    def build_vocabulary(self, corpus: Corpus) -> None:
        """Build the vocabulary of the training data and the file, and read the vectors of the file."""
        frequent = StringVocabulary.frequent(self._strings(corpus), self.cutoff)
        if self.path is None:
            self._set_table(frequent, torch.randn(len(frequent), self.width) / self.width**0.5)
            return
        words, vectors = read_vectors(self.path)
        if vectors.shape[1] != self.width:
            raise InputError(f"{self.path}: vectors of width {vectors.shape[1]}, not {self.width}; set width to that")
        given = set(words)
        vocabulary = StringVocabulary([*words, *(word for word in frequent.known if word not in given)])
        table = torch.randn(len(vocabulary), self.width) * vectors.std()
        table[UNKNOWN + 1 : UNKNOWN + 1 + len(words)] = vectors
        self._set_table(vocabulary, table)

    def source_files(self) -> list[str]:
        """Return the file of vectors, if there is one."""
        return [] if self.path is None else [self.path]

    def encode_inputs(self, corpus: Corpus) -> list[Ragged]:
        """Return one input: the number of each token."""
        numbers = torch.from_numpy(self.known.numbers(self._strings(corpus)))
        return [Ragged.from_counts(numbers, torch.ones(len(numbers), dtype=torch.int64))]

    def _strings(self, corpus: Corpus) -> Sequence[str]:
        if self.column not in corpus.columns:
            roles = ", ".join(role for role in corpus.columns if role != "label")
            raise InputError(f"{corpus.name}: WordEmbedding reads the missing column {self.column!r} ({roles})")
        strings = corpus.columns[self.column]
        return [string.casefold() for string in strings] if self.fold else strings

    def forward(self, numbers: Ragged) -> Tensor:
        """Return the vectors (n, D) of n words."""
        ids = numbers.ids
        if self.training and self.word_dropout:
            ids = ids.masked_fill(torch.rand(ids.shape, device=ids.device) < self.word_dropout, UNKNOWN)
        return nn.functional.embedding(ids, self.table)


class CharCNN(VocabularyEmbedder):
    """Convolution over the characters of a word with max pooling. Ma & Hovy 2016, section 2.1.

    Words are padded with zeros at both ends.

    Args:
        width: number of filters, D of the vectors.
        characters: dimension of the vectors of characters.
        window: width of the filters in characters, an odd number.
        dropout: share of the components of character vectors that are dropped in training.

    Raises:
        InputError: sizes below 1, an even window, or an invalid share.
    """

    def __init__(self, width: int = 30, characters: int = 30, window: int = 3, dropout: float = 0.0) -> None:
        super().__init__()
        for name, size in (("width", width), ("characters", characters), ("window", window)):
            if size < 1:
                raise InputError(f"CharCNN: {name} must be >= 1, got {size}")
        if window % 2 == 0:
            raise InputError(f"CharCNN: window must be odd, got {window}")
        check_share("CharCNN: dropout", dropout)
        self.width, self.characters, self.window, self.dropout = width, characters, window, dropout
        self.table_width = characters
        self.filters = nn.Conv1d(characters, width, window, padding=window // 2)

    def build_vocabulary(self, corpus: Corpus) -> None:
        """Build the vocabulary of characters, and initialise their vectors."""
        vocabulary = StringVocabulary.frequent("".join(corpus.columns["word"]), 1)
        self._set_table(vocabulary, torch.zeros(len(vocabulary), self.characters))
        nn.init.uniform_(self.table, -((3 / self.characters) ** 0.5), (3 / self.characters) ** 0.5)

    def encode_inputs(self, corpus: Corpus) -> list[Ragged]:
        """Return one input: the numbers of each word's characters."""
        words = corpus.columns["word"]
        lengths = torch.tensor(list(map(len, words)), dtype=torch.int64)
        return [Ragged.from_counts(torch.from_numpy(self.known.numbers("".join(words))), lengths)]

    def forward(self, numbers: Ragged) -> Tensor:
        """Return the vectors (n, D) of n words."""
        counts, longest = numbers.counts, numbers.longest
        if longest is None:
            longest = int(counts.max()) if len(counts) else 0
        real = real_tokens(counts, max(1, longest))  # real characters
        ids = numbers.ids.new_zeros(real.shape).masked_scatter(real, numbers.ids)
        vectors = nn.functional.dropout(nn.functional.embedding(ids, self.table), self.dropout, self.training)
        filtered = self.filters((vectors * real[:, :, None]).transpose(1, 2))
        return filtered.masked_fill(~real[:, None], -torch.inf).amax(2).nan_to_num(neginf=0.0)


class FeatureEmbedding(TokenEmbedder):
    """Weighted sum of the vectors of a token's node features, divided by the square root of their number.

    It makes clusters, gazetteers, affixes and document attributes an input of an encoder. They are given by the node
    templates of the tagger's `features`, as for a linear model. Templates of single attributes at the token itself are
    best, since the encoder models the context. Tokens without features have the vector 0.

    Args:
        width: D, dimension of the vectors.
        dropout: share of the features that are dropped in training, independently.

    Raises:
        InputError: a width below 1, or an invalid share; in training, templates that give no feature.
    """

    n_inputs = 0
    weight_axes: ClassVar[WeightAxes] = {"table": ("node", None)}
    table: nn.Parameter  # (F, D)

    def __init__(self, width: int = 50, dropout: float = 0.0) -> None:
        super().__init__()
        if width < 1:
            raise InputError(f"FeatureEmbedding: width must be >= 1, got {width}")
        check_share("FeatureEmbedding: dropout", dropout)
        self.width, self.dropout = width, dropout

    def allocate(self, n_features: int) -> None:
        """Create vectors (F, D) of the features, from a normal distribution with standard deviation 1 / sqrt(D)."""
        if not n_features:
            raise InputError("FeatureEmbedding: there are no node features; give templates as model.features")
        self.table = nn.Parameter(torch.randn(n_features, self.width) / self.width**0.5)

    def encode_inputs(self, corpus: Corpus) -> list[Ragged]:
        """Return no inputs: features are extracted for the whole tagger."""
        return []

    def numbers(self, batch: Batch) -> Ragged:
        """Return the node features of the tokens."""
        return batch.nodes

    def forward(self, numbers: Ragged) -> Tensor:
        """Return the vectors (n, D) of n tokens, each from a list of features."""
        ones = self.table.new_ones(numbers.ids.shape)
        shares = ones if numbers.weights is None else numbers.weights.to(ones)
        shares = nn.functional.dropout(shares, self.dropout, self.training)
        sums = nn.functional.embedding_bag(
            numbers.ids, self.table, numbers.offsets, mode="sum", per_sample_weights=shares, include_last_offset=True
        )
        return sums / numbers.counts.clamp(min=1).to(sums.dtype).sqrt().unsqueeze(1)
