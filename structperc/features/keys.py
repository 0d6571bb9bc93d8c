"""Codes of attribute values, and keys: conjunctions of codes as mixed-radix integers, counted exactly."""

from collections.abc import Iterable, Mapping, Sequence
from math import prod

import numpy as np

from structperc.errors import InputError
from structperc.features.templates import Template, template_name
from structperc.features.windows import View, boundary_names


class KeyCounts:
    """Counts keys by sorting. What pieces have counted is merged when it is as much as all before."""

    def __init__(self) -> None:
        self._keys, self._counts = np.empty(0, np.int64), np.empty(0, np.int64)
        self._more: list[tuple[np.ndarray, np.ndarray]] = []

    def add(self, keys: np.ndarray) -> None:
        """Count keys (n,) int64."""
        self._more.append(np.unique(keys, return_counts=True))
        if sum(len(keys) for keys, _ in self._more) > len(self._keys):
            self._merge()

    def total(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the different keys, sorted (m,) int64, and how often each was met (m,) int64."""
        self._merge()
        return self._keys, self._counts

    def _merge(self) -> None:
        parts, self._more = [(self._keys, self._counts), *self._more], []
        keys, counts = (np.concatenate(one) for one in zip(*parts, strict=True))
        order = keys.argsort(kind="stable")
        keys, counts = keys[order], counts[order]
        first = np.flatnonzero(np.diff(keys, prepend=keys[:1] - 1))
        self._keys, self._counts = keys[first], np.add.reduceat(counts, first) if len(first) else counts


ABSENT = 0  # the attribute has no value at a token
UNSEEN = 1  # the value did not occur often enough in training to be part of any feature


class ValueCodes:
    """Codes of an attribute's values: ABSENT, UNSEEN, the places beyond the boundaries, then the values."""

    def __init__(self, values: Sequence[str], max_offset: int) -> None:
        self.values = list(values)
        self._names = ["", "?", *boundary_names(max_offset), *values]
        self._beyond = np.arange(2, 2 + 2 * max_offset)
        self._codes = {value: code for code, value in enumerate(values, 2 + 2 * max_offset)} | {"": ABSENT}

    def __len__(self) -> int:
        return len(self._names)

    @classmethod
    def frequent(cls, strings: Sequence[str], counts: np.ndarray, cutoff: int, max_offset: int) -> "ValueCodes":
        """Keep the values of total count >= cutoff: no feature can be more frequent than its parts.

        The most frequent come first. So do their features within each template, whose weights then are neighbours in
        memory: few lines of the cache have most of what is read.
        """
        index: dict[str, int] = {}
        numbers = [index.setdefault(string, len(index)) for string in strings]
        totals = np.bincount(np.array(numbers, np.int64), counts, minlength=len(index))
        values, order = list(index), (-totals).argsort(kind="stable")
        return cls([values[i] for i in order.tolist() if values[i] and totals[i] >= cutoff], max_offset)

    @classmethod
    def from_json(cls, values: list[str], max_offset: int, place: str) -> "ValueCodes":
        """Take `values` as they were saved; InputError, naming the place, for one that is empty or there twice."""
        if "" in values or len(set(values)) < len(values):
            raise InputError(f"{place}: a value is empty or is repeated")
        return cls(values, max_offset)

    def encode(self, strings: Sequence[str]) -> np.ndarray:
        """Return the codes of the places beyond the boundaries, then of `strings`: an array to index with
        `DistinctStrings.numbers`.
        """
        codes = [self._codes.get(string, UNSEEN) for string in strings]
        return np.concatenate([self._beyond, np.array(codes, np.int64)])

    def name(self, code: int) -> str:
        """Return the value with this code as features print it."""
        return self._names[code]


NO_FEATURE = -1
TABLE = 1 << 18  # key spaces up to this size are counted in a table, larger ones by sorting


def radices(template: Template, vocabularies: Mapping[str, ValueCodes]) -> tuple[int, ...]:
    """Return the number of codes of each part; raises InputError if 63 bits cannot tell their combinations apart."""
    sizes = tuple(len(vocabularies[part.attribute]) for part in template)
    if prod(sizes) >= 1 << 63:
        raise InputError(f"template {template_name(template)!r} joins too many values; take a part out")
    return sizes


def template_keys(view: View, template: Template, sizes: Sequence[int]) -> np.ndarray:
    """Return the key of a template at each token, (N,) int64; 0 everywhere for the bias."""
    keys = np.zeros(view.tokens, np.int64)
    for part, size in zip(template, sizes, strict=True):
        keys *= size
        keys += view.codes[part.attribute][view.numbers(part)]
    return keys


def split_keys(keys: np.ndarray, sizes: Sequence[int]) -> np.ndarray:
    """Return the codes of the parts that keys (n,) were made of, (parts, n)."""
    codes = np.empty((len(sizes), len(keys)), np.int64)
    for row, size in zip(codes[::-1], reversed(sizes), strict=True):
        keys, row[:] = np.divmod(keys, size)
    return codes


def frequent_keys(chunks: Iterable[np.ndarray], sizes: Sequence[int], cutoff: int) -> np.ndarray:
    """Return the sorted keys that are features: met `cutoff` times, no part unseen, not all parts absent.

    The keys (n,) int64 of a corpus come in pieces, and are counted exactly, in memory for a piece and for the different
    keys of all.
    """
    if prod(sizes) <= TABLE:
        table = np.zeros(prod(sizes), np.int64)
        for keys in chunks:
            table += np.bincount(keys, minlength=len(table))
        found = np.flatnonzero(table >= cutoff)
    else:
        counted = KeyCounts()
        for keys in chunks:
            counted.add(keys)
        distinct, counts = counted.total()
        found = distinct[counts >= cutoff]
    codes = split_keys(found, sizes)
    absent = (codes == ABSENT).all(0) if len(sizes) else False  # the bias has no part and is always there
    return found[~((codes == UNSEEN).any(0) | absent)]
