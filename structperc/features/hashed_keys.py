"""Keys that are hashes: found by their buckets."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from structperc.features import hashing
from structperc.features.buckets import Buckets
from structperc.features.finder import Finder
from structperc.features.gather import entry
from structperc.features.hashing import NO_KEY, template_seed
from structperc.features.keys import NO_FEATURE
from structperc.features.templates import Template
from structperc.kernels.jit import subkernel_no_alloc

mixed = subkernel_no_alloc(hashing.mixed)


class BucketTable(NamedTuple):
    """Templates by the numbers that their keys begin with."""

    seeds: np.ndarray  # (J,) uint64
    ids: np.ndarray  # (2**bits,) int32


class HashedKeys(Finder):
    """Ids of the buckets of keys, whichever template they are of."""

    code = np.uint64

    def __init__(self, templates: Sequence[Template], buckets: Buckets) -> None:
        self._seeds = np.array([template_seed(template) for template in templates], np.uint64)
        self._buckets = buckets

    @property
    def look_up(self) -> Callable[..., int]:
        """The hash of a conjunction, and the look into its bucket."""
        return _look_up

    def table(self, numbers: Sequence[int]) -> BucketTable:
        """Return the seeds of these templates, and the ids of all buckets."""
        return BucketTable(self._seeds[list(numbers)], self._buckets.ids)

    def ids(self, number: int, codes: np.ndarray) -> np.ndarray:
        """Return the ids (n,) int32 of values with these codes (n,) uint64."""
        keys = hashing.mixed(self._seeds[number] ^ codes)
        return self._buckets.find(np.where(codes == NO_KEY, np.uint64(NO_KEY), keys))


@subkernel_no_alloc
def _look_up(t, s, n, strings, joined, ids):  # type: ignore[no-untyped-def]
    """Fill ids, from n on, with those of the templates at token t of sequence s, as `hashing.hashed_keys` says.

    -> where they end.
    """
    mask = np.uint64(len(joined.table.ids) - 1)
    for j in range(len(joined.ends) - 1):
        key, first, last = joined.table.seeds[j], joined.ends[j], joined.ends[j + 1]
        absent = first < last
        for p in range(first, last):
            code = joined.codes[entry(t, s, p, strings, joined.places)]
            absent = absent and code == NO_KEY
            key = mixed(key ^ code)
        if absent or key == NO_KEY:
            continue
        found = joined.table.ids[np.int64(key & mask)]
        if found != NO_FEATURE:
            ids[n] = found
            n += 1
    return n
