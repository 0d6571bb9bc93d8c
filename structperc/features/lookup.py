"""Compiled lookup of the feature ids at each token of a corpus: all templates in one pass.

The id of a conjunction of values comes from a hash table of keys (`ExactLookup`) or from its bucket (`HashedLookup`).
Both classes have three members: `code` is the data type of the codes of values, `table` returns the arrays that the
compiled loop reads, and `ids` returns the ids of the values of a template of one part.
"""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from structperc.features import hashing
from structperc.features.hashing import NO_KEY, Buckets, template_seed
from structperc.features.string_arrays import NO_FEATURE, IdLists, View
from structperc.features.templates import Template, TemplatePart
from structperc.kernels.jit import kernel, subkernel_no_alloc
from structperc.progress import bar


class Places(NamedTuple):
    """P positions (column, offset), and the start of each one's entries in an array with an entry for each string."""

    column: np.ndarray  # (P,) int64, row of `Strings.numbers`
    offset: np.ndarray  # (P,) int64, distance from the token
    first: np.ndarray  # (P,) int64


class SingleTemplates(NamedTuple):
    """Templates of one part: each string has a list of ids."""

    places: Places
    ids: np.ndarray  # (M,) int32
    ends: np.ndarray  # (lists + 1,) int64, list i is ids[ends[i]:ends[i + 1]]


class JoinedTemplates(NamedTuple):
    """J templates of several parts: each string has a code, and the codes of the parts make a key."""

    places: Places  # template j has the positions ends[j]:ends[j + 1]
    ends: np.ndarray  # (J + 1,) int64
    codes: np.ndarray  # (strings of all positions,)
    table: Any  # hash table of keys, a NamedTuple of arrays


@cache
def gathering(kernel_function: Callable[..., int]) -> Any:
    """Return the compiled loop that gathers ids.

    kernel_function(t, s, n, strings, joined, ids), an inner kernel, writes the ids of the joined templates at token t
    of sequence s to ids[n:] and returns their end.
    """

    @kernel
    def gather(first, stop, s, n, strings, single, joined, ids, ends):
        """Write the ids of the tokens first, ..., stop - 1 to ids[n:] and their ends to ends[t + 1]; return the last.

        The first token is in sequence s. ids must have a position for each template at each token.
        """
        for t in range(first, stop):
            while t >= strings.starts[s + 1]:
                s += 1
            for p in range(len(single.places.first)):
                row = entry(t, s, p, strings, single.places)
                for i in range(single.ends[row], single.ends[row + 1]):
                    ids[n] = single.ids[i]
                    n += 1
            n = kernel_function(t, s, n, strings, joined, ids)
            ends[t + 1] = n
        return n

    return gather


@subkernel_no_alloc
def entry(t, s, p, strings, places):
    """Return the entry of the string at position p relative to token t of sequence s."""
    at, start, stop = t + places.offset[p], strings.starts[s], strings.starts[s + 1]
    if at < start:
        number = start - at - 1
    elif at >= stop:
        number = strings.max_offset + at - stop
    else:
        number = np.int64(strings.numbers[places.column[p], at])
    return places.first[p] + number


FREE = -1  # no key
GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # 2**64 / the golden ratio: multiplied by it, neighbours are far apart (Knuth)


class KeyTable(NamedTuple):
    """Ids of the keys of J templates in J hash tables: slots first[j] to first[j] + 2**bits[j]."""

    keys: np.ndarray  # (slots,) int64, or FREE
    ids: np.ndarray  # (slots,) int32
    first: np.ndarray  # (J,) int64
    bits: np.ndarray  # (J,) int64


def key_table(keys: Sequence[np.ndarray], first_ids: Sequence[int]) -> KeyTable:
    """Return the table of the different keys (int64, >= 0) of each template, with the ids from first_ids[j] on."""
    bits = np.array([max(1, (2 * len(part) - 1).bit_length()) for part in keys], np.int64)  # at most half full
    first = np.cumsum(2**bits) - 2**bits
    slots = int((2**bits).sum())
    table = KeyTable(np.full(slots, FREE, np.int64), np.full(slots, NO_FEATURE, np.int32), first, bits)
    for j, (part, ids) in enumerate(zip(keys, first_ids, strict=True)):
        _fill(part, ids, j, table)
    return table


@kernel
def _fill(keys, first_id, j, table):
    for rank in range(len(keys)):
        slot = _slot(keys[rank], j, table)
        table.keys[slot], table.ids[slot] = keys[rank], first_id + rank


@subkernel_no_alloc
def _slot(key, j, table):
    """Return the slot of a key, or the free slot for an unknown one."""
    bits, first = table.bits[j], table.first[j]
    slot = np.int64((np.uint64(key) * GOLDEN) >> np.uint64(64 - bits))
    while table.keys[first + slot] != key and table.keys[first + slot] != FREE:
        slot = (slot + 1) & ((1 << bits) - 1)
    return first + slot


class RankTable(NamedTuple):
    """Numbers of codes of the parts of templates, and their keys."""

    sizes: np.ndarray  # (P,) int64, number of codes
    keys: KeyTable


class ExactLookup:
    """Lookup of exact ids: the ranks of keys among those of all templates.

    Args:
        sizes: the number of codes of each part of each template.
        keys: for each template the sorted keys (int64) that are features.
    """

    code = np.int64

    def __init__(self, sizes: Sequence[Sequence[int]], keys: Sequence[np.ndarray]) -> None:
        self._sizes, self._keys = sizes, keys
        self._first = np.cumsum([0, *map(len, keys)]).tolist()

    def table(self, numbers: Sequence[int]) -> RankTable:
        """Return the arrays for these templates."""
        sizes = np.array([size for j in numbers for size in self._sizes[j]], np.int64)
        return RankTable(sizes, key_table([self._keys[j] for j in numbers], [self._first[j] for j in numbers]))

    def ids(self, number: int, codes: np.ndarray) -> np.ndarray:
        """Return the ids (n,) int32 of values with these codes (n,) int64."""
        keys, first, (size,) = self._keys[number], self._first[number], self._sizes[number]
        ids = np.full(size, NO_FEATURE, np.int32)
        ids[keys] = np.arange(first, first + len(keys), dtype=np.int32)  # the key of one code is the code
        return ids[codes]


@subkernel_no_alloc
def _look_up_exact(t, s, n, strings, joined, ids):
    """Write the ids of the templates at token t of sequence s to ids[n:]; return their end."""
    for j in range(len(joined.ends) - 1):
        key = np.int64(0)
        for p in range(joined.ends[j], joined.ends[j + 1]):
            key = key * joined.table.sizes[p] + joined.codes[entry(t, s, p, strings, joined.places)]
        found = joined.table.keys.ids[_slot(key, j, joined.table.keys)]
        if found != NO_FEATURE:
            ids[n] = found
            n += 1
    return n


mixed = subkernel_no_alloc(hashing.mixed)


class BucketTable(NamedTuple):
    """Initial values of the keys of templates, and the ids of all buckets."""

    seeds: np.ndarray  # (J,) uint64
    ids: np.ndarray  # (2**bits,) int32


class HashedLookup:
    """Lookup of hashed ids: the ids of the buckets of keys of all templates."""

    code = np.uint64

    def __init__(self, templates: Sequence[Template], buckets: Buckets) -> None:
        self._seeds = np.array([template_seed(template) for template in templates], np.uint64)
        self._buckets = buckets

    def table(self, numbers: Sequence[int]) -> BucketTable:
        """Return the seeds of these templates, and the ids of all buckets."""
        return BucketTable(self._seeds[list(numbers)], self._buckets.ids)

    def ids(self, number: int, codes: np.ndarray) -> np.ndarray:
        """Return the ids (n,) int32 of values with these codes (n,) uint64."""
        keys = hashing.mixed(self._seeds[number] ^ codes)
        return self._buckets.find(np.where(codes == NO_KEY, np.uint64(NO_KEY), keys))


@subkernel_no_alloc
def _look_up_hashed(t, s, n, strings, joined, ids):
    """Write the ids of the templates at token t of sequence s to ids[n:]; return their end. See `hashed_keys`."""
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


LOOKUP_CHUNK = 4096  # tokens between two updates of the progress bar


class TemplateLookup:
    """Feature ids at the tokens of a view.

    For templates of one part each string at a position has a list of ids; conjunctions have keys.

    Args:
        templates: templates of the features.
        finder: lookup of the ids of the keys.
    """

    def __init__(self, templates: Sequence[Template], finder: "ExactLookup | HashedLookup") -> None:
        self._templates, self._finder = templates, finder
        self._joined = [number for number, template in enumerate(templates) if len(template) != 1]
        self._table = finder.table(self._joined)

    def encode(self, view: View, progress: bool) -> IdLists:
        """Return the ids of the features at each token."""
        strings, single, joined = view.strings, self._single_templates(view), self._joined_templates(view)
        gather = gathering(_look_up_exact if isinstance(self._finder, ExactLookup) else _look_up_hashed)
        ids = np.empty(len(self._templates) * view.tokens, np.int32)  # takes memory where it is written
        ends, end = np.zeros(view.tokens + 1, np.int64), 0
        with bar(None, "encoding features", view.tokens, progress) as shown:
            for first in range(0, view.tokens, LOOKUP_CHUNK):
                stop = min(first + LOOKUP_CHUNK, view.tokens)
                sequence = int(np.searchsorted(strings.starts, first, side="right")) - 1
                end = gather(first, stop, sequence, end, strings, single, joined, ids, ends)
                shown.update(stop - first)
        ids.resize(end, refcheck=False)  # without a copy
        return IdLists(ids, ends)

    def _single_templates(self, view: View) -> SingleTemplates:
        """Return the templates of one part; templates at the same position share a list for each string."""
        groups: dict[tuple[str, int], list[int]] = {}
        for number, template in enumerate(self._templates):
            if len(template) == 1:
                groups.setdefault((view.columns[template[0].attribute], template[0].offset), []).append(number)
        parts = [self._templates[group[0]][0] for group in groups.values()]
        tables = [
            np.stack([self._finder.ids(j, view.codes[self._templates[j][0].attribute]) for j in group], 1)
            for group in groups.values()
        ]
        present = [table != NO_FEATURE for table in tables]
        ids = [np.empty(0, np.int32), *(table[mask] for table, mask in zip(tables, present, strict=True))]
        counts = [np.zeros(1, np.int64), *(np.count_nonzero(mask, 1) for mask in present)]
        return SingleTemplates(
            _places(view, parts, list(map(len, tables))), np.concatenate(ids), np.concatenate(counts).cumsum()
        )

    def _joined_templates(self, view: View) -> JoinedTemplates:
        """Return the templates of several parts, and the bias, which has none."""
        parts = [part for number in self._joined for part in self._templates[number]]
        codes = [view.codes[part.attribute] for part in parts]
        return JoinedTemplates(
            _places(view, parts, list(map(len, codes))),
            np.cumsum([0, *(len(self._templates[number]) for number in self._joined)]),
            np.concatenate([np.empty(0, self._finder.code), *codes]),
            self._table,
        )


def _places(view: View, parts: Sequence[TemplatePart], entries: Sequence[int]) -> Places:
    """Return the positions of the parts of templates, each with a number of entries."""
    column = np.array([view.row(part.attribute) for part in parts], np.int64)
    offset = np.array([part.offset for part in parts], np.int64)
    return Places(column, offset, np.cumsum([0, *entries], dtype=np.int64)[:-1])
