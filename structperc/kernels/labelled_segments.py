"""Scores of labels and of segments -> scores of whole segments, as the searches over segmentations read them.

The K = 2 C + 1 kinds of segments are those of one token by type, O, and longer ones by type. The table (C + 1, 4) has
the labels of a segment of each type, and those of O, see `SegmentScores.labels`.
"""

import numpy as np

from structperc.kernels.jit import subkernel_no_alloc
from structperc.kernels.scores import sum_rows


@subkernel_no_alloc
def segment_kind(c, size, C):
    """Return the kind of a segment of type c, C for O."""
    return c if c == C or size == 1 else C + 1 + c


@subkernel_no_alloc
def segment_end(labels, t, segments):
    """Return the end of the segment of labels (T,) that begins at t; `segments` are `SegmentArrays`."""
    stop = t + 1
    while stop < len(labels) and not segments.begins[labels[stop]]:
        stop += 1
    return stop


@subkernel_no_alloc
def score_pairs(edge, table, pair):
    """Fill pair (K, K) with the scores of pairs of neighbouring segments, given edge (L, L)."""
    C = len(table) - 1
    for i in range(2 * C + 1):
        last = table[i, 0] if i <= C else table[i - C - 1, 3]
        for j in range(2 * C + 1):
            pair[i, j] = edge[last, table[j, 0] if j <= C else table[j - C - 1, 1]]


@subkernel_no_alloc
def score_segments(start, length, segments, table, ordered, rows):
    """Fill rows (T D, C) with the sums of the weights (F, C) of the features of segments, -inf for those left out.

    `segments` are `SegmentArrays`; weights are added by `sum_rows`.
    """
    candidates, values = segments.candidates, rows[0, :0]
    for t in range(length):
        for d in range(min(len(segments.ends), length - t)):
            row, left = t * len(segments.ends) + d, len(candidates) == 0
            for c in range(rows.shape[1] if len(candidates) else 0):
                left |= candidates[start + t, d, c]
            if left:
                first, last = segments.ends[d, start + t], segments.ends[d, start + t + 1]
                sum_rows(table, segments.ids, values, first, last, ordered, rows, row)
            for c in range(rows.shape[1] if len(candidates) else 0):
                if not candidates[start + t, d, c]:
                    rows[row, c] = -np.inf


@subkernel_no_alloc
def score_whole_segments(length, unary, edge, rows, table, whole):
    """Fill whole (T, D, K), given unary (T, L), edge (L, L) and the scores of segments by their features (T D, C).

    What is no segment, such as longer ones among those of one token, is not written. In the precision of the lattice
    these are the bits of `chain.segment_scores.semi_markov_scores`, so that ties stay ties.
    """
    D, C, dtype = whole.shape[1], rows.shape[1], whole.dtype
    for t in range(length):
        whole[t, 0, C] = unary[t, table[C, 0]]
        for c in range(C):
            before, middle, last = table[c, 1], table[c, 2], table[c, 3]
            whole[t, 0, c] = unary[t, table[c, 0]] + rows[t * D, c]
            run = dtype.type(unary[t, before])
            for d in range(1, min(D, length - t)):
                whole[t, d, C + 1 + c] = run + edge[before, last] + unary[t + d, last] + rows[t * D + d, c]
                run = run + edge[before, middle] + unary[t + d, middle]
                before = middle


@subkernel_no_alloc
def write_labels(found, table, K, labels):
    """Write the labels of a segmentation, in which c begins a segment and K + c continues it, to labels (T,)."""
    C = len(table) - 1
    for t in range(len(labels)):
        kind = found[t] % K
        if kind <= C:
            labels[t] = table[kind, 0]
        elif found[t] < K:
            labels[t] = table[kind - C - 1, 1]
        else:
            labels[t] = table[kind - C - 1, 3 if t + 1 == len(labels) or found[t + 1] < K else 2]
