"""Corpus columns as integers, and what stands at an offset from each token.

A column is turned once into (distinct strings, number of the string at each token). Numbers below 2 * reach
are kept for the places beyond the boundaries of a sequence, which CRF++ calls _B-1, _B-2, ... and _B+1, _B+2,
...; `reach` is the largest offset of any template.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import torch

from structperc.features.templates import TemplatePart
from structperc.ragged import spread


class DistinctStrings(NamedTuple):
    """The distinct strings of one column, and the number of the string at each token."""

    distinct: list[str]
    numbers: np.ndarray  # (N,) int32, 2 * reach + index into `distinct`


def number_strings(strings: Sequence[str], reach: int) -> DistinctStrings:
    """Number the strings of a column in the order in which they first occur."""
    index = {string: i for i, string in enumerate(dict.fromkeys(strings), 2 * reach)}
    return DistinctStrings(list(index), np.fromiter(map(index.__getitem__, strings), np.int32, len(strings)))


def boundary_names(reach: int) -> list[str]:
    """Return the names of the places beyond the boundaries, in the order of their numbers."""
    return [f"_B{sign}{distance}" for sign in "-+" for distance in range(1, reach + 1)]


class View:
    """A corpus as its attributes show it.

    Args:
        columns: which column each attribute is read from.
        numbers: of each column what stands at each token, (N,) int32.
        codes: for each attribute the code of each number (places beyond the boundaries, then distinct strings).
        starts: sequence s is the tokens starts[s]:starts[s + 1], (S + 1,) int64 from 0 to N.
        reach: the largest offset that is asked for.
    """

    def __init__(
        self,
        columns: Mapping[str, str],
        numbers: Mapping[str, np.ndarray],
        codes: Mapping[str, np.ndarray],
        starts: np.ndarray,
        reach: int,
    ) -> None:
        lengths = np.diff(starts)
        self.tokens = int(starts[-1])
        self.columns, self.codes, self.starts = columns, codes, starts
        self._numbers, self._reach = numbers, reach
        sequence, self._before = (x.numpy() for x in spread(torch.from_numpy(lengths)))
        self._after = lengths[sequence] - 1 - self._before

    def numbers(self, part: TemplatePart) -> np.ndarray:
        """Return what stands `part.offset` tokens from each token, an index into `codes`; (N,) int32."""
        numbers, offset = self._numbers[self.columns[part.attribute]], part.offset
        if offset == 0:
            return numbers
        seen = np.empty_like(numbers)
        if offset < 0:
            seen[-offset:], room, first = numbers[:offset], self._before, 0
        else:
            seen[:-offset], room, first = numbers[offset:], self._after, self._reach
        beyond = np.flatnonzero(room < abs(offset))
        seen[beyond] = first + abs(offset) - 1 - room[beyond]
        return seen

    def pieces(self, tokens: int) -> Iterator["View"]:
        """Cut between sequences into views of at least so many tokens, the last one excepted."""
        first = 0
        while first < len(self.starts) - 1:
            last = np.searchsorted(self.starts, self.starts[first] + tokens)
            last = int(np.clip(last, first + 1, len(self.starts) - 1))
            yield self._piece(self.starts[first : last + 1])
            first = last

    def _piece(self, starts: np.ndarray) -> "View":
        numbers = {column: numbers[starts[0] : starts[-1]] for column, numbers in self._numbers.items()}
        return View(self.columns, numbers, self.codes, starts - starts[0], self._reach)
