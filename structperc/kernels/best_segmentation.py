"""Searches for the best segmentation of one sequence, see `structperc.ops.segment_operators`."""

from typing import Any, NamedTuple

import numpy as np

from structperc.kernels.jit import subkernel, subkernel_no_alloc
from structperc.kernels.simd import cast_like, maximum, padded_array, store, vector_functions

WIDTH = 8  # numbers of a vector: most models have few types, half a vector of sixteen would be padding
load, load_masked, load_broadcast, broadcast = vector_functions(WIDTH)


class Best(NamedTuple):
    """Best scores of one sequence, float64, with C padded to W, whole vectors."""

    own: Any  # (T, W) scores of tokens less the highest of each
    top: Any  # (T, W) of all from t on, beginning with a segment of a type
    after: Any  # (T + 1, W) of all from t on, after a segment of a type
    back: Any  # (C, W) scores of pairs [j, i]


@subkernel
def best_tables(T, C):
    """Return tables for sequences of up to T tokens; scores of pairs are not filled."""
    rows = padded_array(3 * T + 1 + C, C, np.empty(0).dtype, -np.inf, WIDTH)
    return Best(rows[:T], rows[T : 2 * T], rows[2 * T : 3 * T + 1], rows[3 * T + 1 :])


@subkernel_no_alloc
def search_backwards(length, given, tables):
    """Fill top and after."""
    own, top, after, back = tables
    C, W = len(back), own.shape[1]
    after[length, :C] = 0.0
    for t in range(length - 1, -1, -1):
        first, n = (t if len(given) > 1 else 0) * given.shape[1] * C, min(given.shape[1], length - t)
        for j in range(0, C, WIDTH):
            run, highest = broadcast(0.0), broadcast(-np.inf)
            for d in range(n):
                run += load(own, (t + d) * W + j)
                added = cast_like(load_masked(given, first + d * C + j, C - j), own)
                highest = maximum((run + added) + load(after, (t + d + 1) * W + j), highest)
            store(top, t * W + j, highest)
        for i in range(0, C if t else 0, WIDTH):
            highest = broadcast(-np.inf)
            for j in range(C):
                highest = maximum(load(back, j * W + i) + load_broadcast(top, t * W + j), highest)
            store(after, t * W + i, highest)


@subkernel_no_alloc
def best_size(t, c, length, given, tables):
    """Return the best score of all from t on that begins with a segment of type c, and its first number of tokens."""
    own, _, after, _ = tables
    run, best, size = 0.0, -np.inf, 1
    for d in range(min(given.shape[1], length - t)):
        run += own[t + d, c]
        score = (run + given[t if len(given) > 1 else 0, d, c]) + after[t + d + 1, c]
        if score > best:
            best, size = score, d + 1
    return best, size


@subkernel_no_alloc
def trace_best_segmentation(t, before, length, given, tables, labels):
    """Fill labels from t on with the first best segmentation after a type, -1 for none; return whether there is one.

    Scores are those of the search. A label c begins a segment of type c, C + c continues it.
    """
    _, top, _, back = tables
    C = len(back)
    while t < length:
        best, kind = -np.inf, -1
        for c in range(C):
            score = top[t, c] if before < 0 else back[c, before] + top[t, c]
            if score > best:
                best, kind = score, c
        if kind < 0:
            return False
        _, size = best_size(t, kind, length, given, tables)
        labels[t], labels[t + 1 : t + size] = kind, C + kind
        t, before = t + size, kind
    return True
