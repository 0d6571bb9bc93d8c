"""Compiled learning, sequence by sequence, of scores of labels and of segments."""

from typing import NamedTuple

import numpy as np
from numpy import ndarray

from structperc.kernels.best_segmentation import (
    Best,
    best_size,
    best_tables,
    search_backwards,
    trace_best_segmentation,
)
from structperc.kernels.jit import subkernel, subkernel_no_alloc
from structperc.kernels.labelled_segments import (
    score_pairs,
    score_whole_segments,
    segment_end,
    segment_kind,
    write_labels,
)
from structperc.online.compiled import PathKernels


class SegmentMemory(NamedTuple):
    """Scores of a sequence of up to T tokens, and of its segments of K kinds, see `kernels.labelled_segments`."""

    unary: ndarray  # (T, L)
    searched: ndarray  # (T, L)
    edges: ndarray  # (1, L, L)
    rows: ndarray  # (T D, C) of segments by their features
    whole: ndarray  # (T, D, K) float64 of whole segments, those of their labels included
    tables: Best
    found: ndarray  # (T,) int64, the best segmentation


@subkernel
def segment_memory(T, segments, weights):
    """Allocate the memory; scores of tokens are part of those of segments."""
    L, D, C, dtype = weights.node.shape[1], len(segments.ends), len(segments.table) - 1, weights.node.dtype
    unary, whole = np.empty((2, T, L), dtype), np.full((T, D, 2 * C + 1), -np.inf)
    tables = best_tables(T, 2 * C + 1)
    tables.own[:] = 0.0
    edges, rows = np.empty((1, L, L), dtype), np.empty((T * D, C), dtype)
    return SegmentMemory(unary[0], unary[1], edges, rows, whole, tables, np.empty(T, np.int64))


@subkernel_no_alloc
def _search(length, unary, segments, memory):
    """Search segmentations backwards, given the scores of labels and of segments by their features."""
    score_pairs(memory.edges[0], segments.table, memory.tables.back.T)
    score_whole_segments(length, unary, memory.edges[0], memory.rows, segments.table, memory.whole)
    search_backwards(length, memory.whole, memory.tables)


@subkernel_no_alloc
def best_segmentation(unary, gold, segments, memory, labels):
    """Fill labels (T,) with the best path, in the order of `semi_markov_viterbi`; return True if there is one."""
    length, whole = len(gold), memory.whole
    _search(length, unary, segments, memory)
    exists = trace_best_segmentation(0, -1, length, whole, memory.tables, memory.found)
    if exists:
        write_labels(memory.found, segments.table, whole.shape[2], labels[:length])
    return exists


@subkernel
def best_wrong_segmentation(unary, gold, segments, memory, labels):
    """Fill labels (T,) with the best path other than gold (T,), the first of equal ones; return True if there is one.

    A wrong path has the segments of gold up to one in whose place it has another one.
    """
    length, whole, found, (_, _, K) = len(gold), memory.whole, memory.found, memory.whole.shape
    _search(length, unary, segments, memory)
    top, after, back = memory.tables.top, memory.tables.after, memory.tables.back
    starts, kinds, n, t = np.empty(length + 1, np.int64), np.empty(length, np.int64), 0, 0
    while t < length:
        starts[n], stop = t, segment_end(gold, t, segments)
        kinds[n] = segment_kind(segments.kinds[gold[t]], stop - t, K // 2)
        n, t = n + 1, stop
    starts[n] = length
    chosen, sizes, wrong = np.empty(n, np.int64), np.empty(n, np.int64), -np.inf
    for i in range(n - 1, -1, -1):
        t, stop, own = starts[i], starts[i + 1], kinds[i]
        free = after[stop, own]
        after[stop, own] = wrong  # so that all that begins with the segment of gold differs from gold later
        leaving, sizes[i] = best_size(t, own, length, whole, memory.tables)
        after[stop, own] = free
        wrong = -np.inf
        for k in range(K):
            total = leaving if k == own else top[t, k]
            if i:
                total += back[k, kinds[i - 1]]
            if total > wrong:
                wrong, chosen[i] = total, k
    if wrong == -np.inf:
        return False
    i = 0
    while chosen[i] == kinds[i] and sizes[i] == starts[i + 1] - starts[i]:
        i += 1
    t, kind, size = starts[i], chosen[i], sizes[i]
    if kind != kinds[i]:
        size = best_size(t, kind, length, whole, memory.tables)[1]
    found[t], found[t + 1 : t + size] = kind, K + kind
    trace_best_segmentation(t + size, kind, length, whole, memory.tables, found)
    labels[:t] = gold[:t]
    write_labels(found[t:], segments.table, K, labels[t:length])
    return True


SEGMENTS = PathKernels(segment_memory, best_segmentation, best_wrong_segmentation)
