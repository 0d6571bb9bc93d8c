"""Where the keys of templates are found at once: tables with open addressing, compiled."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from structperc.features.keys import NO_FEATURE
from structperc.kernels.jit import kernel, subkernel_no_alloc

FREE = -1  # no key
GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # 2**64 / the golden ratio: multiplied by it, neighbours are far apart (Knuth)


class KeyTable(NamedTuple):
    """The ids of the keys of J templates, a table of its own for each: slots first[j] to first[j] + 2**bits[j]."""

    keys: np.ndarray  # (slots,) int64, FREE where there is none
    ids: np.ndarray  # (slots,) int32
    first: np.ndarray  # (J,) int64
    bits: np.ndarray  # (J,) int64


def key_table(keys: Sequence[np.ndarray], first_ids: Sequence[int]) -> KeyTable:
    """Return the table of keys (int64, >= 0, none twice) of each template, which have the ids from first_ids[j] on."""
    bits = np.array([max(1, (2 * len(own) - 1).bit_length()) for own in keys], np.int64)  # at most half of it is full
    first = np.cumsum(2**bits) - 2**bits
    slots = int((2**bits).sum())
    table = KeyTable(np.full(slots, FREE, np.int64), np.full(slots, NO_FEATURE, np.int32), first, bits)
    for j, (own, ids) in enumerate(zip(keys, first_ids, strict=True)):
        _fill(own, ids, j, table)
    return table


@subkernel_no_alloc
def find(key, j, table):  # type: ignore[no-untyped-def]
    """Return the id of a key of template j, NO_FEATURE where it is none."""
    return table.ids[_slot(key, j, table)]


@kernel
def _fill(keys, first_id, j, table):  # type: ignore[no-untyped-def]
    for rank in range(len(keys)):
        slot = _slot(keys[rank], j, table)
        table.keys[slot], table.ids[slot] = keys[rank], first_id + rank


@subkernel_no_alloc
def _slot(key, j, table):  # type: ignore[no-untyped-def]
    """Return the slot where a key is, or else the free one where it would be."""
    bits, first = table.bits[j], table.first[j]
    slot = np.int64((np.uint64(key) * GOLDEN) >> np.uint64(64 - bits))
    while table.keys[first + slot] != key and table.keys[first + slot] != FREE:
        slot = (slot + 1) & ((1 << bits) - 1)
    return first + slot
