"""Numbers of the features of segments: one for each key, or one for each of 2**bits buckets of keys."""

import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from structperc.data.corpus import Corpus
from structperc.errors import InputError
from structperc.features.exact_index import KeyCounts
from structperc.features.hashed_index import SAMPLED_NAMES, SAMPLED_TOKENS, NamedBuckets, NameSample
from structperc.features.hashing import BITS, MAX_COUNT, NO_KEY, BucketCounter, Buckets, bucket_numbers
from structperc.features.segment_keys import SegmentKeys, find_keys
from structperc.features.string_arrays import NO_FEATURE

MAX_TEXT = 2**32  # bytes of all names


class SegmentIndex(NamedTuple):
    """The features with at least `cutoff` occurrences, numbered by ascending key.

    Example:
        >>> from structperc.data import Corpus
        >>> from structperc.features.segment_keys import SegmentKeys
        >>> extractor = SegmentKeys(["w[all]"], 2, np.zeros(0, np.uint64), None)
        >>> corpus = Corpus.from_sentences([{"word": ["New", "York"]}])
        >>> index = SegmentIndex.fit(extractor, corpus, np.ones((2, 2), bool), cutoff=1)
        >>> sorted(index.feature_names(range(3)))
        ['w[all]=New', 'w[all]=New York', 'w[all]=York']
    """

    keys: np.ndarray  # (F,) uint64, ascending
    names: np.ndarray  # (n,) uint8, see `compress_names`

    @classmethod
    def fit(cls, extractor: SegmentKeys, corpus: Corpus, candidates: np.ndarray, cutoff: int) -> "SegmentIndex":
        """Return the index of the candidates of a training corpus, see `SegmentKeys.each`."""
        counters = [KeyCounts() for _ in extractor.templates]
        for _, _, of_templates in extractor.each(corpus, candidates):
            for counter, keys in zip(counters, of_templates, strict=True):
                counter.add(keys[keys != NO_KEY].view(np.int64))
        frequent = [keys[counts >= cutoff] for keys, counts in (counter.total() for counter in counters)]
        keys = np.sort(np.concatenate(frequent).view(np.uint64))
        return cls(keys, compress_names(extractor.names(corpus, candidates, keys)))

    def find(self, keys: np.ndarray) -> np.ndarray:
        """Return the numbers (n,) int32 of keys (n,) uint64, NO_FEATURE for others."""
        return find_keys(self.keys, keys).astype(np.int32)

    def subset(self, keep: np.ndarray) -> "SegmentIndex":
        """Return the index of the features for which keep (F,) bool is true, renumbered in the same order."""
        return SegmentIndex(self.keys[keep], compress_names(self.feature_names(np.flatnonzero(keep).tolist())))

    def feature_names(self, rows: Sequence[int]) -> list[str]:
        """Return the names of features, such as "w[all]=New York"."""
        names = expand_names(self.names)
        return [names[row] for row in rows]


class HashedSegmentIndex(NamedTuple):
    """The buckets with at least `cutoff` occurrences of features, numbered by ascending bucket."""

    bits: int
    buckets: np.ndarray  # (F,) int32, ascending
    named: np.ndarray  # (n,) int32, bucket of each name
    names: np.ndarray  # (m,) uint8, the n names, see `compress_names`
    distinct: int  # estimated number of different features
    occupied: int  # number of their buckets

    @classmethod
    def fit(
        cls, extractor: SegmentKeys, corpus: Corpus, candidates: np.ndarray, cutoff: int, bits: int
    ) -> "HashedSegmentIndex":
        """Return the index of the candidates of a training corpus, see `SegmentKeys.each`."""
        counter = BucketCounter(bits)
        for _, _, of_templates in extractor.each(corpus, candidates):
            for keys in of_templates:
                counter.add(keys)
        buckets = counter.frequent(cutoff)
        keys, names = _sample(extractor, corpus, candidates, buckets)
        named = bucket_numbers(keys, bits).astype(np.int32)
        return cls(bits, buckets.numbers, named, compress_names(names), counter.distinct, counter.occupied)

    def find(self, keys: np.ndarray) -> np.ndarray:
        """Return the numbers (n,) int32 of keys (n,) uint64, NO_FEATURE for others and NO_KEY."""
        numbers = find_keys(self.buckets, bucket_numbers(keys, self.bits))
        return np.where(keys == NO_KEY, NO_FEATURE, numbers).astype(np.int32)

    def subset(self, keep: np.ndarray) -> "HashedSegmentIndex":
        """Return the index of the buckets for which keep (F,) bool is true, renumbered in the same order."""
        kept = self._named_buckets().subset(keep)
        named, names = kept.sample.buckets, compress_names(kept.sample.names)
        return self._replace(buckets=kept.buckets.numbers, named=named, names=names)

    def feature_names(self, rows: Sequence[int]) -> list[str]:
        """Return the known names of features, such as "w[all]=New York and 2 more" or "bucket 1234"."""
        return self._named_buckets().names(np.asarray(rows, np.int64))

    def summary(self) -> str:
        """Return a line about the number of features and of their buckets."""
        return self._named_buckets().summary()

    def _named_buckets(self) -> NamedBuckets:
        sample = NameSample(self.named, expand_names(self.names), self.distinct, self.occupied)
        return NamedBuckets(Buckets(self.bits, self.buckets), sample)


def segment_ids(
    index: SegmentIndex | HashedSegmentIndex, extractor: SegmentKeys, corpus: Corpus, candidates: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield, for each length 1..D, the features of the candidates that begin at each token, see `SegmentKeys.each`.

    Yields:
        the numbers (M,) int32 of the features, and how many there are at each of n tokens, (n,) int64.
    """
    for _, starts, of_templates in extractor.each(corpus, candidates):
        ids = np.stack([index.find(keys) for keys in of_templates], 1)
        counts = np.zeros(corpus.tokens, np.int64)
        counts[starts] = (ids != NO_FEATURE).sum(1)
        yield ids[ids != NO_FEATURE], counts


def check_hashing(bits: int, cutoff: int) -> None:
    """Raise InputError for an invalid number of bits, or a cutoff that buckets cannot count."""
    if bits not in BITS:
        raise InputError(f"SegmentFeatures: hash_bits must be from {BITS[0]} to {BITS[-1]}, got {bits}")
    if cutoff > MAX_COUNT:
        raise InputError(f"SegmentFeatures: cutoff must be at most {MAX_COUNT} with hash_bits, got {cutoff}")


def compress_names(names: Sequence[str]) -> np.ndarray:
    """Return names, one in each line, as compressed bytes (n,) uint8."""
    lines = "\n".join(name.replace("\n", " ") for name in names)
    return np.frombuffer(bytearray(zlib.compress(lines.encode("utf-8", "surrogatepass"))), np.uint8)


def expand_names(compressed: np.ndarray) -> list[str]:
    """Return the names of `compress_names`. Raises ValueError or zlib.error for damaged bytes."""
    text = zlib.decompressobj().decompress(compressed.tobytes(), MAX_TEXT).decode("utf-8", "surrogatepass")
    return text.split("\n") if text else []


def _sample(
    extractor: SegmentKeys, corpus: Corpus, candidates: np.ndarray, buckets: Buckets
) -> tuple[np.ndarray, list[str]]:
    """Return keys (n,) and names of the most frequent features at a sample of tokens, more frequent ones first."""
    sampled = np.zeros((corpus.tokens, 1), bool)
    sampled[np.linspace(0, corpus.tokens - 1, min(corpus.tokens, SAMPLED_TOKENS)).astype(np.int64)] = True
    counts = Counter[int]()
    for _, _, of_templates in extractor.each(corpus, candidates & sampled):
        for keys in of_templates:
            kept, times = np.unique(keys[buckets.find(keys) != NO_FEATURE], return_counts=True)
            counts.update(dict(zip(kept.tolist(), times.tolist(), strict=True)))
    frequent = np.array([key for key, _ in counts.most_common(SAMPLED_NAMES)], np.uint64)
    order, names = frequent.argsort(), np.empty(len(frequent), object)
    names[order] = extractor.names(corpus, candidates & sampled, frequent[order])
    return frequent, names.tolist()
