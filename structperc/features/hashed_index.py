"""Hashed numbering: features that share one of 2**bits buckets share an id, so that memory is bounded.

Values and keys are not stored; a sample of the training data provides names of the most frequent features.
"""

import copy
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from structperc.data.json_data import check_fields
from structperc.errors import InputError
from structperc.features.attribute_sources import Attributes
from structperc.features.hashing import (
    BITS,
    MAX_COUNT,
    BucketCounter,
    Buckets,
    HashedValues,
    bucket_numbers,
    hashed_keys,
    string_hash,
)
from structperc.features.string_arrays import MIN_CHUNKS, NO_FEATURE, IdLists, StateArrays, View, boundary_names
from structperc.features.templates import Template, TemplatePart, Templates, template_name
from structperc.process_pool import Workers
from structperc.progress import bar

if TYPE_CHECKING:
    from structperc.features.lookup import TemplateLookup

SAMPLED_TOKENS = 2**14  # tokens, evenly spread over the corpus, whose features are named
SAMPLED_NAMES = 2**15  # number of names, those of the most frequent features of these tokens
NAMES_CHUNK = 2**16  # names counted in one call


class HashedNumbering:
    """Numbering of features by the buckets of their hashes.

    Args:
        bits: logarithm of the number of buckets, from 4 to 28.
        max_offset: the largest offset of any template.
    """

    def __init__(self, bits: int, max_offset: int) -> None:
        if bits not in BITS:
            raise InputError(f"hash_bits must be from {BITS[0]} to {BITS[-1]}, got {bits}")
        self._bits, self._values = bits, HashedValues(max_offset)

    def fit(self, reading: Attributes, cutoff: int, max_offset: int) -> "HashedNumbering":
        """Return the numbering itself, which stores no values. Raises InputError for a cutoff > MAX_COUNT."""
        if cutoff > MAX_COUNT:
            raise InputError(f"cutoff must be at most {MAX_COUNT} with hash_bits, got {cutoff}")
        return self

    def extend(self, reading: Attributes, cutoff: int, max_offset: int) -> "HashedNumbering":
        """Return the numbering itself, which stores no values."""
        return self.fit(reading, cutoff, max_offset)

    def codes(self, attribute: str, values: Sequence[str]) -> np.ndarray:
        """Return the hashes of the positions outside a sequence, then of values, uint64."""
        return self._values.encode(values)

    def count(
        self, view: View, reading: Attributes, templates: Templates, cutoff: int, progress: bool, workers: Workers
    ) -> "HashedIndex":
        """Index the buckets with at least `cutoff` features of a view. Workers share the templates."""
        workers = workers.at_most(min(len(view.chunks()) // MIN_CHUNKS, len(templates)))
        shares = [templates[i :: workers.number] for i in range(workers.number)]
        several = workers.number > 1
        counting = partial(partial, _count, view, self._bits, progress and not several)
        with closing(workers.each(counting, shares)) as each:
            counter = next(each)
            for other in bar(each, "hashing features", len(shares) - 1, progress and several):
                counter.merge(other)
        buckets = counter.frequent(cutoff)
        return HashedIndex(templates, buckets, _sample(view, reading, templates, buckets, counter))

    def names(self) -> "HashedVocabulary":
        """Return an empty vocabulary for features listed by name in the data."""
        none = np.empty(0, np.int32)
        return HashedVocabulary(Buckets(self._bits, none), NameSample(none, [], 0, 0))

    def to_json(self) -> dict[str, Any]:
        """Return the number of bits."""
        return {"vocabularies": {}, "hash": {"bits": self._bits}}

    def restore(self, strings: Mapping[str, Any], attributes: Sequence[str], max_offset: int) -> "HashedNumbering":
        """Return the numbering itself, which has no state."""
        return self

    def restore_index(
        self, templates: Templates, strings: Mapping[str, Any], arrays: StateArrays, place: str
    ) -> "HashedIndex":
        """Return the index of saved buckets. Raises InputError with the location for invalid ones."""
        return HashedIndex(templates, *_restore(self._bits, strings, arrays, place))


class NameSample(NamedTuple):
    """Names of frequent features, and the number of all features."""

    buckets: np.ndarray  # (n,) int32, bucket of each name, more frequent features first
    names: list[str]  # n
    distinct: int  # estimated number of different features in the training data
    occupied: int  # number of their buckets

    def within(self, buckets: Buckets) -> "NameSample":
        """Return the names of features in these buckets."""
        kept = np.isin(self.buckets, buckets.numbers)
        names = [name for name, wanted in zip(self.names, kept.tolist(), strict=True) if wanted]
        return self._replace(buckets=self.buckets[kept], names=names)

    def merge(self, other: "NameSample") -> "NameSample":
        """Return the names of both, and the larger numbers."""
        named = set(self.names)
        new = [i for i, name in enumerate(other.names) if name not in named]
        buckets = np.concatenate([self.buckets, other.buckets[new]])
        names = [*self.names, *(other.names[i] for i in new)]
        return NameSample(buckets, names, max(self.distinct, other.distinct), max(self.occupied, other.occupied))


class NamedBuckets:
    """Base class of numbered buckets with names for some of their features."""

    def __init__(self, buckets: Buckets, sample: NameSample) -> None:
        self.buckets, self.sample = buckets, sample

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_lookup"}

    def __len__(self) -> int:
        return len(self.buckets)

    def names(self, rows: np.ndarray) -> list[str]:
        """Return the known names for each of these ids (n,) as one string, or "bucket 1234"."""
        numbers = self.buckets.numbers[rows].tolist()
        by_bucket: dict[int, list[str]] = {number: [] for number in numbers}
        for bucket, name in zip(self.sample.buckets.tolist(), self.sample.names, strict=True):
            if bucket in by_bucket:
                by_bucket[bucket].append(name)
        return [_joined_name(number, by_bucket[number]) for number in numbers]

    def subset(self, keep: np.ndarray) -> Self:
        """Return the buckets for which keep (F,) bool is true, renumbered in the same order."""
        kept = copy.copy(self)
        kept.buckets = self.buckets.subset(keep)
        kept.sample = self.sample.within(kept.buckets)
        return kept

    def merge(self, other: Self) -> tuple[Self, np.ndarray]:
        """Return the buckets of both, and the ids (n,) int64 in it of the buckets of this one."""
        merged = copy.copy(self)
        numbers = np.union1d(self.buckets.numbers, other.buckets.numbers)
        merged.buckets, merged.sample = Buckets(self.buckets.bits, numbers), self.sample.merge(other.sample)
        return merged, numbers.searchsorted(self.buckets.numbers)

    def summary(self) -> str:
        """Return a line about the number of features and of their buckets."""
        bits, (_, names, distinct, occupied) = self.buckets.bits, self.sample
        shared = 100 * (distinct - occupied) / max(distinct, 1)
        return (
            f"about {distinct:,} different ones in {occupied:,} of {2**bits:,} buckets (hash_bits: {bits}), "
            f"{shared:.1f}% share a bucket with an earlier one; {len(self):,} buckets are kept; "
            f"a sample of the training data names {len(names):,} features"
        )

    def arrays(self) -> dict[str, np.ndarray]:
        """Return "buckets", those with features, and "named", those of the sample of names; both int32."""
        return {"buckets": self.buckets.numbers, "named": self.sample.buckets}

    def strings(self) -> dict[str, Any]:
        """Return the sample of names and the numbers of features and buckets."""
        return {"names": self.sample.names, "distinct": self.sample.distinct, "occupied": self.sample.occupied}


class HashedIndex(NamedBuckets):
    """The features of a list of templates, all in the same buckets."""

    def __init__(self, templates: Templates, buckets: Buckets, sample: NameSample) -> None:
        super().__init__(buckets, sample)
        self.templates = tuple(templates)

    def encode(self, view: View, progress: bool = False) -> IdLists:
        """Return the ids of the features at each token of a view."""
        return self._lookup.encode(view, progress)

    def same(self, other: object) -> bool:
        """Return True if both give the same ids to the same features."""
        if not isinstance(other, HashedIndex) or self.templates != other.templates:
            return False
        return np.array_equal(self.buckets.numbers, other.buckets.numbers)

    def sizes(self) -> list[int]:
        """Return an empty list: templates share their buckets."""
        return []

    @cached_property
    def _lookup(self) -> "TemplateLookup":
        from structperc.features.lookup import HashedLookup, TemplateLookup  # compiled: imported when first needed

        return TemplateLookup(self.templates, HashedLookup(self.templates, self.buckets))


class HashedVocabulary(NamedBuckets):
    """Names of features listed in the data, by buckets."""

    listed: tuple[str, ...] = ()  # names are not stored

    def find(self, names: Sequence[str]) -> np.ndarray:
        """Return the ids (n,) int32 of the buckets of names, NO_FEATURE for unknown ones."""
        hashes = np.array([string_hash(name, "listed") for name in names], np.uint64)
        return self.buckets.ids[bucket_numbers(hashes, self.buckets.bits)]

    def count(self, counts: Mapping[str, int], cutoff: int) -> "HashedVocabulary":
        """Return the buckets of names that occur at least `cutoff` times, given numbers of occurrences."""
        bits = self.buckets.bits
        counter = BucketCounter(bits)
        keys: list[int] = []
        for name, number in counts.items():
            keys += [string_hash(name, "listed")] * min(number, cutoff)
            if len(keys) >= NAMES_CHUNK:
                counter.add(np.array(keys, np.uint64))
                keys = []
        counter.add(np.array(keys, np.uint64))
        buckets = counter.frequent(cutoff)
        chosen = [name for name, _ in Counter(counts).most_common(SAMPLED_NAMES)]
        numbers = bucket_numbers(np.array([string_hash(name, "listed") for name in chosen], np.uint64), bits)
        sample = NameSample(numbers.astype(np.int32), chosen, counter.distinct, counter.occupied)
        return HashedVocabulary(buckets, sample.within(buckets))

    def restore(
        self, listed: list[str], strings: Mapping[str, Any], arrays: StateArrays, place: str
    ) -> "HashedVocabulary":
        """Return the saved buckets. Raises InputError with the location for invalid ones."""
        if listed:
            raise InputError(f"{place}.names: hashed names are not listed")
        return HashedVocabulary(*_restore(self.buckets.bits, strings, arrays, place))


def _restore(bits: int, strings: Mapping[str, Any], arrays: StateArrays, place: str) -> tuple[Buckets, NameSample]:
    check_fields(strings, {"names": list[str], "distinct": int, "occupied": int}, place)
    named = arrays["named"]
    if named.dtype != np.int32 or named.shape != (len(strings["names"]),):
        raise InputError(f"{place}: expected a bucket (int32) for each of {len(strings['names'])} names")
    sample = NameSample(named, strings["names"], strings["distinct"], strings["occupied"])
    return Buckets.restore(bits, arrays["buckets"], place), sample


def _count(view: View, bits: int, progress: bool, templates: Templates) -> BucketCounter:
    """Count the features of some templates at the tokens of a view by bucket."""
    counter = BucketCounter(bits)
    for template in bar(templates, "hashing features", show=progress):
        for chunk in view.chunks():
            counter.add(hashed_keys(chunk, template))
    return counter


# -- names of a sample of the training data --------------------------------------------------------------------------


class _Sampled(NamedTuple):
    """Different features of a template at some tokens."""

    counts: np.ndarray  # (n,) int64
    buckets: np.ndarray  # (n,) int64
    tokens: np.ndarray  # (n,) int64, a token with the feature


def _sample(
    view: View, reading: Attributes, templates: Templates, buckets: Buckets, counter: BucketCounter
) -> NameSample:
    """Return the names of the most frequent features with ids at a sample of tokens."""
    tokens = np.unique(np.linspace(0, view.tokens - 1, min(view.tokens, SAMPLED_TOKENS)).astype(np.int64))
    samples = [_features(view, template, tokens, buckets) for template in templates]
    none = _Sampled(*[np.empty(0, np.int64)] * 3)
    counts, numbers, places = map(np.concatenate, zip(none, *samples, strict=True))
    chosen = np.sort((-counts).argsort(kind="stable")[:SAMPLED_NAMES])  # template by template
    parts = np.split(chosen, chosen.searchsorted(np.cumsum([len(sample.counts) for sample in samples])))
    named = (_names(view, reading, template, places[part]) for template, part in zip(templates, parts, strict=False))
    by_count = (-counts[chosen]).argsort(kind="stable")
    names = np.array([name for of_template in named for name in of_template], object)[by_count]
    return NameSample(numbers[chosen][by_count].astype(np.int32), names.tolist(), counter.distinct, counter.occupied)


def _features(view: View, template: Template, tokens: np.ndarray, buckets: Buckets) -> _Sampled:
    sampled = _at(tokens, view, lambda chunk: hashed_keys(chunk, template))
    keys, first, counts = np.unique(sampled, return_index=True, return_counts=True)
    kept = buckets.find(keys) != NO_FEATURE
    return _Sampled(counts[kept].astype(np.int64), bucket_numbers(keys[kept], buckets.bits), tokens[first[kept]])


def _at(tokens: np.ndarray, view: View, values: Callable[[View], np.ndarray]) -> np.ndarray:
    """Return values of a view at some tokens (n,), computed chunk by chunk; (n,) uint64."""
    gathered, start = np.empty(len(tokens), np.uint64), 0
    for chunk in view.chunks():
        here = (tokens >= start) & (tokens < start + chunk.tokens)
        gathered[here] = values(chunk)[tokens[here] - start]
        start += chunk.tokens
    return gathered


def _names(view: View, reading: Attributes, template: Template, tokens: np.ndarray) -> Iterable[str]:
    """Return the names of the features of a template at some tokens (n,)."""
    if not template:
        return [template_name(template)] * len(tokens)
    return map("|".join, zip(*(_part_names(view, reading, part, tokens) for part in template), strict=True))


def _part_names(view: View, reading: Attributes, part: TemplatePart, tokens: np.ndarray) -> list[str]:
    beyond, values = boundary_names(view.max_offset), reading.values[part.attribute]
    numbers = _at(tokens, view, lambda chunk: chunk.numbers(part)).tolist()
    return [f"{part}={beyond[n] if n < len(beyond) else values[n - len(beyond)]}" for n in numbers]


def _joined_name(number: int, names: list[str]) -> str:
    """Return one name for all names of a bucket."""
    if not names:
        return f"bucket {number}"
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"
