"""Best scores from each label on, backwards over the tokens, on which the searches for the best labellings rest."""

import numpy as np

from structperc.kernels.compiled import inner_kernel, kernel, kernel_part
from structperc.kernels.lanes import (
    WIDTH,
    larger,
    largest,
    like,
    load,
    load_one,
    load_some,
    padded,
    spread,
    store,
    where_above,
)

ROWS = 4  # labels that follow, of which the best is found before it is compared with the best so far


@kernel
def onward_scores(unary, edge, into, length, onward, best):  # type: ignore[no-untyped-def]
    """Fill best with the best score of what follows each label, and onward with that and its own, scores levelled.

    edge is (T or 1, L, L), into what `columns` makes of it, onward and best are what `padded` makes.
    """
    last, L, width = length - 1, unary.shape[1], onward.shape[1]
    for t in range(last, -1, -1):
        if t < last and len(edge) > 1:
            best_by_rows(edge, t + 1, onward, t + 1, best, t)
        level = spread(level_of(unary, t, t + 1))
        for i in range(0, width, WIDTH):
            following = spread(unary.dtype.type(0))
            if t < last:
                if len(edge) > 1:
                    following = load(best, t * width + i)
                else:
                    following = best_by_columns(into, i // WIDTH, onward, (t + 1) * width)
            store(best, t * width + i, following)
            store(onward, t * width + i, (load_some(unary, t * L + i, L - i) - level) + following)


@kernel
def columns(edge, other):  # type: ignore[no-untyped-def]
    """Copy an edge (1, L, L) to (L / WIDTH, L following, WIDTH), both rounded up: labels of a block side by side.

    The copy is of the type of another array. Nothing is made of edges of each token.
    """
    L = edge.shape[1] if len(edge) == 1 else 0
    blocks, rows = -(-L // WIDTH), -(-L // ROWS) * ROWS
    into = padded(blocks * rows, WIDTH, other).reshape(blocks, rows, WIDTH)
    for i in range(L):
        for j in range(L):
            into[i // WIDTH, j, i % WIDTH] = edge[0, i, j]
    return into


@kernel_part(forceinline=True)
def level_of(rows, start, stop):  # type: ignore[no-untyped-def]
    """Return the highest score of rows (N, L) from start to stop; 0 where all are -inf."""
    L, highest = rows.shape[1], spread(rows.dtype.type(-np.inf))
    for r in range(start, stop):
        for i in range(0, L, WIDTH):
            highest = larger(load_some(rows, r * L + i, L - i), highest)
    level = largest(highest)
    return level if level > -np.inf else rows.dtype.type(0)


@inner_kernel
def any_invalid(scores, start, stop):  # type: ignore[no-untyped-def]
    """Return whether any of an array's scores from place start to stop is +inf or NaN."""
    nothing, infinite = scores.dtype.type(0), scores.dtype.type(np.inf)
    total = spread(nothing)
    for place in range(start, stop, WIDTH):  # a sum that +inf and NaN spoil for good
        total += load_some(scores, place, stop - place)
    if largest(where_above(infinite, total, nothing, infinite)) == 0.0:
        return False
    for place in range(start, stop):  # the sum of large scores may be infinite, too
        if largest(where_above(infinite, load_one(scores, place), nothing, infinite)) > 0.0:
            return True
    return False


@kernel_part(forceinline=True)
def best_by_rows(edge, t, after, s, best, r):  # type: ignore[no-untyped-def]
    """Fill row r of best with the highest sum of the edge of token t and row s of after, label by label."""
    L, width = edge.shape[1], after.shape[1]
    for i in range(L):
        row, highest = (t * L + i) * L, spread(after.dtype.type(-np.inf))
        for j in range(0, L, WIDTH):
            step = like(load_some(edge, row + j, L - j), after)
            highest = larger(step + load(after, s * width + j), highest)
        best[r, i] = largest(highest)


@kernel_part(forceinline=True)
def best_by_columns(into, block, after, s):  # type: ignore[no-untyped-def]
    """Return for the labels of a block the highest sum of into and of after, from place s on."""
    rows, best = into.shape[1], spread(after.dtype.type(-np.inf))
    for j in range(0, rows, ROWS):
        place = (block * rows + j) * WIDTH
        a = load(into, place) + load_one(after, s + j)
        b = load(into, place + WIDTH) + load_one(after, s + j + 1)
        c = load(into, place + 2 * WIDTH) + load_one(after, s + j + 2)
        d = load(into, place + 3 * WIDTH) + load_one(after, s + j + 3)
        best = larger(best, larger(larger(a, b), larger(c, d)))
    return best
