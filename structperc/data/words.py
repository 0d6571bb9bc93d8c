"""Words as numbers, by which features of whole labellings see which words are equal or look alike."""

import hashlib
import re
from collections.abc import Iterable, Sequence

import numpy as np

LARGEST = 2**63 - 1
LOWER, UPPER, DIGIT, QUOTE = 1, 2, 4, 8  # bits of `word_kind`
QUOTES = frozenset(('"', "``", "''", "“", "”"))


def word_hashes(words: Iterable[str]) -> np.ndarray:
    """Return the hashes of words, (n,) int64 in 1 .. 2**63 - 1; equal words have equal numbers everywhere.

    They are 63 bits of BLAKE2b; each distinct word is hashed once. Among a million distinct words two share a number
    with a probability of about 5e-8.
    """
    listed = list(words)
    numbers = {word: _number(word) for word in set(listed)}
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
    """Return the character types with repetitions left out: Animal becomes Aa, G.M. becomes A.A., 1996 becomes 0."""
    return _RUN.sub(r"\1", character_types(word))


def character_types(word: str) -> str:
    """Return the word with A-Z replaced by A, a-z by a and 0-9 by 0; every other character stays itself."""
    return _DIGIT.sub("0", _LOWER.sub("a", _UPPER.sub("A", word)))


def word_kind(word: str) -> int:
    """Return LOWER, UPPER or DIGIT by the first character, QUOTE for a double quotation mark, else 0."""
    first = word[:1]
    return LOWER * first.islower() | UPPER * first.isupper() | DIGIT * first.isdigit() | QUOTE * (word in QUOTES)


_UPPER, _LOWER, _DIGIT = re.compile("[A-Z]"), re.compile("[a-z]"), re.compile("[0-9]")
_RUN = re.compile(r"(.)\1+", re.DOTALL)


def _number(word: str) -> int:
    digest = hashlib.blake2b(word.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return 1 + int.from_bytes(digest, "little") % LARGEST
