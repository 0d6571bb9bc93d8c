"""By which features two labellings of a sequence differ, compiled: the only weights that an update touches."""

import numpy as np

from structperc.kernels.compiled import inner_kernel, kernel, kernel_part

FREE = -1


@kernel_part
def no_room():  # type: ignore[no-untyped-def]
    """Return the room to collect changes in, without room yet: slots (2C,), of which C may have keys (C,), counts (C,).

    With open addresses the slots have numbers of keys, or are FREE.
    """
    return np.empty(0, np.int32), np.empty(0, np.int64), np.empty(0)


@kernel
def collect(start, stop, gold, rival, features, sizes, room):  # type: ignore[no-untyped-def]
    """Return Phi(gold) - Phi(rival) as keys (n,) int64, each once, and counts (n,) float64, with the room they are in.

    gold and rival are (T,), labels of the tokens start, ..., stop - 1. A key is the place of a weight in the node
    table, or sizes[0] + its place in the edge table, or sizes[0] + sizes[1] + its place in the transitions; sizes[2]
    says whether there are any, sizes[3] is L. Keys are in the order in which they are met, so that those of a row are
    neighbours. The room, as of `no_room`, is made larger where it is too small.
    """
    L = sizes[3]
    needed, size = 2 * _entries(start, stop, gold, rival, features), 64
    while size < 2 * needed:
        size *= 2
    if size > len(room[0]):
        room = np.empty(size, np.int32), np.empty(size // 2, np.int64), np.empty(size // 2)
    slots, keys, counts = room
    slots = slots[:size]
    slots[:] = FREE
    n = 0
    for t in range(stop - start):
        token, g, r = start + t, gold[t], rival[t]
        if g != r:
            for place in range(features.node_ends[token], features.node_ends[token + 1]):
                row, much = np.int64(features.node_ids[place]) * L, _weight(features.node_weights, place)
                n = _count(row + g, much, slots, keys, counts, n)
                n = _count(row + r, -much, slots, keys, counts, n)
        if t == 0 or (g == r and gold[t - 1] == rival[t - 1]):
            continue
        g, r = gold[t - 1] * L + g, rival[t - 1] * L + r
        if sizes[1]:
            for place in range(features.edge_ends[token], features.edge_ends[token + 1]):
                row, much = sizes[0] + np.int64(features.edge_ids[place]) * L * L, _weight(features.edge_weights, place)
                n = _count(row + g, much, slots, keys, counts, n)
                n = _count(row + r, -much, slots, keys, counts, n)
        if sizes[2]:
            n = _count(sizes[0] + sizes[1] + g, 1.0, slots, keys, counts, n)
            n = _count(sizes[0] + sizes[1] + r, -1.0, slots, keys, counts, n)
    return keys[:n], counts[:n], room


@inner_kernel
def _weight(weights, place):  # type: ignore[no-untyped-def]
    """Return how much the feature at a place counts."""
    return np.float64(weights[place]) if len(weights) else 1.0


@inner_kernel
def _entries(start, stop, gold, rival, features):  # type: ignore[no-untyped-def]
    """Return how often at most one of two labellings has a feature at a place where they differ."""
    total = 0
    for t in range(stop - start):
        token = start + t
        if gold[t] != rival[t]:
            total += features.node_ends[token + 1] - features.node_ends[token]
        if t and (gold[t] != rival[t] or gold[t - 1] != rival[t - 1]):
            total += features.edge_ends[token + 1] - features.edge_ends[token] + 1
    return total


@inner_kernel
def _count(key, change, slots, keys, counts, n):  # type: ignore[no-untyped-def]
    """Add a change to the count of a key, which comes after the n keys there are if it is new; return how many then."""
    mask = len(slots) - 1
    slot = ((key * 0x9E3779B97F4A7C1) >> 20) & mask
    while slots[slot] != FREE and keys[slots[slot]] != key:
        slot = (slot + 1) & mask
    if slots[slot] == FREE:
        slots[slot], keys[n], counts[n] = n, key, change
        return n + 1
    counts[slots[slot]] += change
    return n


@inner_kernel
def squared_norm(counts):  # type: ignore[no-untyped-def]
    """Return the sum of the squares of all changes."""
    total = 0.0
    for i in range(len(counts)):
        total += counts[i] * counts[i]
    return total


@inner_kernel
def apply(keys, counts, scale, step, sizes, weights, sums, moved):  # type: ignore[no-untyped-def]
    """Add scale times the changes to the weights, and `step` times as much to the sums of averages that are kept.

    Where it is asked for, the weights are marked as moved.
    """
    _add(keys, counts, scale, sizes, weights)
    if len(sums.node):
        _add(keys, counts, scale * step, sizes, sums)
    if len(moved.node):
        _mark(keys, counts, sizes, moved)


@inner_kernel
def _add(keys, counts, scale, sizes, tables):  # type: ignore[no-untyped-def]
    """Add scale times the changes to the tables."""
    node, edge, transition = tables.node.reshape(-1), tables.edge.reshape(-1), tables.transition.reshape(-1)
    for i in range(len(keys)):
        key = keys[i]
        if counts[i] == 0.0:
            continue
        if key < sizes[0]:
            node[key] += scale * counts[i]
        elif key < sizes[0] + sizes[1]:
            edge[key - sizes[0]] += scale * counts[i]
        else:
            transition[key - sizes[0] - sizes[1]] += scale * counts[i]


@inner_kernel
def _mark(keys, counts, sizes, moved):  # type: ignore[no-untyped-def]
    """Write 1 into the tables wherever there is a change."""
    node, edge, transition = moved.node.reshape(-1), moved.edge.reshape(-1), moved.transition.reshape(-1)
    for i in range(len(keys)):
        key = keys[i]
        if counts[i] == 0.0:
            continue
        if key < sizes[0]:
            node[key] = 1
        elif key < sizes[0] + sizes[1]:
            edge[key - sizes[0]] = 1
        else:
            transition[key - sizes[0] - sizes[1]] = 1
