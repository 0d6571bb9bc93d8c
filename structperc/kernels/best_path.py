"""Viterbi search: best scores from each label on, backwards over the tokens; then the best path, forwards.

The backward pass is shared with the k-best search. `suffix` is the best score of what follows a label, that label
included; each token's scores are reduced by the highest of them, so that long sequences lose no digits.
"""

from typing import NamedTuple

import numpy as np
from numpy import ndarray

from structperc.kernels.jit import subkernel, subkernel_no_alloc
from structperc.kernels.simd import (
    WIDTH,
    bits_not_less,
    broadcast,
    cast_like,
    find_first_equal,
    load,
    load_broadcast,
    load_masked,
    lowest_bit,
    maximum,
    padded_array,
    reduce_max,
    store,
    where_greater,
)

ROWS = 4  # following labels whose maximum is taken before it is compared with the best so far
PRUNED = 3 * WIDTH  # with at least as many labels, rounded up, those that cannot be best are left out
BITS = 64  # of an integer, one for each label


class EdgeBlocks(NamedTuple):
    """An edge (1, L, L) as searches read it; edges of each token have empty arrays.

    W is L rounded up to whole vectors, R to a multiple of ROWS.
    """

    columns: ndarray  # (W / WIDTH, R following, WIDTH), -inf in the padding
    bounds: ndarray  # (2, W) the lowest and the highest score of each column, -inf in the padding


@subkernel_no_alloc
def suffix_scores(unary, edge, into, length, suffix, best):
    """Fill best with the best score of all after each label, and suffix with that plus the label's own score.

    edge is (T or 1, L, L), into its blocks; suffix and best come from `padded_array`.
    """
    last, L, width = length - 1, unary.shape[1], suffix.shape[1]
    few = len(edge) == 1 and width >= PRUNED
    for t in range(last, -1, -1):
        if t < last and len(edge) > 1:
            best_by_rows(edge, t + 1, suffix, t + 1, best, t)
        elif t < last and few:  # not tried again in a sequence where many labels were left
            few = _best_by_bounds(into, suffix, t + 1, best, t)
        level = broadcast(max_level(unary, t, t + 1))
        for i in range(0, width, WIDTH):
            following = broadcast(unary.dtype.type(0))
            if t < last:
                if len(edge) > 1 or few:
                    following = load(best, t * width + i)
                else:
                    following = best_by_columns(into, i // WIDTH, suffix, (t + 1) * width)
            store(best, t * width + i, following)
            store(suffix, t * width + i, (load_masked(unary, t * L + i, L - i) - level) + following)


@subkernel
def edge_blocks(edge, dtype):
    """Return the memory for `fill_edge_blocks` with an edge of this shape."""
    L = edge.shape[1] if len(edge) == 1 else 0
    blocks, rows = -(-L // WIDTH), -(-L // ROWS) * ROWS
    columns = padded_array(blocks, rows * WIDTH, dtype).reshape(blocks, rows, WIDTH)
    return EdgeBlocks(columns, padded_array(np.int64(2), L if blocks * WIDTH >= PRUNED else 0, dtype))


@subkernel_no_alloc
def fill_edge_blocks(edge, blocks):
    """Copy an edge (1, L, L) to its blocks, in their precision; nothing with edges of each token."""
    (columns, bounds), L = blocks, edge.shape[1]
    for i in range(L if len(columns) else 0):
        for j in range(L):
            columns[i // WIDTH, j, i % WIDTH] = edge[0, i, j]
    for j in range(0, bounds.shape[1], WIDTH):
        lowest = highest = cast_like(load_masked(edge, j, L - j), bounds)
        for i in range(1, L):
            row = cast_like(load_masked(edge, i * L + j, L - j), bounds)
            lowest, highest = where_greater(lowest, row, row, lowest), maximum(row, highest)
        store(bounds, j, lowest)
        store(bounds, bounds.shape[1] + j, highest)


@subkernel_no_alloc(forceinline=True)
def max_level(rows, start, stop):
    """Return the highest score of rows (N, L) from start to stop; 0 where all are -inf."""
    L, highest = rows.shape[1], broadcast(rows.dtype.type(-np.inf))
    for r in range(start, stop):
        for i in range(0, L, WIDTH):
            highest = maximum(load_masked(rows, r * L + i, L - i), highest)
    level = reduce_max(highest)
    return level if level > -np.inf else rows.dtype.type(0)


@subkernel_no_alloc
def subtract_levels(scores, length, own):
    """Fill own (T, L or more) with the scores (T, L) less the highest of each token; return the sum of these."""
    total = 0.0
    for t in range(length):
        highest = -np.inf
        for j in range(scores.shape[1]):
            highest = max(highest, np.float64(scores[t, j]))
        level = highest if highest > -np.inf else 0.0
        total += level
        for j in range(scores.shape[1]):
            own[t, j] = scores[t, j] - level
    return total


@subkernel_no_alloc
def any_invalid(scores, start, stop):
    """Return whether any of scores (N,) from index start to stop is +inf or NaN."""
    nothing, infinite = scores.dtype.type(0), scores.dtype.type(np.inf)
    total = broadcast(nothing)
    for place in range(start, stop, WIDTH):  # +inf and NaN stay in the sum
        total += load_masked(scores, place, stop - place)
    if reduce_max(where_greater(infinite, total, nothing, infinite)) == 0.0:
        return False
    found = False
    for place in range(start, stop):  # the sum of finite scores may overflow
        found |= not scores[place] < infinite
    return found


@subkernel_no_alloc
def has_invalid_scores(unary, edge, length, with_edges):
    """Return whether +inf or NaN is among the scores of the tokens of a sequence, or of edges into them.

    unary is (T, L), edge (T or 1, L, L); `with_edges` is False if all scores of edges are known to be valid.
    """
    size, each = edge.shape[1] * edge.shape[2], len(edge) > 1
    if any_invalid(unary.reshape(-1), np.int64(0), length * unary.shape[1]):  # a plain 0 would compile it once more
        return True
    return length > 1 and with_edges and any_invalid(edge.reshape(-1), size * each, size * (length if each else 1))


@subkernel_no_alloc(forceinline=True)
def best_by_rows(edge, t, after, s, best, r):
    """Fill best[r] with the maxima over j of edge[t, i, j] + after[s, j]."""
    L, width = edge.shape[1], after.shape[1]
    for i in range(L):
        row, highest = (t * L + i) * L, broadcast(after.dtype.type(-np.inf))
        for j in range(0, L, WIDTH):
            step = cast_like(load_masked(edge, row + j, L - j), after)
            highest = maximum(step + load(after, s * width + j), highest)
        best[r, i] = reduce_max(highest)


@subkernel_no_alloc(forceinline=True)
def best_by_columns(into, block, after, s):
    """Return the same maxima for a block of labels of `edge_blocks`; after is read from index s on."""
    columns, best = into.columns, broadcast(after.dtype.type(-np.inf))
    rows = columns.shape[1]
    for j in range(0, rows, ROWS):
        a, b, c, d = j, j + 1, j + 2, j + 3
        best = maximum(best, _best_of_four(columns, block * rows, after, s, a, b, c, d))
    return best


@subkernel_no_alloc(forceinline=True)
def _best_of_four(columns, row, after, s, a, b, c, d):
    """Return the maxima over j = a, b, c, d of columns[row + j] + after[s + j]."""
    at_a = load(columns, (row + a) * WIDTH) + load_broadcast(after, s + a)
    at_b = load(columns, (row + b) * WIDTH) + load_broadcast(after, s + b)
    at_c = load(columns, (row + c) * WIDTH) + load_broadcast(after, s + c)
    at_d = load(columns, (row + d) * WIDTH) + load_broadcast(after, s + d)
    return maximum(maximum(at_a, at_b), maximum(at_c, at_d))


@subkernel_no_alloc(forceinline=True)
def _best_by_bounds(into, after, s, best, r):
    """Fill best[r] with the same maxima over the labels j that can be best; return whether these are few.

    Whatever the label before, a label k gives at least after[s, k] plus the lowest score of its column. A label that
    gives less with the highest score of its column is left out (CarpeDiem, Esposito & Radicioni 2009, has such bounds).
    This is exact with rounding too, since rounding keeps the order of sums.
    """
    columns, bounds = into
    rows, width, found = columns.shape[1], after.shape[1], 0
    reached = broadcast(after.dtype.type(-np.inf))
    for j in range(0, width, WIDTH):
        reached = maximum(load(after, s * width + j) + load(bounds, j), reached)
    floor = reduce_max(reached)
    if not floor > -np.inf:
        return False
    for first in range(0, width, BITS):
        left = 0
        for j in range(first, min(first + BITS, width), WIDTH):
            left |= bits_not_less(load(after, s * width + j) + load(bounds, width + j), floor) << (j - first)
        while left:
            a = first + lowest_bit(left)
            left &= left - 1
            b = first + lowest_bit(left) if left else a  # a label may be taken twice
            left &= left - 1
            c = first + lowest_bit(left) if left else b
            left &= left - 1
            d = first + lowest_bit(left) if left else c
            left &= left - 1
            for i in range(0, width, WIDTH):
                highest = _best_of_four(columns, i // WIDTH * rows, after, s * width, a, b, c, d)
                store(best, r * width + i, maximum(highest, load(best, r * width + i)) if found else highest)
            found += 4
            if 2 * found > width:
                return False
    return True


@subkernel_no_alloc
def trace_best_path(unary, edge, length, suffix, best, labels):
    """Fill labels (T,) with the best path, the lowest label among equals, and return its score."""
    (_, L), width, label = unary.shape, suffix.shape[1], 0
    for j in range(1, L):
        label = j if suffix[0, j] > suffix[0, label] else label
    if suffix[0, label] == -np.inf:
        return -np.inf
    own, steps, labels[0] = np.float64(unary[0, label]), 0.0, label
    for t in range(1, length):
        at, before, highest, label = 0 if len(edge) == 1 else t, label, best[t - 1, label], 0
        for j in range(width - WIDTH, -1, -WIDTH):
            step = cast_like(load_masked(edge, (at * L + before) * L + j, L - j), suffix)
            element = find_first_equal(step + load(suffix, t * width + j), highest)
            label = j + element if element < WIDTH else label
        label = min(label, L - 1)  # with NaN scores, an element of the padding may be found
        own += unary[t, label]
        steps += edge[at, before, label]
        labels[t] = label
    return own + steps
