"""Compiled parameter averaging: entries of the weights that a process has moved, and their means over processes."""

import numpy as np

from structperc.kernels.jit import kernel, subkernel_no_alloc

NONE = np.iinfo(np.int64).max  # comes after all places


def moved_entries(tables):
    """Return an entry for each marked weight, in their order: its place, its value, and its sum (0 without sums).

    tables: of each parameter marks (N,) uint8, place of its first weight, weights (N,), sums (N,) or (0,).
    """
    entries = np.empty(sum(np.count_nonzero(marks) for marks, *_ in tables), _entry_type(tables))
    begin = 0
    for marks, start, weights, sums in tables:
        places = marks.view(np.bool_).nonzero()[0]
        own = entries[begin : begin + len(places)]
        own["place"], own["weight"], own["sum"] = start + places, weights[places], sums[places] if len(sums) else 0.0
        begin += len(places)
    return entries


def _entry_type(tables):
    """Return the dtype of an entry, at most 24 bytes."""
    places = np.uint32 if sum(len(marks) for marks, *_ in tables) <= 2**32 else np.uint64
    weights = np.result_type(*(weights for _, _, weights, _ in tables))
    return np.dtype([("place", places), ("weight", weights), ("sum", np.float64)])


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
