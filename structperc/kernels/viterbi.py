"""Best scores from each label on, backwards over the tokens, on which the searches for the best labellings rest.

The best labelling, forwards over the tokens once the best score from each label on is known.
"""

import numpy as np

from structperc.kernels.jit import kernel, subkernel, subkernel_no_alloc
from structperc.kernels.simd import (
    WIDTH,
    broadcast,
    cast_like,
    find_first_equal,
    load,
    load_broadcast,
    load_masked,
    maximum,
    padded_array,
    reduce_max,
    store,
    where_greater,
)

ROWS = 4  # labels that follow, of which the best is found before it is compared with the best so far


@kernel
def suffix_scores(unary, edge, into, length, onward, best):  # type: ignore[no-untyped-def]
    """Fill best with the best score of what follows each label, and onward with that and its own, scores levelled.

    edge is (T or 1, L, L), into what `edge_blocks` makes of it, onward and best are what `padded_array` makes.
    """
    last, L, width = length - 1, unary.shape[1], onward.shape[1]
    for t in range(last, -1, -1):
        if t < last and len(edge) > 1:
            best_by_rows(edge, t + 1, onward, t + 1, best, t)
        level = broadcast(max_level(unary, t, t + 1))
        for i in range(0, width, WIDTH):
            following = broadcast(unary.dtype.type(0))
            if t < last:
                if len(edge) > 1:
                    following = load(best, t * width + i)
                else:
                    following = best_by_columns(into, i // WIDTH, onward, (t + 1) * width)
            store(best, t * width + i, following)
            store(onward, t * width + i, (load_masked(unary, t * L + i, L - i) - level) + following)


@kernel
def edge_blocks(edge, other):  # type: ignore[no-untyped-def]
    """Copy an edge (1, L, L) to (L / WIDTH, L following, WIDTH), both rounded up: labels of a block side by side.

    The copy is of the type of another array. Nothing is made of edges of each token.
    """
    L = edge.shape[1] if len(edge) == 1 else 0
    blocks, rows = -(-L // WIDTH), -(-L // ROWS) * ROWS
    into = padded_array(blocks * rows, WIDTH, other).reshape(blocks, rows, WIDTH)
    for i in range(L):
        for j in range(L):
            into[i // WIDTH, j, i % WIDTH] = edge[0, i, j]
    return into


@subkernel(forceinline=True)
def max_level(rows, start, stop):  # type: ignore[no-untyped-def]
    """Return the highest score of rows (N, L) from start to stop; 0 where all are -inf."""
    L, highest = rows.shape[1], broadcast(rows.dtype.type(-np.inf))
    for r in range(start, stop):
        for i in range(0, L, WIDTH):
            highest = maximum(load_masked(rows, r * L + i, L - i), highest)
    level = reduce_max(highest)
    return level if level > -np.inf else rows.dtype.type(0)


@subkernel_no_alloc
def any_invalid(scores, start, stop):  # type: ignore[no-untyped-def]
    """Return whether any of an array's scores from place start to stop is +inf or NaN."""
    nothing, infinite = scores.dtype.type(0), scores.dtype.type(np.inf)
    total = broadcast(nothing)
    for place in range(start, stop, WIDTH):  # a sum that +inf and NaN spoil for good
        total += load_masked(scores, place, stop - place)
    if reduce_max(where_greater(infinite, total, nothing, infinite)) == 0.0:
        return False
    for place in range(start, stop):  # the sum of large scores may be infinite, too
        if reduce_max(where_greater(infinite, load_broadcast(scores, place), nothing, infinite)) > 0.0:
            return True
    return False


@subkernel(forceinline=True)
def best_by_rows(edge, t, after, s, best, r):  # type: ignore[no-untyped-def]
    """Fill row r of best with the highest sum of the edge of token t and row s of after, label by label."""
    L, width = edge.shape[1], after.shape[1]
    for i in range(L):
        row, highest = (t * L + i) * L, broadcast(after.dtype.type(-np.inf))
        for j in range(0, L, WIDTH):
            step = cast_like(load_masked(edge, row + j, L - j), after)
            highest = maximum(step + load(after, s * width + j), highest)
        best[r, i] = reduce_max(highest)


@subkernel(forceinline=True)
def best_by_columns(into, block, after, s):  # type: ignore[no-untyped-def]
    """Return for the labels of a block the highest sum of into and of after, from place s on."""
    rows, best = into.shape[1], broadcast(after.dtype.type(-np.inf))
    for j in range(0, rows, ROWS):
        place = (block * rows + j) * WIDTH
        a = load(into, place) + load_broadcast(after, s + j)
        b = load(into, place + WIDTH) + load_broadcast(after, s + j + 1)
        c = load(into, place + 2 * WIDTH) + load_broadcast(after, s + j + 2)
        d = load(into, place + 3 * WIDTH) + load_broadcast(after, s + j + 3)
        best = maximum(best, maximum(maximum(a, b), maximum(c, d)))
    return best


@kernel
def follow(unary, edge, length, onward, best, labels):  # type: ignore[no-untyped-def]
    """Fill labels (T,) with the best labelling, the lowest label among equals, and return its score."""
    highest = onward[0].max()
    if highest == -np.inf:
        return -np.inf
    label = labels[0] = onward[0].argmax()
    own, steps = np.float64(unary[0, label]), 0.0
    for t in range(1, length):
        at = 0 if len(edge) == 1 else t
        before, label = label, _first(edge, at, label, onward, t, best[t - 1, label])
        own += unary[t, label]
        steps += edge[at, before, label]
        labels[t] = label
    return own + steps


@kernel(forceinline=True)
def _first(edge, at, before, onward, t, highest):  # type: ignore[no-untyped-def]
    """Return the lowest label of token t whose sum of edge after a label before and onward is the highest one."""
    first, L, width = 0, edge.shape[1], onward.shape[1]
    row = (at * L + before) * L
    for j in range(width - WIDTH, -1, -WIDTH):
        step = cast_like(load_masked(edge, row + j, L - j), onward)
        lane = find_first_equal(step + load(onward, t * width + j), highest)
        first = j + lane if lane < WIDTH else first
    return min(first, L - 1)  # where scores are NaN, lanes beyond the labels may be found
