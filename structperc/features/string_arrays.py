"""Arrays of a corpus: attribute values as integers, seen from each token, and lists of feature ids.

The strings of a column are numbered from 2 * max_offset on, where `max_offset` is the largest offset of any template.
The numbers below stand for the positions outside a sequence, which CRF++ calls _B-1, _B-2, ... and _B+1, _B+2, ...
"""

from collections.abc import Mapping
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from structperc.features.templates import TemplatePart

NO_FEATURE = -1  # in place of an id
StateArrays = Mapping[str, np.ndarray]  # arrays of a saved state by name
CHUNK = 2**19  # tokens that are processed in one step
MIN_CHUNKS = 4  # chunks per worker: fewer take less time than starting a worker


def boundary_names(max_offset: int) -> list[str]:
    """Return the names of the positions outside a sequence, in the order of their numbers."""
    return [f"_B{sign}{distance}" for sign in "-+" for distance in range(1, max_offset + 1)]


class Strings(NamedTuple):
    """Attribute values at each token of a corpus, as compiled lookups read them."""

    numbers: np.ndarray  # (columns, N) int32
    starts: np.ndarray  # (S + 1,) int64, see `View`
    max_offset: int


class View:
    """The attribute values of a corpus as integers.

    Args:
        columns: the column from which each attribute is read.
        numbers: for each column the number of the string at each token, (N,) int32.
        codes: for each attribute the code of each number (positions outside a sequence, then distinct strings).
        starts: sequence s is the tokens starts[s]:starts[s + 1], (S + 1,) int64 from 0 to N.
        max_offset: the largest offset of any template.
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
        return View, (self.columns, self._numbers, self.codes, self.starts, self.max_offset)  # without chunks

    def chunks(self, size: int = CHUNK) -> "list[View]":
        """Return views of whole sequences, about `size` tokens each, which share memory with this one; cached."""
        if size in self._chunks:
            return self._chunks[size]
        cuts = np.unique(np.searchsorted(self.starts, np.arange(0, self.tokens, size)))
        views = self._chunks[size] = []
        for first, stop in pairwise([*cuts[self.starts[cuts] < self.tokens].tolist(), len(self.starts) - 1]):
            a, b = int(self.starts[first]), int(self.starts[stop])
            numbers = {column: of_column[a:b] for column, of_column in self._numbers.items()}
            starts = self.starts[first : stop + 1] - a
            views.append(View(self.columns, numbers, self.codes, starts, self.max_offset))
        return views

    @cached_property
    def _before(self) -> np.ndarray:
        """Number of tokens before each token in its sequence, (N,) int32."""
        first = np.repeat(self.starts[:-1].astype(np.int32), np.diff(self.starts))
        return np.arange(self.tokens, dtype=np.int32) - first

    @cached_property
    def _after(self) -> np.ndarray:
        """Number of tokens after each token in its sequence, (N,) int32."""
        last = np.repeat(self.starts[1:].astype(np.int32) - 1, np.diff(self.starts))
        return last - np.arange(self.tokens, dtype=np.int32)

    def numbers(self, part: TemplatePart) -> np.ndarray:
        """Return the number of the string `part.offset` tokens from each token, an index into `codes`; (N,) int32."""
        numbers, offset = self._numbers[self.columns[part.attribute]], part.offset
        if offset == 0:
            return numbers
        seen = np.empty_like(numbers)
        if offset < 0:
            seen[-offset:], available, first = numbers[:offset], self._before, 0
        else:
            seen[:-offset], available, first = numbers[offset:], self._after, self.max_offset
        outside = np.flatnonzero(available < abs(offset))
        seen[outside] = first + abs(offset) - 1 - available[outside]
        return seen

    @property
    def strings(self) -> Strings:
        """The numbers of all columns, in the order of `columns`."""
        none = np.empty((0, self.tokens), np.int32)
        return Strings(np.concatenate([none, *(x[None] for x in self._numbers.values())]), self.starts, self.max_offset)

    def row(self, attribute: str) -> int:
        """Return the row of `strings` from which an attribute is read."""
        return list(self._numbers).index(self.columns[attribute])


class IdLists(NamedTuple):
    """Feature ids at each of N tokens: those of token t are ids[ends[t]:ends[t + 1]]."""

    ids: np.ndarray  # (M,) int32
    ends: np.ndarray  # (N + 1,) int64
    weights: np.ndarray | None = None  # (M,) float32, feature values; None: all 1

    @classmethod
    def from_counts(cls, ids: np.ndarray, counts: np.ndarray, weights: np.ndarray | None = None) -> "IdLists":
        """Split ids (M,) into lists of the lengths counts (N,)."""
        return cls(ids, np.concatenate([np.zeros(1, np.int64), counts.cumsum()]), weights)

    def select(self, lists: np.ndarray) -> "IdLists":
        """Return the lists with these numbers (m,), in this order; numbers may repeat."""
        counts = np.diff(self.ends)[lists]
        places = np.arange(counts.sum()) + np.repeat(self.ends[lists] - counts.cumsum() + counts, counts)
        weights = None if self.weights is None else self.weights[places]
        return IdLists.from_counts(self.ids[places], counts, weights)

    def concatenate(self, other: "IdLists") -> "IdLists":
        """Return the N lists of `self`, each followed by the list of `other` at the same token."""
        if not len(self.ids):
            return other
        counts = np.diff(self.ends), np.diff(other.ends)
        row_ids = [np.repeat(np.arange(len(lengths)), lengths) for lengths in counts]
        order = np.concatenate(row_ids).argsort(kind="stable")
        weights = None
        if self.weights is not None or other.weights is not None:
            weights = np.concatenate([self._weights_or_ones(), other._weights_or_ones()])[order]
        return IdLists.from_counts(np.concatenate([self.ids, other.ids])[order], counts[0] + counts[1], weights)

    def _weights_or_ones(self) -> np.ndarray:
        return np.ones(len(self.ids), np.float32) if self.weights is None else self.weights


class FeatureIds(NamedTuple):
    """Node and edge features of a corpus; the same object if edges have the features of the nodes."""

    nodes: IdLists
    edges: IdLists | None  # None without edge templates
