"""By which features two labellings of a sequence differ, compiled: the only weights that an update touches."""

import numpy as np

from structperc.ops.cpu.compiled import inner_kernel, kernel

EMPTY = -1


@kernel
def collect(start, stop, gold, rival, features, sizes, room):  # type: ignore[no-untyped-def]
    """Fill a table (keys, counts) with Phi(gold) - Phi(rival) and return it, with the room it is in.

    gold and rival are (T,), labels of the tokens start, ..., stop - 1. A key is the place of a weight in the node
    table, or sizes[0] + its place in the edge table, or sizes[0] + sizes[1] + its place in the transitions; sizes[2]
    says whether there are any, sizes[3] is L. The table (C,) int64 and (C,) float64 has open addresses; a free one has
    the key EMPTY. The room, such a pair, is made larger where it is too small.
    """
    L = sizes[3]
    needed, size = 2 * _entries(start, stop, gold, rival, features), 64
    while size < 2 * needed:
        size *= 2
    if size > len(room[0]):
        room = np.empty(size, np.int64), np.empty(size)
    keys, counts = room[0][:size], room[1][:size]
    keys[:] = EMPTY
    for t in range(stop - start):
        token, g, r = start + t, gold[t], rival[t]
        if g != r:
            for place in range(features.node_ends[token], features.node_ends[token + 1]):
                row = np.int64(features.node_ids[place]) * L
                _count(row + g, 1.0, keys, counts)
                _count(row + r, -1.0, keys, counts)
        if t == 0 or (g == r and gold[t - 1] == rival[t - 1]):
            continue
        g, r = gold[t - 1] * L + g, rival[t - 1] * L + r
        if sizes[1]:
            for place in range(features.edge_ends[token], features.edge_ends[token + 1]):
                row = sizes[0] + np.int64(features.edge_ids[place]) * L * L
                _count(row + g, 1.0, keys, counts)
                _count(row + r, -1.0, keys, counts)
        if sizes[2]:
            _count(sizes[0] + sizes[1] + g, 1.0, keys, counts)
            _count(sizes[0] + sizes[1] + r, -1.0, keys, counts)
    return keys, counts, room


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
def _count(key, change, keys, counts):  # type: ignore[no-untyped-def]
    mask = len(keys) - 1
    place = ((key * 0x9E3779B97F4A7C1) >> 20) & mask
    while keys[place] != key and keys[place] != EMPTY:
        place = (place + 1) & mask
    if keys[place] == EMPTY:
        keys[place], counts[place] = key, 0.0
    counts[place] += change


@inner_kernel
def squared_norm(keys, counts):  # type: ignore[no-untyped-def]
    """Return the sum of the squares of all changes in the table."""
    total = 0.0
    for place in range(len(keys)):
        if keys[place] != EMPTY:
            total += counts[place] * counts[place]
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
    for place in range(len(keys)):
        key = keys[place]
        if key == EMPTY or counts[place] == 0.0:
            continue
        if key < sizes[0]:
            node[key] += scale * counts[place]
        elif key < sizes[0] + sizes[1]:
            edge[key - sizes[0]] += scale * counts[place]
        else:
            transition[key - sizes[0] - sizes[1]] += scale * counts[place]


@inner_kernel
def _mark(keys, counts, sizes, moved):  # type: ignore[no-untyped-def]
    """Write 1 into the tables wherever there is a change."""
    node, edge, transition = moved.node.reshape(-1), moved.edge.reshape(-1), moved.transition.reshape(-1)
    for place in range(len(keys)):
        key = keys[place]
        if key == EMPTY or counts[place] == 0.0:
            continue
        if key < sizes[0]:
            node[key] = 1
        elif key < sizes[0] + sizes[1]:
            edge[key - sizes[0]] = 1
        else:
            transition[key - sizes[0] - sizes[1]] = 1
