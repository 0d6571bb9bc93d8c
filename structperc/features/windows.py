"""Corpus columns as integers, and what stands at an offset from each token.

The strings of a column are numbered from 2 * reach on. Numbers below are kept for the places beyond the boundaries of
a sequence, which CRF++ calls _B-1, _B-2, ... and _B+1, _B+2, ...; `max_offset` is the largest offset of any template.
"""

from collections.abc import Mapping
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from structperc.features.templates import TemplatePart

CHUNK = 2**19  # tokens looked at at a time where a corpus need not be looked at as a whole
MIN_CHUNKS = 4  # such pieces, of all templates, take longer than a worker takes to start


def boundary_names(max_offset: int) -> list[str]:
    """Return the names of the places beyond the boundaries, in the order of their numbers."""
    return [f"_B{sign}{distance}" for sign in "-+" for distance in range(1, max_offset + 1)]


class Strings(NamedTuple):
    """Attribute values at each token of a corpus, as compiled lookups read them."""

    numbers: np.ndarray  # (columns, N) int32
    starts: np.ndarray  # (S + 1,) int64, as of `View`
    max_offset: int


class View:
    """A corpus as its attributes show it.

    Args:
        columns: which column each attribute is read from.
        numbers: of each column what stands at each token, (N,) int32.
        codes: for each attribute the code of each number (places beyond the boundaries, then distinct strings).
        starts: sequence s is the tokens starts[s]:starts[s + 1], (S + 1,) int64 from 0 to N.
        max_offset: the largest offset that is asked for.
    """

    def __init__(
        self,
        columns: Mapping[str, str],
        numbers: Mapping[str, np.ndarray],
        codes: Mapping[str, np.ndarray],
        starts: np.ndarray,
        max_offset: int,
    ) -> None:
        self.tokens = int(starts[-1])
        self.columns, self.codes, self.starts = columns, codes, starts
        self._numbers, self.max_offset = numbers, max_offset
        self._chunks: dict[int, list[View]] = {}

    def __reduce__(self) -> tuple:
        return View, (
            self.columns,
            self._numbers,
            self.codes,
            self.starts,
            self.max_offset,
        )  # copies are without pieces

    def chunks(self, size: int = CHUNK) -> "list[View]":
        """Return views of some `size` tokens each, or of one sequence, which share the memory of this one.

        They are made once and kept.
        """
        if size not in self._chunks:
            self._chunks[size] = self._cut(size)
        return self._chunks[size]

    def _cut(self, size: int) -> "list[View]":
        cuts = np.unique(np.searchsorted(self.starts, np.arange(0, self.tokens, size)))
        found = []
        for first, stop in pairwise([*cuts[self.starts[cuts] < self.tokens].tolist(), len(self.starts) - 1]):
            a, b = int(self.starts[first]), int(self.starts[stop])
            numbers = {column: own[a:b] for column, own in self._numbers.items()}
            starts = self.starts[first : stop + 1] - a
            found.append(View(self.columns, numbers, self.codes, starts, self.max_offset))
        return found

    @cached_property
    def _before(self) -> np.ndarray:
        """How many tokens of its sequence stand before each token, (N,) int32."""
        first = np.repeat(self.starts[:-1].astype(np.int32), np.diff(self.starts))
        return np.arange(self.tokens, dtype=np.int32) - first

    @cached_property
    def _after(self) -> np.ndarray:
        """How many tokens of its sequence stand after each token, (N,) int32."""
        last = np.repeat(self.starts[1:].astype(np.int32) - 1, np.diff(self.starts))
        return last - np.arange(self.tokens, dtype=np.int32)

    def numbers(self, part: TemplatePart) -> np.ndarray:
        """Return what stands `part.offset` tokens from each token, an index into `codes`; (N,) int32."""
        numbers, offset = self._numbers[self.columns[part.attribute]], part.offset
        if offset == 0:
            return numbers
        seen = np.empty_like(numbers)
        if offset < 0:
            seen[-offset:], room, first = numbers[:offset], self._before, 0
        else:
            seen[:-offset], room, first = numbers[offset:], self._after, self.max_offset
        beyond = np.flatnonzero(room < abs(offset))
        seen[beyond] = first + abs(offset) - 1 - room[beyond]
        return seen

    @property
    def strings(self) -> Strings:
        """The numbers of all columns, in the order of `columns`."""
        none = np.empty((0, self.tokens), np.int32)
        return Strings(np.concatenate([none, *(x[None] for x in self._numbers.values())]), self.starts, self.max_offset)

    def row(self, attribute: str) -> int:
        """Return which row of `strings` an attribute is read from."""
        return list(self._numbers).index(self.columns[attribute])
