"""Words that usually begin with a lower-case letter."""

from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from structperc.data.text_files import expand_path, read_lines
from structperc.data.words import word_hashes
from structperc.errors import InputError
from structperc.spelling import counted


class LowerCaseLexicon(nn.Module):
    """Words whose first letter is more often lower case than upper case in a large text (Collins 2002, section 3.2).

    Words are compared case-insensitively. They are part of the module's state: a saved model does not need the text.

    Args:
        text: a UTF-8 file of words separated by white space; environment variables are expanded. By default the words
            given to `read` are the text.
        column: index of the column to read, as in CoNLL files; by default all words.

    Raises:
        InputError: a negative column, or one without a text.

    Example:
        >>> lexicon = LowerCaseLexicon.from_words("The animal saw the other animal near Oslo".split())
        >>> "Animal" in lexicon, "Oslo" in lexicon
        (True, False)
    """

    words: Tensor  # (H,) int64, hashes of the case-folded words, ascending
    any_size = True  # load_state_dict accepts any size

    def __init__(self, text: str | None = None, column: int | None = None) -> None:
        super().__init__()
        if column is not None and (column < 0 or text is None):
            raise InputError(f"lexicon: column must be >= 0 and needs a text, got {column}")
        self.text, self.column = text, column
        self.register_buffer("words", torch.zeros(0, dtype=torch.int64))
        self.register_load_state_dict_pre_hook(_resize)
        self._set: frozenset[int] | None = None  # `words`, for lookups of single words

    @classmethod
    def from_words(cls, words: Iterable[str]) -> "LowerCaseLexicon":
        """Return the lexicon of the words of a text."""
        lexicon = cls()
        lexicon.read(words)
        return lexicon

    def read(self, words: Iterable[str]) -> None:
        """Read the text of the constructor, or these words if it has none.

        Raises:
            InputError: a file that cannot be read.
        """
        if self.text is None:
            entries = _lower_cased(words)
        else:
            path = expand_path(self.text)
            entries = _words_of_file(path, path.stat().st_mtime_ns if path.exists() else 0, self.column)
        self._set, self.words = None, torch.from_numpy(entries.copy()).to(self.words.device)

    def forward(self, folded: Tensor) -> Tensor:
        """Return a mask of words in the lexicon, (...) bool, from hashes (...) int64 such as `Words.folded`."""
        places = torch.searchsorted(self.words, folded.contiguous())
        return pad(self.words, (0, 1), value=-1)[places] == folded  # -1 is not a hash

    def __contains__(self, word: str) -> bool:
        if self._set is None:
            self._set = frozenset(self.words.tolist())
        return int(word_hashes([word.casefold()])[0]) in self._set


def _resize(lexicon: LowerCaseLexicon, state: dict[str, Any], prefix: str, *_: Any) -> None:
    """Resize a lexicon to the saved one."""
    if (saved := state.get(f"{prefix}words")) is not None:
        lexicon._set, lexicon.words = None, lexicon.words.new_empty(len(saved))


def _lower_cased(words: Iterable[str]) -> np.ndarray:
    """Return hashes (H,) int64, ascending."""
    balance: Counter[str] = Counter()
    for word, n in Counter(words).items():
        balance[word.casefold()] += n * (word[:1].islower() - word[:1].isupper())
    return np.sort(word_hashes(word for word, lead in balance.items() if lead > 0))


@lru_cache(maxsize=1)  # several features of a model use the same file
def _words_of_file(path: Path, modified: int, column: int | None) -> np.ndarray:
    words: list[str] = []
    for number, fields in enumerate(map(str.split, read_lines(path)), 1):
        if column is not None and fields and column >= len(fields):
            raise InputError(f"{path}:{number}: has {counted(len(fields), 'column')}; set the lexicon's column lower")
        words += fields if column is None else fields[column : column + 1]
    if not words:
        raise InputError(f"{path}: there are no words in this file; change or remove it")
    return _lower_cased(words)
