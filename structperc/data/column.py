"""A column of a corpus, in which each distinct string is kept once."""

from collections.abc import Iterator, Sequence
from typing import Any, overload

import numpy as np

from structperc.data.distinct import DistinctStrings, number_strings

PIECE = 2**16  # strings that are looked up at a time


class Column(Sequence[str]):
    """N strings in 4 bytes each: to be read like a list of them, and never changed.

    Args:
        strings: the distinct strings in the order in which they first occur, and their numbers (N,) int32.
    """

    __hash__ = None  # type: ignore[assignment]  # it equals lists

    def __init__(self, strings: DistinctStrings) -> None:
        self.strings = strings

    @classmethod
    def of(cls, values: Sequence[str]) -> "Column":
        """Return the column of N strings."""
        return values if isinstance(values, cls) else cls(number_strings(values))

    @classmethod
    def numbered(cls, distinct: Sequence[str], numbers: np.ndarray) -> "Column":
        """Return the column distinct[numbers[0]], distinct[numbers[1]], ...; of different strings any may be unused."""
        present, own = first_come(numbers, len(distinct))
        return cls(DistinctStrings([distinct[i] for i in present.tolist()], own))

    def __len__(self) -> int:
        return len(self.strings.numbers)

    @overload
    def __getitem__(self, place: int) -> str: ...

    @overload
    def __getitem__(self, place: slice) -> list[str]: ...

    def __getitem__(self, place: int | slice) -> str | list[str]:
        """Return a string, or a list of those of a slice."""
        distinct, numbers = self.strings
        if isinstance(place, slice):
            return [distinct[i] for i in numbers[place].tolist()]
        return distinct[numbers[place]]

    def __iter__(self) -> Iterator[str]:
        distinct, numbers = self.strings
        for first in range(0, len(numbers), PIECE):
            yield from map(distinct.__getitem__, numbers[first : first + PIECE].tolist())

    def __contains__(self, value: object) -> bool:
        return value in self.strings.distinct

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence) or isinstance(other, str):
            return NotImplemented
        return len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))

    def __repr__(self) -> str:
        return repr(list(self))

    def index(self, value: Any, start: int = 0, stop: int | None = None) -> int:
        """Return where a string first stands. Raises ValueError where it does not."""
        number = self.strings.distinct.index(value)
        found = np.flatnonzero(self.strings.numbers[start:stop] == number)
        if not len(found):
            raise ValueError(f"{value!r} is not in this stretch of the column")
        return start + int(found[0])

    def take(self, places: slice | np.ndarray) -> "Column":
        """Return the strings at some places, a slice or (n,) numbers, as a column."""
        return Column.numbered(self.strings.distinct, self.strings.numbers[places])


def first_come(numbers: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Renumber numbers (N,) < size in the order in which they first occur.

    -> those that occur, in this order (n,) int64, and for each of the N which of these it is (N,) int32.
    """
    first = np.full(size, len(numbers), np.int64)
    first[numbers[::-1]] = np.arange(len(numbers))[::-1]  # of several places of a number the one written last stays
    present = np.flatnonzero(first < len(numbers))
    present = present[first[present].argsort()]
    rank = np.empty(size, np.int32)
    rank[present] = np.arange(len(present), dtype=np.int32)
    return present, rank[numbers]
