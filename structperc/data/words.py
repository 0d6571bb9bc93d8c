"""Words as numbers that say only which words are equal: what features of whole documents compare."""

import hashlib
from collections.abc import Iterable

import numpy as np

LARGEST = 2**63 - 1


def word_hashes(words: Iterable[str]) -> np.ndarray:
    """-> (n,) int64 in 1 .. 2**63 - 1; equal words have equal numbers, in every corpus and process.

    63 bits of BLAKE2b, each distinct word hashed once. Among a million distinct words two share a number with
    a probability of about 5e-8.
    """
    listed = list(words)
    numbers = {word: _number(word) for word in set(listed)}
    return np.fromiter((numbers[word] for word in listed), np.int64, len(listed))


def _number(word: str) -> int:
    digest = hashlib.blake2b(word.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return 1 + int.from_bytes(digest, "little") % LARGEST
