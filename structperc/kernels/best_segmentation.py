"""Searches for the best segmentation of one sequence, see `structperc.ops.segment_operators`."""

from typing import Any, NamedTuple

import numpy as np

from structperc.kernels.jit import subkernel, subkernel_no_alloc
from structperc.kernels.simd import cast_like, maximum, padded_array, store, vector_functions

WIDTH = 8  # numbers of a vector: most models have few types, half a vector of sixteen would be padding
load, load_masked, load_broadcast, broadcast = vector_functions(WIDTH)


@subkernel_no_alloc
def subtract_levels(token, length, own):
    """Fill own (T, C or more) with the scores less the highest of each token, and return the sum of the highest."""
    total = 0.0
    for t in range(length):
        highest = -np.inf
        for c in range(token.shape[1]):
            highest = max(highest, np.float64(token[t, c]))
        level = highest if highest > -np.inf else 0.0
        total += level
        for c in range(token.shape[1]):
            own[t, c] = token[t, c] - level
    return total


class Best(NamedTuple):
    """Best scores of one sequence, float64, with C padded to W, whole vectors."""

    own: Any  # (T, W) scores of tokens less the highest of each
    top: Any  # (T, W) of all from t on, beginning with a segment of a type
    after: Any  # (T + 1, W) of all from t on, after a segment of a type
    back: Any  # (C, W) scores of pairs [j, i]


@subkernel
def best_tables(T, pair):
    """Return tables for sequences of up to T tokens."""
    C = len(pair)
    rows = padded_array(3 * T + 1 + C, C, np.empty(0), -np.inf, WIDTH)
    tables = Best(rows[:T], rows[T : 2 * T], rows[2 * T : 3 * T + 1], rows[3 * T + 1 :])
    _fill_pairs(pair, tables.back)
    return tables


@subkernel_no_alloc
def _fill_pairs(pair, back):
    for i in range(len(pair)):
        for j in range(len(pair)):
            back[j, i] = pair[i, j]


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
def segment_end(labels, t, segments):
    """Return the end of the segment of labels (T,) that begins at t; `segments` are `SegmentArrays`."""
    stop = t + 1
    while stop < len(labels) and not segments.begins[labels[stop]]:
        stop += 1
    return stop


@subkernel_no_alloc
def trace_best_segmentation(length, given, tables, labels):
    """Fill labels with the first best segmentation, and return whether there is one; scores are those of the search."""
    own, top, after, back = tables
    C, t, before = len(back), 0, -1
    while t < length:
        best, kind, size = -np.inf, -1, 0
        for c in range(C):
            score = top[t, c] if before < 0 else back[c, before] + top[t, c]
            if score > best:
                best, kind = score, c
        if kind < 0:
            return False
        run, best = 0.0, -np.inf
        for d in range(min(given.shape[1], length - t)):
            run += own[t + d, kind]
            score = (run + given[t if len(given) > 1 else 0, d, kind]) + after[t + d + 1, kind]
            if score > best:
                best, size = score, d + 1
        labels[t] = kind
        for d in range(1, size):
            labels[t + d] = C + kind
        t, before = t + size, kind
    return True
