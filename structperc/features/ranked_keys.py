"""Keys that are found in tables of their templates."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from structperc.features.finder import Finder
from structperc.features.gather import entry
from structperc.features.key_table import KeyTable, find, key_table
from structperc.features.keys import NO_FEATURE, key_lookup
from structperc.kernels.jit import subkernel_no_alloc


class RankTable(NamedTuple):
    """Templates that join parts, those of template j from place ends[j] to ends[j + 1] of `gather.Joined`."""

    sizes: np.ndarray  # (P,) int64, number of codes
    keys: KeyTable


class RankedKeys(Finder):
    """Ids that are the ranks of keys among those of all templates.

    Args:
        sizes: the number of codes of each part of each template.
        keys: for each template the sorted keys (int64) that are features.
    """

    code = np.int64

    def __init__(self, sizes: Sequence[Sequence[int]], keys: Sequence[np.ndarray]) -> None:
        self._sizes, self._keys = sizes, keys
        self._first = np.cumsum([0, *map(len, keys)]).tolist()

    @property
    def look_up(self) -> Callable[..., int]:
        """The search for a mixed-radix number."""
        return _look_up

    def table(self, numbers: Sequence[int]) -> RankTable:
        """Return the tables of these templates."""
        sizes = np.array([size for j in numbers for size in self._sizes[j]], np.int64)
        return RankTable(sizes, key_table([self._keys[j] for j in numbers], [self._first[j] for j in numbers]))

    def ids(self, number: int, codes: np.ndarray) -> np.ndarray:
        """Return the ids (n,) int32 of values with these codes (n,) int64."""
        return key_lookup(self._keys[number], self._first[number], self._sizes[number])(codes)


@subkernel_no_alloc
def _look_up(t, s, n, strings, joined, ids):  # type: ignore[no-untyped-def]
    """Fill ids, from n on, with those of the templates at token t of sequence s -> where they end."""
    for j in range(len(joined.ends) - 1):
        key = np.int64(0)
        for p in range(joined.ends[j], joined.ends[j + 1]):
            key = key * joined.table.sizes[p] + joined.codes[entry(t, s, p, strings, joined.places)]
        found = find(key, j, joined.table.keys)
        if found != NO_FEATURE:
            ids[n] = found
            n += 1
    return n
