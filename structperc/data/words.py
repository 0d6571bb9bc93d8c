"""Words as numbers, for comparing words, case-folded forms and shapes."""

import hashlib
import re
from collections.abc import Iterable, Sequence

import numpy as np

LARGEST = 2**63 - 1
LOWER, UPPER, DIGIT, QUOTE = 1, 2, 4, 8  # bits of `word_kind`
QUOTES = frozenset(('"', "``", "''", "“", "”"))


def word_hashes(words: Iterable[str]) -> np.ndarray:
    """Return reproducible hashes of words, (n,) int64 in 1 .. 2**63 - 1.

    63 bits of BLAKE2b: the probability of a collision among a million distinct words is about 5e-8.
    """
    listed = list(words)
    numbers = {}
    for word in set(listed):
        digest = hashlib.blake2b(word.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        numbers[word] = 1 + int.from_bytes(digest, "little") % LARGEST
    return np.fromiter((numbers[word] for word in listed), np.int64, len(listed))


def word_numbers(words: Sequence[str]) -> np.ndarray:
    """Return the numbers (4, n) int64 of n words, in the order of `Words`."""
    return np.stack(
        [
            word_hashes(words),
            word_hashes(map(str.casefold, words)),
            word_hashes(map(word_shape, words)),
            np.fromiter(map(word_kind, words), np.int64, len(words)),
        ]
    )


def word_shape(word: str) -> str:
    """Return the character types with repetitions collapsed."""
    return _RUN.sub(r"\1", character_types(word))


def character_types(word: str) -> str:
    """Return the word with A-Z replaced by A, a-z by a and 0-9 by 0; other characters are kept."""
    return _DIGIT.sub("0", _LOWER.sub("a", _UPPER.sub("A", word)))


def word_kind(word: str) -> int:
    """Return LOWER, UPPER or DIGIT by the first character, QUOTE for a double quotation mark, else 0."""
    first = word[:1]
    return LOWER * first.islower() | UPPER * first.isupper() | DIGIT * first.isdigit() | QUOTE * (word in QUOTES)


_UPPER, _LOWER, _DIGIT = re.compile("[A-Z]"), re.compile("[a-z]"), re.compile("[0-9]")
_RUN = re.compile(r"(.)\1+", re.DOTALL)
