"""A vector for each word, learned or taken from a file."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from structperc.data.corpus import Corpus
from structperc.encoders.base import TokenEmbedder, check_share
from structperc.encoders.strings import UNKNOWN, KnownStrings
from structperc.encoders.vectors import read_vectors
from structperc.errors import InputError
from structperc.ragged import Ragged


class WordEmbedding(TokenEmbedder):
    """A row of a table for each word (or value of another column); one row for all that are unknown.

    Known are the words that occur `cutoff` times or more in the training data, and those of the file. Rows without a
    vector of their own begin with numbers from a normal distribution of the file's spread, or of 1 / sqrt(width).

    Args:
        width: D of the vectors.
        cutoff: how often a word must occur in training; 1 leaves nothing from which the unknown row could learn,
            unless there is `word_dropout`.
        path: file of vectors, see `vectors.read_vectors`; it is not needed any more once the model is saved.
        fold: fold case, as the words of many files are.
        column: of the corpus.
        word_dropout: in training, share of tokens that are taken for unknown words.
        frozen: leave the rows as the file has them.

    Raises:
        InputError: sizes below 1, a share that is none, frozen rows that are from no file; in training,
            vectors of another width, and as of `read_vectors`.
    """

    table: nn.Parameter  # (V, D)

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
            raise InputError("WordEmbedding: frozen rows without a path would stay random; give a path")
        check_share("WordEmbedding: word_dropout", word_dropout)
        self.width, self.cutoff, self.path, self.fold, self.column = width, cutoff, path, fold, column
        self.word_dropout, self.frozen = word_dropout, frozen
        self.known = KnownStrings([])

    def learn(self, corpus: Corpus) -> None:
        """Number the words of the training data and of the file, and take the vectors of the file."""
        own = KnownStrings.frequent(self._strings(corpus), self.cutoff)
        if self.path is None:
            self._begin(own, torch.randn(len(own), self.width) / self.width**0.5)
            return
        words, vectors = read_vectors(self.path)
        if vectors.shape[1] != self.width:
            raise InputError(f"{self.path}: vectors of width {vectors.shape[1]}, not {self.width}; set width to that")
        given = dict(zip(words, range(len(words)), strict=True))
        known = KnownStrings([*words, *(word for word in own.known if word not in given)])
        table = torch.randn(len(known), self.width) * vectors.std()
        table[UNKNOWN + 1 : UNKNOWN + 1 + len(words)] = vectors
        self._begin(known, table)

    def places(self) -> list[str]:
        """Return the file of vectors, where one is given."""
        return [] if self.path is None else [self.path]

    def learned(self) -> list[str]:
        """Return the words that have vectors of their own, as saved models keep them."""
        return self.known.known

    def load_state(self, learned: list[str]) -> None:
        """Create a table of zeros for words that `learned` gave; saved weights fill it."""
        known = KnownStrings.from_json(learned, "WordEmbedding")
        self._begin(known, torch.zeros(len(known), self.width))

    def _begin(self, known: KnownStrings, table: Tensor) -> None:
        self.known, self.table = known, nn.Parameter(table, requires_grad=not self.frozen)

    def read(self, corpus: Corpus) -> list[Ragged]:
        """Return one input: the number of each token."""
        numbers = torch.from_numpy(self.known.numbers(self._strings(corpus)))
        return [Ragged.of_counts(numbers, torch.ones(len(numbers), dtype=torch.int64))]

    def _strings(self, corpus: Corpus) -> Sequence[str]:
        if self.column not in corpus.columns:
            roles = ", ".join(role for role in corpus.columns if role != "label")
            raise InputError(f"{corpus.name}: WordEmbedding reads column {self.column!r}, which is not there ({roles})")
        strings = corpus.columns[self.column]
        return [string.casefold() for string in strings] if self.fold else strings

    def forward(self, numbers: Ragged) -> Tensor:
        """Return the vectors (n, D) of n words."""
        ids = numbers.ids
        if self.training and self.word_dropout:
            ids = ids.masked_fill(torch.rand(ids.shape, device=ids.device) < self.word_dropout, UNKNOWN)
        return nn.functional.embedding(ids, self.table)
