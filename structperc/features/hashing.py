"""Strings and conjunctions as 64-bit hashes, the same on all machines, and the buckets they fall into."""

from collections.abc import Sequence
from functools import cached_property
from hashlib import blake2b
from itertools import chain
from math import log
from typing import Any, Literal

import numpy as np

from structperc.errors import InputError
from structperc.features.arrays import NO_FEATURE, View, boundary_names
from structperc.features.templates import Template, template_name

Kind = Literal["value", "beyond", "template", "listed"]  # strings of different kinds have different numbers
NO_KEY = 0  # an absent value, and the conjunction of absent values
SHIFTS = np.uint64(30), np.uint64(27), np.uint64(31)
FACTORS = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)  # those of splitmix64 (Steele et al. 2014)


def string_hash(text: str, kind: Kind) -> int:
    """Return the first 64 bits of a string's BLAKE2b digest, the lowest byte first."""
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8, person=kind.encode()).digest()
    return int.from_bytes(digest, "little")


def mixed(x: Any) -> Any:  # a number where it is compiled, else an array
    """Return numbers (uint64) each bit of which depends on each bit of x; different ones for different x."""
    x = (x ^ (x >> SHIFTS[0])) * FACTORS[0]
    x = (x ^ (x >> SHIFTS[1])) * FACTORS[1]
    return x ^ (x >> SHIFTS[2])


def template_seed(template: Template) -> np.uint64:
    """Return the number that the keys of a template begin with; it is the key of the bias."""
    return np.uint64(string_hash(template_name(template), "template"))


def hashed_keys(view: View, template: Template) -> np.ndarray:
    """Return the key of a template at each token, (N,) uint64, NO_KEY where all its parts are absent."""
    keys = np.full(view.tokens, template_seed(template))
    absent = np.full(view.tokens, bool(template))
    for part in template:
        codes = view.codes[part.attribute][view.numbers(part)]
        keys = mixed(keys ^ codes)
        absent &= codes == NO_KEY
    keys[absent] = NO_KEY
    return keys


class HashedValues:
    """Codes of values of any attribute: NO_KEY for an absent one, else 64 bits of its hash."""

    def __init__(self, max_offset: int) -> None:
        self._beyond = [string_hash(name, "beyond") for name in boundary_names(max_offset)]

    def encode(self, strings: Sequence[str]) -> np.ndarray:
        """Return the codes of the places beyond the boundaries, then of `strings`, (n,) uint64."""
        codes = {string: string_hash(string, "value") if string else NO_KEY for string in dict.fromkeys(strings)}
        shown = chain(self._beyond, map(codes.__getitem__, strings))
        return np.fromiter(shown, np.uint64, len(self._beyond) + len(strings))


BITS = range(4, 29)  # of the number of buckets; a row number for each of 2**28 takes 1 GiB
MAX_COUNT = np.iinfo(np.uint8).max  # how often a bucket is counted at most
MARK_BYTES = 2**24  # bytes in which distinct keys are counted


class Buckets:
    """Those of 2**bits buckets that have features, and their ids: the ranks of their numbers.

    Args:
        bits: the lowest bits of a key are the number of its bucket.
        numbers: of the buckets with features, ascending, (n,) int32.
    """

    def __init__(self, bits: int, numbers: np.ndarray) -> None:
        self.bits, self.numbers = bits, numbers

    @classmethod
    def restore(cls, bits: int, numbers: np.ndarray, place: str) -> "Buckets":
        """Return the buckets with these numbers. Raises InputError, naming the place, for invalid numbers."""
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


class BucketCounter:
    """How often keys fell into each bucket, and how many different ones there were.

    It takes 2**bits bytes, and 16 MiB for the different keys: each sets one of 2**27 marks, of which z stay unset, and
    there were about -2**27 ln(z / 2**27) of them (linear counting, Whang et al. 1990). For up to 10 million keys the
    standard error of that is less than a thousand.
    """

    def __init__(self, bits: int) -> None:
        self._bits, self._counts = bits, np.zeros(2**bits, np.uint8)
        self._seen, self._marked = np.zeros(MARK_BYTES, np.uint8), 0

    def add(self, keys: np.ndarray) -> None:
        """Count keys (n,) uint64, except for NO_KEY."""
        from structperc.features.kernels import count_keys  # compiled: imported when it is first needed

        self._marked += count_keys(keys, self._counts, self._seen)

    def merge(self, other: "BucketCounter") -> None:
        """Count what another one has counted, of as many buckets, too: as if all keys had been added here."""
        self._counts += np.minimum(other._counts, MAX_COUNT - self._counts)
        self._marked += int(np.unpackbits(other._seen & ~self._seen).sum())
        self._seen |= other._seen

    def frequent(self, cutoff: int) -> Buckets:
        """Return the buckets that keys fell into at least `cutoff` times, up to MAX_COUNT."""
        return Buckets(self._bits, np.flatnonzero(self._counts >= cutoff).astype(np.int32))

    @property
    def occupied(self) -> int:
        """How many buckets any key fell into."""
        return int(np.count_nonzero(self._counts))

    @property
    def distinct(self) -> int:
        """About how many different keys there were."""
        marks = 8 * MARK_BYTES
        return max(self.occupied, round(-marks * log(max(marks - self._marked, 1) / marks)))


def bucket_numbers(keys: np.ndarray, bits: int) -> np.ndarray:
    """Return the numbers of the buckets of keys (n,) uint64, (n,) int64."""
    return (keys & np.uint64(2**bits - 1)).astype(np.int64)
