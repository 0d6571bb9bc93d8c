"""Buckets: the places of a table of fixed size that the keys of features fall into, and how many keys share them."""

from functools import cached_property
from math import log
from typing import Any

import numpy as np

from structperc.errors import InputError
from structperc.features.hashing import NO_KEY
from structperc.features.keys import NO_FEATURE

BITS = range(4, 29)  # of the number of buckets; a row number for each of 2**28 takes 1 GiB
MET = np.iinfo(np.uint8).max  # how often a bucket is counted at most
SEEN = 2**24  # bytes in which distinct keys are counted


class Buckets:
    """Those of 2**bits buckets that have features, and their ids: the ranks of their numbers.

    Args:
        bits: the lowest bits of a key are the number of its bucket.
        numbers: of the buckets with features, ascending, (n,) int32.
    """

    def __init__(self, bits: int, numbers: np.ndarray) -> None:
        self.bits, self.numbers = bits, numbers

    @classmethod
    def restored(cls, bits: int, numbers: np.ndarray, place: str) -> "Buckets":
        """Return the buckets with these numbers. Raises InputError, naming the place, for numbers that are none."""
        ascending = numbers.dtype == np.int32 and numbers.ndim == 1 and bool((np.diff(numbers) > 0).all())
        if not ascending or (len(numbers) and not (numbers[0] >= 0 and numbers[-1] < 2**bits)):
            raise InputError(f"{place}: buckets are ascending numbers below 2**{bits}, as int32")
        return cls(bits, numbers)

    def __len__(self) -> int:
        return len(self.numbers)

    def __reduce__(self) -> tuple[Any, ...]:
        return Buckets, (self.bits, self.numbers)  # copies and pickles are without the large table of ids

    @cached_property
    def ids(self) -> np.ndarray:
        """The id of each bucket, (2**bits,) int32, NO_FEATURE for those without features."""
        ids = np.full(2**self.bits, NO_FEATURE, np.int32)
        ids[self.numbers] = np.arange(len(self.numbers), dtype=np.int32)
        return ids

    def find(self, keys: np.ndarray) -> np.ndarray:
        """Return the ids (int32) of keys (uint64), NO_FEATURE for those without a feature, and for NO_KEY."""
        found = self.ids[bucket_numbers(keys, self.bits)]
        return np.where(keys == NO_KEY, np.int32(NO_FEATURE), found)

    def subset(self, keep: np.ndarray) -> "Buckets":
        """Return the buckets for which keep (n,) bool is true, renumbered in the same order."""
        return Buckets(self.bits, self.numbers[keep])


class Tally:
    """How often keys fell into each bucket, and how many different ones there were.

    It takes 2**bits bytes, and 16 MiB for the different keys: each sets one of 2**27 marks, of which z stay unset, and
    there were about -2**27 ln(z / 2**27) of them (linear counting, Whang et al. 1990). For up to 10 million keys the
    standard error of that is less than a thousand.
    """

    def __init__(self, bits: int) -> None:
        self._bits, self._counts = bits, np.zeros(2**bits, np.uint8)
        self._seen, self._marked = np.zeros(SEEN, np.uint8), 0

    def add(self, keys: np.ndarray) -> None:
        """Count keys (n,) uint64, except for NO_KEY."""
        from structperc.features.tallying import tally  # compiled: imported when it is first needed

        self._marked += tally(keys, self._counts, self._seen)

    def merge(self, other: "Tally") -> None:
        """Count what another one has counted, of as many buckets, too: as if all keys had been added here."""
        self._counts += np.minimum(other._counts, MET - self._counts)
        self._marked += int(np.unpackbits(other._seen & ~self._seen).sum())
        self._seen |= other._seen

    def met(self, cutoff: int) -> Buckets:
        """Return the buckets that keys fell into at least `cutoff` times, up to MET."""
        return Buckets(self._bits, np.flatnonzero(self._counts >= cutoff).astype(np.int32))

    @property
    def occupied(self) -> int:
        """How many buckets any key fell into."""
        return int(np.count_nonzero(self._counts))

    @property
    def distinct(self) -> int:
        """About how many different keys there were."""
        marks = 8 * SEEN
        return max(self.occupied, round(-marks * log(max(marks - self._marked, 1) / marks)))


def bucket_numbers(keys: np.ndarray, bits: int) -> np.ndarray:
    """Return the numbers of the buckets of keys (n,) uint64, (n,) int64."""
    return (keys & np.uint64(2**bits - 1)).astype(np.int64)
