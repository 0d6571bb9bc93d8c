"""Compiled parameter averaging: entries of the weights that a process has moved, and their means over processes."""

import numpy as np

from structperc.kernels.jit import kernel, subkernel_no_alloc

BLOCK = 1024  # marks
NONE = np.iinfo(np.int64).max  # comes after all places


def moved_entries(tables):
    """Return an entry for each marked weight, in their order: its place, its value, and its sum (0 without sums).

    tables: of each parameter marks (N,) uint8, place of its first weight, weights (N,), sums (N,) or (0,).
    """
    entries = np.empty(sum(np.count_nonzero(marks) for marks, *_ in tables), _entry_type(tables))
    begin = 0
    for table in tables:
        begin = _write(*table, entries, begin)
    return entries


def _entry_type(tables):
    """Return the dtype of an entry, at most 24 bytes."""
    places = np.uint32 if sum(len(marks) for marks, *_ in tables) <= 2**32 else np.uint64
    weights = np.result_type(*(weights for _, _, weights, _ in tables))
    return np.dtype([("place", places), ("weight", weights), ("sum", np.float64)])


@kernel
def _write(moved, start, weights, sums, entries, begin):
    """Write the entries of one parameter from entries[begin] on; return where they end.

    Two loops, so that the scattered reads of the second overlap. Marks are looked at eight at a time.
    """
    places, eights = np.empty(BLOCK, np.int64), moved[: len(moved) // 8 * 8].view(np.uint64)
    for first in range(0, len(moved), BLOCK):
        n = _marked(moved, eights, first, min(first + BLOCK, len(moved)), places)
        for i in range(n):
            entry, place = entries[begin + i], places[i]
            entry.place, entry.weight, entry.sum = start + place, weights[place], sums[place] if len(sums) else 0.0
        begin += n
    return begin


@subkernel_no_alloc
def _marked(moved, eights, first, last, places):
    """Write the marked indices among first <= i < last in order; return their number. first is a multiple of 8."""
    found = 0
    for eight in range(first // 8, last // 8):
        if eights[eight]:
            for i in range(8 * eight, 8 * eight + 8):
                places[found] = i
                found += moved[i]
    for i in range(last // 8 * 8, last):
        places[found] = i
        found += moved[i]
    return found


@kernel
def average_entries(entries, heads, ends, own, moved, start, weights, sums):
    """Write the mean of each weight, and of its sum, over the processes that have moved it.

    entries: concatenated `moved_entries` of all P processes. heads (P,): index of the first entry of each process that
    is not averaged yet, advanced here to the next parameter; ends (P,): index after its last entry. own: rank of this
    process, whose marks in moved (N,) are reset; weights that no other process has moved do not change.
    """
    coming = np.empty_like(heads)
    for p in range(len(heads)):
        coming[p] = _place(entries, heads[p], ends[p])
    while True:
        place = NONE
        for p in range(len(heads)):
            place = min(place, coming[p])
        at = place - start
        if at >= len(weights):
            return
        mine, movers, weight, total = coming[own] == place, 0, 0.0, 0.0
        for p in range(len(heads)):
            if coming[p] == place:
                movers, weight, total = movers + 1, weight + entries[heads[p]].weight, total + entries[heads[p]].sum
                heads[p] += 1
                coming[p] = _place(entries, heads[p], ends[p])
        if mine:
            moved[at] = 0
        if movers > 1 or not mine:
            weights[at] = weight / movers
            if len(sums):
                sums[at] = total / movers


@subkernel_no_alloc
def _place(entries, head, end):
    """Return the index of the weight of a process's next entry, NONE after the last one."""
    return np.int64(entries[head].place) if head < end else NONE
