"""Conjunctions of values as integers: the mixed-radix number of the codes of a template's parts."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import prod

import numpy as np

from structperc.errors import InputError
from structperc.features.key_counts import KeyCounts
from structperc.features.templates import Template, template_name
from structperc.features.value_codes import ABSENT, UNSEEN, ValueCodes
from structperc.features.windows import View

NO_FEATURE = -1
TABLE = 1 << 18  # key spaces up to this size are counted and looked up in a table, larger ones by sorting


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


def frequent_keys(pieces: Iterable[np.ndarray], sizes: Sequence[int], cutoff: int) -> np.ndarray:
    """Return the sorted keys that are features: met `cutoff` times, no part unseen, not all parts absent.

    The keys (n,) int64 of a corpus come in pieces, and are counted exactly, in memory for a piece and for the different
    keys of all.
    """
    if prod(sizes) <= TABLE:
        table = np.zeros(prod(sizes), np.int64)
        for keys in pieces:
            table += np.bincount(keys, minlength=len(table))
        found = np.flatnonzero(table >= cutoff)
    else:
        counted = KeyCounts()
        for keys in pieces:
            counted.add(keys)
        distinct, counts = counted.total()
        found = distinct[counts >= cutoff]
    codes = split_keys(found, sizes)
    absent = (codes == ABSENT).all(0) if len(sizes) else False  # the bias has no part and is always there
    return found[~((codes == UNSEEN).any(0) | absent)]


def key_lookup(keys: np.ndarray, first: int, sizes: Sequence[int]) -> Callable[[np.ndarray], np.ndarray]:
    """Return the function from keys (n,) to ids (n,) int32: first + rank in `keys`, NO_FEATURE for others."""
    ids = np.arange(first, first + len(keys), dtype=np.int32)
    if prod(sizes) <= TABLE:
        table = np.full(prod(sizes), NO_FEATURE, np.int32)
        table[keys] = ids
        return lambda queries: table[queries]
    known, ids = np.append(keys, -1), np.append(ids, np.int32(NO_FEATURE))  # ranks past the end must point at something

    def search(queries: np.ndarray) -> np.ndarray:
        rank = np.searchsorted(keys, queries)
        return np.where(known[rank] == queries, ids[rank], np.int32(NO_FEATURE))

    return search
