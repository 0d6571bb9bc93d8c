"""Vectors of words from their characters."""

import torch
from torch import Tensor, nn

from structperc.data.corpus import Corpus
from structperc.encoders.base import TokenEmbedder, check_share
from structperc.encoders.strings import KnownStrings
from structperc.errors import InputError
from structperc.ragged import Ragged
from structperc.structures import real_tokens


class CharCNN(TokenEmbedder):
    """Convolution over the characters of a word, then the maximum of each filter. Ma & Hovy 2016, section 2.1.

    Words are padded with zeros at both ends, so that windows see where they begin and end.

    Args:
        width: number of filters, D of the vectors.
        characters: width of the characters' vectors.
        window: characters that a filter sees, an odd number.
        dropout: share of the components of characters' vectors that is dropped in training.

    Raises:
        InputError: sizes below 1, an even window, a share that is none.
    """

    table: nn.Parameter  # (V, characters)

    def __init__(self, width: int = 30, characters: int = 30, window: int = 3, dropout: float = 0.0) -> None:
        super().__init__()
        for name, size in (("width", width), ("characters", characters), ("window", window)):
            if size < 1:
                raise InputError(f"CharCNN: {name} must be >= 1, got {size}")
        if window % 2 == 0:
            raise InputError(f"CharCNN: window must be odd, got {window}: it has a character in its middle")
        check_share("CharCNN: dropout", dropout)
        self.width, self.characters, self.window, self.dropout = width, characters, window, dropout
        self.filters = nn.Conv1d(characters, width, window, padding=window // 2)
        self.known = KnownStrings([])

    def learn(self, corpus: Corpus) -> None:
        """Number the characters of the training data, and create their vectors."""
        self._begin(KnownStrings.frequent("".join(corpus.columns["word"]), 1))
        nn.init.uniform_(self.table, -((3 / self.characters) ** 0.5), (3 / self.characters) ** 0.5)

    def learned(self) -> list[str]:
        """Return the characters that have vectors of their own, as saved models keep them."""
        return self.known.known

    def load_state(self, learned: list[str]) -> None:
        """Create a table of zeros for characters that `learned` gave; saved weights fill it."""
        self._begin(KnownStrings.from_json(learned, "CharCNN"))

    def _begin(self, known: KnownStrings) -> None:
        self.known, self.table = known, nn.Parameter(torch.zeros(len(known), self.characters))

    def read(self, corpus: Corpus) -> list[Ragged]:
        """Return one input: the numbers of each word's characters."""
        words = corpus.columns["word"]
        lengths = torch.tensor(list(map(len, words)), dtype=torch.int64)
        return [Ragged.of_counts(torch.from_numpy(self.known.numbers("".join(words))), lengths)]

    def forward(self, numbers: Ragged) -> Tensor:
        """Return the vectors (n, D) of n words."""
        counts, longest = numbers.counts, numbers.longest
        if longest is None:
            longest = int(counts.max()) if len(counts) else 0
        real = real_tokens(counts, max(1, longest))  # of characters
        ids = numbers.ids.new_zeros(real.shape).masked_scatter(real, numbers.ids)
        vectors = nn.functional.dropout(nn.functional.embedding(ids, self.table), self.dropout, self.training)
        found = self.filters((vectors * real[:, :, None]).transpose(1, 2))
        return found.masked_fill(~real[:, None], -torch.inf).amax(2).nan_to_num(neginf=0.0)
