"""The weights that a process has moved, listed, and their means over the processes that have moved them, compiled."""

import numpy as np

from structperc.kernels.compiled import inner_kernel, kernel


def entry_type(weights, number):  # type: ignore[no-untyped-def]
    """Return the type of the entry of a moved weight, of a number of weights of this type: 16 bytes of most."""
    places = np.uint32 if number <= 2**32 else np.uint64
    return np.dtype([("place", places), ("weight", weights), ("sum", np.float64)])


def listed(tables, kind):  # type: ignore[no-untyped-def]
    """Return an entry (n,) of this kind for each weight that is marked, in their order.

    It has the place of the weight, its value, and its sum, 0 where there are no sums. tables: of each parameter
    marks (N,) uint8, place of its first weight, weights (N,) and sums (N,) or (0,).
    """
    counts = [int(np.count_nonzero(moved.view(np.bool_))) for moved, *_ in tables]
    entries, places, done = np.empty(sum(counts), kind), np.empty(max(counts), np.int64), 0
    for count, (moved, start, weights, sums) in zip(counts, tables, strict=True):
        _find(moved, places)
        _fill(places, start, weights, sums, entries[done : done + count])
        done += count
    return entries


@kernel
def _find(moved, places):  # type: ignore[no-untyped-def]
    """Write the places that are marked, eight marks looked at together."""
    eights, found = moved[: len(moved) // 8 * 8].view(np.uint64), 0
    for i in range(len(eights)):
        if eights[i]:
            found = _list(moved, 8 * i, 8 * i + 8, places, found)
    _list(moved, 8 * len(eights), len(moved), places, found)


@inner_kernel
def _list(moved, first, last, places, found):  # type: ignore[no-untyped-def]
    """Write those of first, ..., last - 1 that are marked after those found before; return how many there are then."""
    for place in range(first, last):
        if moved[place]:
            places[found] = place
            found += 1
    return found


@kernel
def _fill(places, start, weights, sums, entries):  # type: ignore[no-untyped-def]
    """Write the entries of places: many reads of memory under way at once, as none depends on another one."""
    for i in range(len(entries)):
        entry, place = entries[i], places[i]
        entry.place, entry.weight, entry.sum = start + place, weights[place], sums[place] if len(sums) else 0.0


@kernel
def mix(entries, heads, ends, own, moved, start, weights, sums):  # type: ignore[no-untyped-def]
    """Write the mean of a weight over its entries, one for each process that has moved it, and that of its sum.

    entries: as `listed`, of all processes, one after the other; heads (P,): where those of each process begin that are
    not mixed yet, and which are moved on to what belongs to the next parameter; ends (P,): where they end. own: the
    number of this process, which has what it alone has moved; its marks in moved (N,) are taken back.
    """
    while True:
        place = len(weights)
        for p in range(len(heads)):
            if heads[p] < ends[p]:
                place = min(place, np.int64(entries[heads[p]].place) - start)
        if place == len(weights):
            return
        movers, weight, total, mine = 0, 0.0, 0.0, False
        for p in range(len(heads)):
            if heads[p] < ends[p] and np.int64(entries[heads[p]].place) - start == place:
                weight, total = weight + entries[heads[p]].weight, total + entries[heads[p]].sum
                movers, mine = movers + 1, mine or p == own
                heads[p] += 1
        if mine:
            moved[place] = 0
        if movers > 1 or not mine:
            weights[place] = weight / movers
            if len(sums):
                sums[place] = total / movers
