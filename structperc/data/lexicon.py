"""Words that are usually written in lower case."""

from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from structperc.data.text_files import expand, read_lines
from structperc.data.words import word_hashes
from structperc.errors import InputError
from structperc.spelling import counted


class LowerCaseLexicon(nn.Module):
    """Words that a large text has more often lower-cased than capitalised (Collins 2002, section 3.2).

    The first letter of a word decides which it is. Words are compared without their case. What was read is saved with
    the module, so that a saved model does not need the text.

    Args:
        text: a file of words separated by white space (UTF-8), with environment variables as in ${TEXT}; without one,
            the words that `read` is given are the text.
        column: only this column of the file's lines is read, counted from 0, as for a file in CoNLL format; by
            default all of them, as for running text.

    Raises:
        InputError: a negative column, or one without a text.
    """

    words: Tensor  # (H,) int64, hashes of the case-folded words, ascending

    def __init__(self, text: str | None = None, column: int | None = None) -> None:
        super().__init__()
        if column is not None and (column < 0 or text is None):
            raise InputError(f"lexicon: column {column} is that of a text, counted from 0; set it >= 0 and give a text")
        self.text, self.column = text, column
        self.register_buffer("words", torch.zeros(0, dtype=torch.int64))
        self._set: frozenset[int] | None = None  # the same, for single words

    @classmethod
    def from_words(cls, words: Iterable[str]) -> "LowerCaseLexicon":
        """Return the lexicon of a text that is given as the list of its words."""
        lexicon = cls()
        lexicon.read(words)
        return lexicon

    def read(self, words: Iterable[str]) -> None:
        """Read the text, or the words where there is no text. Raises InputError for a file that cannot be read."""
        if self.text is None:
            found = _lower_cased(words)
        else:
            path = expand(self.text)
            found = _of_file(path, path.stat().st_mtime_ns if path.exists() else 0, self.column)
        self._set, self.words = None, torch.from_numpy(found.copy()).to(self.words.device)

    def forward(self, folded: Tensor) -> Tensor:
        """Return whether words are in the lexicon, (...) bool, from hashes (...) int64 such as `Words.folded`."""
        places = torch.searchsorted(self.words, folded.contiguous())
        return pad(self.words, (0, 1), value=-1)[places] == folded  # -1 is no hash

    def __contains__(self, word: str) -> bool:
        if self._set is None:
            self._set = frozenset(self.words.tolist())
        return int(word_hashes([word.casefold()])[0]) in self._set

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *options: Any) -> None:
        """Takes a lexicon of any size."""
        if (saved := state_dict.get(f"{prefix}words")) is not None:
            self._set, self.words = None, self.words.new_empty(len(saved))
        super()._load_from_state_dict(state_dict, prefix, *options)


def _lower_cased(words: Iterable[str]) -> np.ndarray:
    """-> (H,) int64, ascending."""
    balance: Counter[str] = Counter()
    for word, n in Counter(words).items():
        balance[word.casefold()] += n * (word[:1].islower() - word[:1].isupper())
    return np.sort(word_hashes(word for word, lead in balance.items() if lead > 0))


@lru_cache(maxsize=1)  # the features of a model name the same file
def _of_file(path: Path, modified: int, column: int | None) -> np.ndarray:
    lines = [line.split() for line in read_lines(path)]
    if not any(lines):
        raise InputError(f"{path}: there are no words in it; give a text or leave it out")
    if column is None:
        return _lower_cased(word for fields in lines for word in fields)
    return _lower_cased(_field(path, number, fields, column) for number, fields in enumerate(lines, 1) if fields)


def _field(path: Path, number: int, fields: list[str], column: int) -> str:
    if column >= len(fields):
        raise InputError(f"{path}:{number}: has {counted(len(fields), 'column')}; set the lexicon's column below that")
    return fields[column]
