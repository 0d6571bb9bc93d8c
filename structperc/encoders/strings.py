"""Strings as numbers: the vocabulary of an embedding table."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from structperc.data.json_data import check_value
from structperc.errors import InputError

UNKNOWN = 0  # of strings that are not in the vocabulary


class KnownStrings:
    """The numbers 1, 2, ... of known strings; every other string is UNKNOWN."""

    def __init__(self, known: Sequence[str]) -> None:
        self.known = list(known)
        self._numbers = {string: number for number, string in enumerate(self.known, UNKNOWN + 1)}

    @classmethod
    def frequent(cls, strings: Iterable[str], cutoff: int) -> "KnownStrings":
        """Return the strings that occur at least `cutoff` times, most frequent first.

        Equally frequent ones keep their order.
        """
        return cls([string for string, count in Counter(strings).most_common() if count >= cutoff])

    @classmethod
    def from_json(cls, known: Any, place: str) -> "KnownStrings":
        """Return the strings that were known before.

        Raises InputError with the place for anything but different strings.
        """
        check_value(known, list[str], place)
        if len(set(known)) < len(known):
            raise InputError(f"{place}: a string stands twice")
        return cls(known)

    def __len__(self) -> int:
        """Size of a table that has a row for each number."""
        return len(self.known) + 1

    def __contains__(self, string: str) -> bool:
        return string in self._numbers

    def numbers(self, strings: Iterable[str]) -> np.ndarray:
        """Return the numbers (n,) int32 of n strings."""
        return np.array([self._numbers.get(string, UNKNOWN) for string in strings], dtype=np.int32)
