"""The values of one attribute as small integers."""

from collections.abc import Sequence

import numpy as np

from structperc.errors import InputError
from structperc.features.windows import boundary_names

ABSENT = 0  # the attribute has no value at a token
UNSEEN = 1  # the value did not occur often enough in training to be part of any feature


class ValueCodes:
    """Codes of an attribute's values: ABSENT, UNSEEN, the places beyond the boundaries, then the values."""

    def __init__(self, values: Sequence[str], reach: int) -> None:
        self.values = list(values)
        self._names = ["", "?", *boundary_names(reach), *values]
        self._beyond = np.arange(2, 2 + 2 * reach)
        self._codes = {value: code for code, value in enumerate(values, 2 + 2 * reach)} | {"": ABSENT}

    def __len__(self) -> int:
        return len(self._names)

    @classmethod
    def frequent(cls, strings: Sequence[str], counts: np.ndarray, cutoff: int, reach: int) -> "ValueCodes":
        """Keep the values of total count >= cutoff: no feature can be more frequent than its parts.

        The most frequent come first. So do their features within each template, whose weights then are neighbours in
        memory: few lines of the cache have most of what is read.
        """
        index: dict[str, int] = {}
        numbers = [index.setdefault(string, len(index)) for string in strings]
        totals = np.bincount(np.array(numbers, np.int64), counts, minlength=len(index))
        values, order = list(index), (-totals).argsort(kind="stable")
        return cls([values[i] for i in order.tolist() if values[i] and totals[i] >= cutoff], reach)

    @classmethod
    def from_json(cls, values: list[str], reach: int, place: str) -> "ValueCodes":
        """Take `values` as they were saved; InputError, naming the place, for one that is empty or there twice."""
        if "" in values or len(set(values)) < len(values):
            raise InputError(f"{place}: a value is empty or stands twice")
        return cls(values, reach)

    def encode(self, strings: Sequence[str]) -> np.ndarray:
        """Return the codes of the places beyond the boundaries, then of `strings`: an array to index with
        `DistinctStrings.numbers`.
        """
        codes = [self._codes.get(string, UNSEEN) for string in strings]
        return np.concatenate([self._beyond, np.array(codes, np.int64)])

    def name(self, code: int) -> str:
        """Return the value with this code as features print it."""
        return self._names[code]
