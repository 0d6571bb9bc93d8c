"""The names of features that data list, numbered by hashes."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np

from structperc.errors import InputError
from structperc.features.bucket_names import NAMES, TOKENS, BucketNames
from structperc.features.hashing import BucketCounter, Buckets, bucket_numbers, string_hash
from structperc.features.listed_names import FeatureNames, Times

CHUNK = 2**16  # names counted at once


class HashedVocabulary(FeatureNames):
    """Names in buckets.

    Args:
        buckets: those with names.
        known: what is known of the names in them.
    """

    def __init__(self, buckets: Buckets, known: BucketNames) -> None:
        self._buckets, self._known = buckets, known

    @classmethod
    def none(cls, bits: int) -> "HashedVocabulary":
        """Return no names, in 2**bits buckets."""
        return cls(Buckets(bits, np.empty(0, np.int32)), BucketNames(np.empty(0, np.int32), [], 0, 0))

    def __len__(self) -> int:
        return len(self._buckets)

    def find(self, name: str) -> int:
        """Return the id of the bucket of a name, NO_FEATURE where it has none."""
        return int(self._buckets.ids[string_hash(name, "listed") % 2**self._buckets.bits])

    def count(self, times: Times, cutoff: int) -> "HashedVocabulary":
        """Return the buckets into which names fall at least `cutoff` times; the first strings give names to them."""
        bits = self._buckets.bits
        tally, counts = BucketCounter(bits), Counter[str]()
        keys: list[int] = []
        for number, (names, often) in enumerate(times):
            hashes = [string_hash(name, "listed") for name in names]
            keys += hashes * min(often, cutoff)
            if len(keys) >= CHUNK:
                tally.add(np.array(keys, np.uint64))
                keys = []
            if number < TOKENS:
                counts.update(dict.fromkeys(names, often))
        tally.add(np.array(keys, np.uint64))
        buckets = tally.met(cutoff)
        chosen = [name for name, _ in counts.most_common(NAMES)]
        numbers = bucket_numbers(np.array([string_hash(name, "listed") for name in chosen], np.uint64), bits)
        named = BucketNames(numbers.astype(np.int32), chosen, tally.distinct, tally.occupied)
        return HashedVocabulary(buckets, named.within(buckets))

    def names(self, rows: np.ndarray) -> list[str]:
        """Return what is known of the names with these ids (n,)."""
        return self._known.of(self._buckets.numbers[rows])

    def subset(self, keep: np.ndarray) -> "HashedVocabulary":
        """Return the buckets for which keep (F,) bool is true, renumbered in the same order."""
        buckets = self._buckets.subset(keep)
        return HashedVocabulary(buckets, self._known.within(buckets))

    def summary(self) -> str:
        """Return how many names share how many buckets."""
        return self._known.summary(self._buckets)

    @property
    def listed(self) -> list[str]:
        """Nothing: names are not kept."""
        return []

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the buckets, and those of the sample of names."""
        return {"buckets": self._buckets.numbers, "named": self._known.buckets}

    def strings(self) -> dict[str, Any]:
        """Return the sample of names."""
        return self._known.to_json()

    def restore(
        self, listed: list[str], strings: Mapping[str, Any], arrays: Mapping[str, np.ndarray], place: str
    ) -> "HashedVocabulary":
        """Return the buckets that were saved. Raises InputError for what does not fit together."""
        if listed:
            raise InputError(f"{place}.names: names that are hashed are not listed")
        buckets = Buckets.restore(self._buckets.bits, arrays["buckets"], place)
        return HashedVocabulary(buckets, BucketNames.from_json(strings, arrays["named"], place))
