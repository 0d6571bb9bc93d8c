"""Strings and conjunctions as 64-bit hashes, the same on all machines, and the buckets they fall into."""

from collections.abc import Sequence
from functools import cached_property
from hashlib import blake2b
from itertools import chain
from math import log
from typing import Any, Literal

import numpy as np

from structperc.errors import InputError
from structperc.features.string_arrays import NO_FEATURE, View, boundary_names
from structperc.features.templates import Template, template_name

HashedString = Literal["value", "beyond", "template", "listed"]  # different kinds have different hashes
NO_KEY = 0  # key of an absent value and of a conjunction of absent values
SHIFTS = np.uint64(30), np.uint64(27), np.uint64(31)
FACTORS = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)  # from splitmix64 (Steele et al. 2014)


def string_hash(text: str, kind: HashedString) -> int:
    """Return the first 64 bits of a string's BLAKE2b digest, the lowest byte first."""
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8, person=kind.encode()).digest()
    return int.from_bytes(digest, "little")


def mixed(x: Any) -> Any:  # a number in compiled code, else an array
    """Mix the bits of x (uint64) by a bijection: each bit of the result depends on each bit of x."""
    x = (x ^ (x >> SHIFTS[0])) * FACTORS[0]
    x = (x ^ (x >> SHIFTS[1])) * FACTORS[1]
    return x ^ (x >> SHIFTS[2])


def template_seed(template: Template) -> np.uint64:
    """Return the initial value of the keys of a template, which is the key of the bias."""
    return np.uint64(string_hash(template_name(template), "template"))


def hashed_keys(view: View, template: Template) -> np.ndarray:
    """Return the key of a template at each token, (N,) uint64, NO_KEY if all its parts are absent."""
    keys = np.full(view.tokens, template_seed(template))
    absent = np.full(view.tokens, bool(template))
    for part in template:
        codes = view.codes[part.attribute][view.numbers(part)]
        keys = mixed(keys ^ codes)
        absent &= codes == NO_KEY
    keys[absent] = NO_KEY
    return keys


class HashedValues:
    """Codes of values of all attributes: NO_KEY for an absent value, else its 64-bit hash."""

    def __init__(self, max_offset: int) -> None:
        self._beyond = [string_hash(name, "beyond") for name in boundary_names(max_offset)]

    def encode(self, strings: Sequence[str]) -> np.ndarray:
        """Return the codes of the positions outside a sequence, then of `strings`, (n,) uint64."""
        codes = {string: string_hash(string, "value") if string else NO_KEY for string in dict.fromkeys(strings)}
        shown = chain(self._beyond, map(codes.__getitem__, strings))
        return np.fromiter(shown, np.uint64, len(self._beyond) + len(strings))


BITS = range(4, 29)  # log2 of the number of buckets; row numbers of 2**28 buckets take 1 GiB
MAX_COUNT = np.iinfo(np.uint8).max  # counts of buckets saturate here
MARK_BYTES = 2**24  # bytes of the bitmap that counts distinct keys


class Buckets:
    """The buckets with features among 2**bits buckets; ids are the ranks of their numbers.

    Args:
        bits: number of lowest bits of a key that are the number of its bucket.
        numbers: numbers of the buckets with features, ascending, (n,) int32.
    """

    def __init__(self, bits: int, numbers: np.ndarray) -> None:
        self.bits, self.numbers = bits, numbers

    @classmethod
    def restore(cls, bits: int, numbers: np.ndarray, place: str) -> "Buckets":
        """Return the buckets with these numbers. Raises InputError with the location for invalid numbers."""
        ascending = numbers.dtype == np.int32 and numbers.ndim == 1 and bool((np.diff(numbers) > 0).all())
        if not ascending or (len(numbers) and not (numbers[0] >= 0 and numbers[-1] < 2**bits)):
            raise InputError(f"{place}: buckets are ascending numbers below 2**{bits}, as int32")
        return cls(bits, numbers)

    def __len__(self) -> int:
        return len(self.numbers)

    def __reduce__(self) -> tuple[Any, ...]:
        return Buckets, (self.bits, self.numbers)  # without the large table of ids

    @cached_property
    def ids(self) -> np.ndarray:
        """Id of each bucket, (2**bits,) int32, NO_FEATURE for buckets without features."""
        ids = np.full(2**self.bits, NO_FEATURE, np.int32)
        ids[self.numbers] = np.arange(len(self.numbers), dtype=np.int32)
        return ids

    def find(self, keys: np.ndarray) -> np.ndarray:
        """Return the ids (int32) of keys (uint64), NO_FEATURE for unknown keys and NO_KEY."""
        ids = self.ids[bucket_numbers(keys, self.bits)]
        return np.where(keys == NO_KEY, np.int32(NO_FEATURE), ids)

    def subset(self, keep: np.ndarray) -> "Buckets":
        """Return the buckets for which keep (n,) bool is true, renumbered in the same order."""
        return Buckets(self.bits, self.numbers[keep])


class BucketCounter:
    """Counts of keys by bucket, and an estimate of the number of different keys.

    Takes 2**bits bytes for the counts and 16 MiB for the estimate by linear counting (Whang et al. 1990): each key sets
    one of 2**27 bits; if z bits stay unset, there were about -2**27 ln(z / 2**27) keys. For up to 10 million keys the
    standard error is less than a thousand.
    """

    def __init__(self, bits: int) -> None:
        self._bits, self._counts = bits, np.zeros(2**bits, np.uint8)
        self._seen, self._marked = np.zeros(MARK_BYTES, np.uint8), 0

    def add(self, keys: np.ndarray) -> None:
        """Count keys (n,) uint64, except for NO_KEY."""
        from structperc.features.phrase_matching import count_keys  # compiled: imported when it is first needed

        self._marked += count_keys(keys, self._counts, self._seen)

    def merge(self, other: "BucketCounter") -> None:
        """Add the counts of another counter with as many buckets."""
        self._counts += np.minimum(other._counts, MAX_COUNT - self._counts)
        self._marked += int(np.unpackbits(other._seen & ~self._seen).sum())
        self._seen |= other._seen

    def frequent(self, cutoff: int) -> Buckets:
        """Return the buckets with at least `cutoff` keys, where cutoff <= MAX_COUNT."""
        return Buckets(self._bits, np.flatnonzero(self._counts >= cutoff).astype(np.int32))

    @property
    def occupied(self) -> int:
        """Number of buckets with keys."""
        return int(np.count_nonzero(self._counts))

    @property
    def distinct(self) -> int:
        """Estimated number of different keys."""
        marks = 8 * MARK_BYTES
        return max(self.occupied, round(-marks * log(max(marks - self._marked, 1) / marks)))


def bucket_numbers(keys: np.ndarray, bits: int) -> np.ndarray:
    """Return the numbers of the buckets of keys (n,) uint64, (n,) int64."""
    return (keys & np.uint64(2**bits - 1)).astype(np.int64)
