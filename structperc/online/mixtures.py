"""The weights that a process has moved, listed, and their means over the processes that have moved them, compiled."""

import numpy as np

from structperc.kernels.compiled import inner_kernel, kernel

BEGUN = 128  # added to the number of movers of a weight when the first of them is in its mean


def entry_type(weights, number):  # type: ignore[no-untyped-def]
    """Return the type of the entry of a moved weight, of a number of weights of this type: 16 bytes of most."""
    places = np.uint32 if number <= 2**32 else np.uint64
    return np.dtype([("place", places), ("weight", weights), ("sum", np.float64)])


def listed(moved, start, weights, sums, kind):  # type: ignore[no-untyped-def]
    """Return an entry (n,) of this kind for each weight that is marked in moved (N,) uint8, in their order.

    It has the place of the weight, from start on, its value, and its sum, 0 where there are no sums. weights, sums:
    (N,), or no sums.
    """
    entries = np.zeros(np.count_nonzero(moved.view(np.bool_)), kind)
    _fill(moved, start, weights, sums, entries)
    return entries


@kernel
def _fill(moved, start, weights, sums, entries):  # type: ignore[no-untyped-def]
    eights, found = moved[: len(moved) // 8 * 8].view(np.uint64), 0
    for i in range(len(eights)):
        if eights[i]:
            found = _list(moved, 8 * i, 8 * i + 8, start, weights, sums, entries, found)
    _list(moved, 8 * len(eights), len(moved), start, weights, sums, entries, found)


@inner_kernel
def _list(moved, first, last, start, weights, sums, entries, found):  # type: ignore[no-untyped-def]
    """Write the entries of the places first, ..., last - 1 after those found before; return how many there are then."""
    for place in range(first, last):
        if moved[place]:
            entry = entries[found]
            entry.place, entry.weight = start + place, weights[place]
            if len(sums):
                entry.sum = sums[place]
            found += 1
    return found


@kernel
def mix(entries, movers, start, weights, sums):  # type: ignore[no-untyped-def]
    """Write the mean of a weight over its entries, one for each process that has moved it, and that of its sum.

    entries: as `listed`, of all processes, one after the other in the same order everywhere; those of places from start
    on, as many as there are weights, are taken. movers: (N,) uint8, zeros but for marks of entries; zeros are left.
    """
    _clear(entries, start, movers)
    for i in range(len(entries)):
        place = np.int64(entries[i].place) - start
        if 0 <= place < len(weights):
            movers[place] += 1
    for i in range(len(entries)):
        place = np.int64(entries[i].place) - start
        if not 0 <= place < len(weights):
            continue
        begun = movers[place] >= BEGUN
        count = movers[place] - BEGUN if begun else movers[place]
        weights[place] = np.float64(entries[i].weight) / count + (weights[place] if begun else 0.0)
        if len(sums):
            sums[place] = entries[i].sum / count + (sums[place] if begun else 0.0)
        movers[place] = count + BEGUN
    _clear(entries, start, movers)


@inner_kernel
def _clear(entries, start, movers):  # type: ignore[no-untyped-def]
    """Write zeros where there are entries: the whole of a large table would take longer."""
    for i in range(len(entries)):
        place = np.int64(entries[i].place) - start
        if 0 <= place < len(movers):
            movers[place] = 0
