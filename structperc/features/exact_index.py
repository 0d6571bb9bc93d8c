"""Exact numbering: each attribute value and each feature has its own id, stored in an index.

Values have codes, and conjunctions of codes are keys: mixed-radix integers. Ids are given template by template and by
ascending key within one.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from functools import cached_property, partial
from math import prod
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from structperc.errors import InputError
from structperc.features.attribute_sources import Attributes
from structperc.features.string_arrays import MIN_CHUNKS, NO_FEATURE, IdLists, StateArrays, View, boundary_names
from structperc.features.templates import Template, TemplatePart, Templates, template_name
from structperc.process_pool import Workers
from structperc.progress import bar

if TYPE_CHECKING:
    from structperc.features.lookup import TemplateLookup


class KeyCounts:
    """Counts of keys by sorting. New counts are merged once there are as many as merged ones."""

    def __init__(self) -> None:
        self._keys, self._counts = np.empty(0, np.int64), np.empty(0, np.int64)
        self._more: list[tuple[np.ndarray, np.ndarray]] = []

    def add(self, keys: np.ndarray) -> None:
        """Count keys (n,) int64."""
        self._more.append(np.unique(keys, return_counts=True))
        if sum(len(keys) for keys, _ in self._more) > len(self._keys):
            self._merge()

    def total(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the different keys, sorted (m,) int64, and their counts (m,) int64."""
        self._merge()
        return self._keys, self._counts

    def _merge(self) -> None:
        parts, self._more = [(self._keys, self._counts), *self._more], []
        keys, counts = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        order = keys.argsort(kind="stable")
        keys, counts = keys[order], counts[order]
        first = np.flatnonzero(np.diff(keys, prepend=keys[:1] - 1))
        self._keys, self._counts = keys[first], np.add.reduceat(counts, first) if len(first) else counts


ABSENT = 0  # the attribute has no value at a token
UNSEEN = 1  # the value is too rare in the training data to be part of a feature


class ValueCodes:
    """Codes of an attribute's values: ABSENT, UNSEEN, the positions outside a sequence, then the values."""

    def __init__(self, values: Sequence[str], max_offset: int) -> None:
        self.values = list(values)
        self._names = ["", "?", *boundary_names(max_offset), *values]
        self._beyond = np.arange(2, 2 + 2 * max_offset)
        self._codes = {value: code for code, value in enumerate(values, 2 + 2 * max_offset)} | {"": ABSENT}

    def __len__(self) -> int:
        return len(self._names)

    @classmethod
    def frequent(cls, strings: Sequence[str], counts: np.ndarray, cutoff: int, max_offset: int) -> "ValueCodes":
        """Return the codes of values with a total count >= cutoff: no feature is more frequent than its parts.

        The most frequent values come first, and so do their features within each template. Weights that are used often
        are thus neighbours in memory, which helps the cache.
        """
        index: dict[str, int] = {}
        numbers = [index.setdefault(string, len(index)) for string in strings]
        totals = np.bincount(np.array(numbers, np.int64), counts, minlength=len(index))
        values, order = list(index), (-totals).argsort(kind="stable")
        return cls([values[i] for i in order.tolist() if values[i] and totals[i] >= cutoff], max_offset)

    def merge(self, other: "ValueCodes", max_offset: int) -> "ValueCodes":
        """Return the codes of the values of both: codes of this one, then those of the further values."""
        return ValueCodes([*self.values, *(value for value in other.values if value not in self._codes)], max_offset)

    @classmethod
    def from_json(cls, values: list[str], max_offset: int, place: str) -> "ValueCodes":
        """Return the codes of saved values. Raises InputError with the location for empty or repeated ones."""
        if "" in values or len(set(values)) < len(values):
            raise InputError(f"{place}: a value is empty or is repeated")
        return cls(values, max_offset)

    def encode(self, strings: Sequence[str]) -> np.ndarray:
        """Return the codes of the positions outside a sequence, then of `strings`, (n,) int64."""
        codes = [self._codes.get(string, UNSEEN) for string in strings]
        return np.concatenate([self._beyond, np.array(codes, np.int64)])

    def name(self, code: int) -> str:
        """Return the value with this code as printed in names of features."""
        return self._names[code]


TABLE = 1 << 18  # key spaces up to this size are counted in a table, larger ones by sorting


def radices(template: Template, vocabularies: Mapping[str, ValueCodes]) -> tuple[int, ...]:
    """Return the number of codes of each part. Raises InputError if their combinations need more than 63 bits."""
    sizes = tuple(len(vocabularies[part.attribute]) for part in template)
    if prod(sizes) >= 1 << 63:
        raise InputError(f"template {template_name(template)!r} joins too many values; take a part out")
    return sizes


def template_keys(view: View, template: Template, sizes: Sequence[int]) -> np.ndarray:
    """Return the key of a template at each token, (N,) int64; 0 everywhere for the bias."""
    return join_codes((view.codes[part.attribute][view.numbers(part)] for part in template), sizes, view.tokens)


def join_codes(codes: Iterable[np.ndarray], sizes: Sequence[int], n: int) -> np.ndarray:
    """Return the keys (n,) int64 of the codes (n,) of each part."""
    keys = np.zeros(n, np.int64)
    for part, size in zip(codes, sizes, strict=True):
        keys *= size
        keys += part
    return keys


def split_keys(keys: np.ndarray, sizes: Sequence[int]) -> np.ndarray:
    """Return the codes of the parts of keys (n,), (parts, n)."""
    codes = np.empty((len(sizes), len(keys)), np.int64)
    for row, size in zip(codes[::-1], reversed(sizes), strict=True):
        keys, row[:] = np.divmod(keys, size)
    return codes


def frequent_keys(chunks: Iterable[np.ndarray], sizes: Sequence[int], cutoff: int) -> np.ndarray:
    """Return the sorted keys that are features: at least `cutoff` times, no part unseen, not all parts absent.

    chunks: the keys (n,) int64 of a corpus in pieces. Memory is needed for one chunk and all different keys.
    """
    if prod(sizes) <= TABLE:
        table = np.zeros(prod(sizes), np.int64)
        for keys in chunks:
            table += np.bincount(keys, minlength=len(table))
        frequent = np.flatnonzero(table >= cutoff)
    else:
        counted = KeyCounts()
        for keys in chunks:
            counted.add(keys)
        distinct, counts = counted.total()
        frequent = distinct[counts >= cutoff]
    codes = split_keys(frequent, sizes)
    absent = (codes == ABSENT).all(0) if len(sizes) else False  # the bias has no part and is always there
    return frequent[~((codes == UNSEEN).any(0) | absent)]


class ExactNumbering:
    """Numbering with a code for each value and an id for each feature.

    Args:
        vocabularies: values of all attributes, empty before `fit`.
    """

    def __init__(self, vocabularies: Mapping[str, ValueCodes] = MappingProxyType({})) -> None:
        self._vocabularies = dict(vocabularies)

    def fit(self, reading: Attributes, cutoff: int, max_offset: int) -> "ExactNumbering":
        """Return the numbering with codes for the frequent values of a training corpus."""
        return ExactNumbering({name: _vocabulary(name, reading, cutoff, max_offset) for name in reading.values})

    def extend(self, reading: Attributes, cutoff: int, max_offset: int) -> "ExactNumbering":
        """Return the numbering with codes for the frequent values of a further corpus; known codes stay the same."""
        more = self.fit(reading, cutoff, max_offset)._vocabularies
        return ExactNumbering({name: codes.merge(more[name], max_offset) for name, codes in self._vocabularies.items()})

    def codes(self, attribute: str, values: Sequence[str]) -> np.ndarray:
        """Return the codes of the positions outside a sequence, then of values of an attribute, int64."""
        return self._vocabularies[attribute].encode(values)

    def count(
        self, view: View, reading: Attributes, templates: Templates, cutoff: int, progress: bool, workers: Workers
    ) -> "ExactIndex":
        """Index the features that occur at least `cutoff` times. Each worker counts one template at a time."""
        workers = workers.at_most(len(view.chunks()) // MIN_CHUNKS)
        jobs = ((template, radices(template, self._vocabularies)) for template in templates)
        with closing(workers.each(partial(partial, _frequent, view, cutoff), jobs)) as each:
            keys = [*bar(each, "counting features", len(templates), progress)]
        return ExactIndex(templates, self._vocabularies, keys)

    def names(self) -> "ExplicitVocabulary":
        """Return an empty vocabulary for features listed by name in the data."""
        return ExplicitVocabulary()

    def to_json(self) -> dict[str, Any]:
        """Return the values of attributes in the order of their codes."""
        values = {name: vocabulary.values for name, vocabulary in self._vocabularies.items()}
        return {"vocabularies": values, "hash": None}

    def restore(self, strings: Mapping[str, Any], attributes: Sequence[str], max_offset: int) -> "ExactNumbering":
        """Return the numbering with saved values. Raises InputError for an attribute without values."""
        vocabularies = {
            name: ValueCodes.from_json(values, max_offset, f"features.vocabularies.{name}")
            for name, values in strings["vocabularies"].items()
        }
        if missing := [name for name in attributes if name not in vocabularies]:
            raise InputError(f"features.vocabularies: missing {missing[0]!r}, which a template reads")
        return ExactNumbering(vocabularies)

    def restore_index(
        self, templates: Templates, strings: Mapping[str, Any], arrays: StateArrays, place: str
    ) -> "ExactIndex":
        """Return the index of saved keys. Raises InputError for keys that do not belong to these templates."""
        keys, sizes = arrays["keys"], arrays["sizes"]
        if keys.dtype != np.int64 or sizes.dtype != np.int64 or keys.ndim != 1 or sizes.shape != (len(templates),):
            raise InputError(f"{place}: expected int64 keys and their numbers for {len(templates)} templates")
        if (sizes < 0).any() or sizes.sum() != len(keys):
            raise InputError(f"{place}: expected {sizes.sum()} keys, got {len(keys)}")
        parts = np.split(keys, np.cumsum(sizes))[: len(sizes)]
        for template, part in zip(templates, parts, strict=True):
            space = prod(radices(template, self._vocabularies))
            if len(part) and not (part[0] >= 0 and part[-1] < space and (np.diff(part) > 0).all()):
                raise InputError(f"{place}: keys of template {template_name(template)!r} are out of range or order")
        return ExactIndex(templates, self._vocabularies, parts)


class ExactIndex:
    """The features of a list of templates, with ids 0, 1, ...

    Args:
        templates: conjunctions that are features.
        vocabularies: values of all attributes that the templates name.
        keys: for each template the sorted keys (int64) of its features.
    """

    def __init__(
        self, templates: Templates, vocabularies: Mapping[str, ValueCodes], keys: Sequence[np.ndarray]
    ) -> None:
        self.templates, self.keys = tuple(templates), tuple(keys)
        self._sizes = [radices(template, vocabularies) for template in templates]
        self._vocabularies = vocabularies
        self._first = np.cumsum([0, *map(len, keys)]).tolist()

    def __reduce__(self) -> tuple[Any, ...]:
        return ExactIndex, (self.templates, self._vocabularies, self.keys)  # copies and pickles have no lookup tables

    def __len__(self) -> int:
        return self._first[-1]

    def encode(self, view: View, progress: bool = False) -> IdLists:
        """Return the ids of the features at each token of a view."""
        return self._lookup.encode(view, progress)

    def names(self, rows: np.ndarray) -> list[str]:
        """Return the features with these ids, ascending (n,), as "wl[-1]=the|wl[0]=cat"; the bias is "bias"."""
        ids = np.split(rows, np.searchsorted(rows, self._first[1:-1]))
        parts = zip(range(len(self.templates)), ids, self._first, strict=False)  # without templates there is one, too
        return [name for number, mine, first in parts for name in self._names(number, mine - first)]

    def subset(self, keep: np.ndarray) -> "ExactIndex":
        """Return the index of the features for which keep (F,) bool is true, renumbered in the same order."""
        masks = np.split(keep, self._first[1:-1])[: len(self.keys)]  # without templates there is one, too
        kept = [keys[mask] for keys, mask in zip(self.keys, masks, strict=True)]
        return ExactIndex(self.templates, self._vocabularies, kept)

    def merge(self, other: "ExactIndex") -> tuple["ExactIndex", np.ndarray]:
        """Return the index of the features of both, and the ids (F,) int64 in it of the features of this one.

        The other index has the same templates, and further values in its numbering, see `ExactNumbering.extend`.
        """
        merged, ids, first = [], [np.empty(0, np.int64)], 0
        for keys, before, sizes, others in zip(self.keys, self._sizes, other._sizes, other.keys, strict=True):
            recoded = join_codes(split_keys(keys, before), sizes, len(keys))
            merged.append(np.union1d(recoded, others))
            ids.append(first + merged[-1].searchsorted(recoded))
            first += len(merged[-1])
        return ExactIndex(self.templates, other._vocabularies, merged), np.concatenate(ids)

    def same(self, other: object) -> bool:
        """Return True if both give the same ids to the same features."""
        if not isinstance(other, ExactIndex) or self.templates != other.templates:
            return False
        return all(map(np.array_equal, self.keys, other.keys))

    def sizes(self) -> list[int]:
        """Return the number of features of each template; their ids are consecutive."""
        return list(map(len, self.keys))

    def summary(self) -> str:
        """Return an empty string: no features share an id."""
        return ""

    def arrays(self) -> dict[str, np.ndarray]:
        """Return "keys" (F,), template by template, and "sizes", the number of keys of each template; int64."""
        keys = np.concatenate([np.empty(0, np.int64), *self.keys])
        return {"keys": keys, "sizes": np.diff(self._first).astype(np.int64)}

    def strings(self) -> dict[str, Any]:
        """Return an empty mapping: `ExactNumbering.to_json` has the values."""
        return {}

    @cached_property
    def _lookup(self) -> "TemplateLookup":
        from structperc.features.lookup import ExactLookup, TemplateLookup  # compiled: imported when first needed

        return TemplateLookup(self.templates, ExactLookup(self._sizes, self.keys))

    def _names(self, number: int, ranks: np.ndarray) -> Iterable[str]:
        """Return the names of the features with these ranks (n,) within a template."""
        template = self.templates[number]
        if not template:
            return [template_name(template)] * len(ranks)
        codes = split_keys(self.keys[number][ranks], self._sizes[number])
        return map("|".join, zip(*map(self._part_names, template, codes), strict=True))

    def _part_names(self, part: TemplatePart, codes: np.ndarray) -> list[str]:
        name = self._vocabularies[part.attribute].name
        return [f"{part}={name(code)}" for code in codes.tolist()]


class ExplicitVocabulary:
    """Names of features with ids 0, 1, ..."""

    def __init__(self, names: Sequence[str] = ()) -> None:
        self.listed = list(names)
        self._ids = {name: i for i, name in enumerate(self.listed)}

    def __len__(self) -> int:
        return len(self.listed)

    def find(self, names: Sequence[str]) -> np.ndarray:
        """Return the ids (n,) int32 of names, NO_FEATURE for unknown ones."""
        return np.array([self._ids.get(name, NO_FEATURE) for name in names], np.int32)

    def count(self, counts: Mapping[str, int], cutoff: int) -> "ExplicitVocabulary":
        """Return the names that occur at least `cutoff` times, given numbers of occurrences."""
        return ExplicitVocabulary([name for name, number in counts.items() if number >= cutoff])

    def names(self, rows: np.ndarray) -> list[str]:
        """Return the names with these ids (n,)."""
        return [self.listed[row] for row in rows.tolist()]

    def subset(self, keep: np.ndarray) -> "ExplicitVocabulary":
        """Return the names for which keep (F,) bool is true, renumbered in the same order."""
        return ExplicitVocabulary([name for name, kept in zip(self.listed, keep.tolist(), strict=True) if kept])

    def merge(self, other: "ExplicitVocabulary") -> tuple["ExplicitVocabulary", np.ndarray]:
        """Return the names of both, and the ids (F,) int64 in it of the names of this one."""
        merged = ExplicitVocabulary([*self.listed, *(name for name in other.listed if name not in self._ids)])
        return merged, np.arange(len(self))

    def summary(self) -> str:
        """Return an empty string: no names share an id."""
        return ""

    def arrays(self) -> dict[str, np.ndarray]:
        """Return an empty mapping: the state is `listed`."""
        return {}

    def strings(self) -> dict[str, Any]:
        """Return an empty mapping: the state is `listed`."""
        return {}

    def restore(
        self, listed: list[str], strings: Mapping[str, Any], arrays: StateArrays, place: str
    ) -> "ExplicitVocabulary":
        """Return the vocabulary of saved names. Raises InputError for a repeated one."""
        if len(set(listed)) < len(listed):
            raise InputError(f"{place}.names: a name is repeated")
        return ExplicitVocabulary(listed)


def _vocabulary(name: str, reading: Attributes, cutoff: int, max_offset: int) -> ValueCodes:
    values, numbers = reading.values[name], reading.numbers[reading.columns[name]]
    counts = np.bincount(numbers, minlength=2 * max_offset + len(values))[2 * max_offset :]
    return ValueCodes.frequent(values, counts, cutoff, max_offset)


def _frequent(view: View, cutoff: int, job: tuple[Template, tuple[int, ...]]) -> np.ndarray:
    """Return the keys that are features of a view, for a template and the number of codes of its parts."""
    template, sizes = job
    return frequent_keys((template_keys(chunk, template, sizes) for chunk in view.chunks()), sizes, cutoff)
