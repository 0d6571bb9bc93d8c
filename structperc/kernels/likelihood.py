"""The likelihood of a CRF with sparse features and its gradient, without padding and a lattice in memory."""

import numpy as np

from structperc.kernels.jit import kernel, subkernel_no_alloc
from structperc.kernels.scores import in_two_sums, sum_rows
from structperc.kernels.slices import longest_sequence
from structperc.kernels.sum_product import edge_factors, forward_backward, workspace


@kernel
def likelihood_gradients(start, stop, bounds, gold, unary, edges, losses, nodes, pairs):
    """Fill losses (B,) with -log p(gold) of the sequences start, ..., stop - 1, and their gradients.

    Sequence b has the tokens bounds[b], ..., bounds[b + 1] - 1, with labels gold (n,). unary is (n, L), scores of the
    labels of all tokens; edges is (1, L, L). nodes (n, L) are the gradients of the first, pairs (B, L, L) those of the
    second, summed over a sequence.
    """
    L, T = edges.shape[1], longest_sequence(bounds[start : stop + 1])
    space = workspace(T, 1, L)
    level, small = edge_factors(edges, 2, space)
    for b in range(start, stop):
        first, last = bounds[b], bounds[b + 1]
        losses[b], length = 0.0, last - first
        if length == 0:
            pairs[b] = 0
            continue
        own, into = nodes[first:last], pairs[b : b + 1]
        none = own[:0]
        total, _ = forward_backward(unary[first:last], edges, length, space, level, small, own, into, none, none)
        if total != -np.inf:
            losses[b] = total - _subtract_path(unary[first:last], edges[0], gold[first:last], own, into[0])


@subkernel_no_alloc
def _subtract_path(unary, edges, labels, nodes, pairs):
    """Subtract 1 from nodes (T, L) and pairs (L, L) along a path, labels (T,); return its score."""
    total = 0.0
    for t in range(len(labels)):
        total += unary[t, labels[t]]
        nodes[t, labels[t]] -= 1
        if t:
            total += edges[labels[t - 1], labels[t]]
            pairs[labels[t - 1], labels[t]] -= 1
    return total


@kernel
def add_by_feature(start, stop, gradients, lists, offsets, values, present, table):
    """Add to the rows present[start:stop] of a table (R, C) the gradients (n, C) of the tokens in their lists.

    List r is lists[offsets[r]:offsets[r + 1]]; gradients are multiplied by `values` unless there are none.
    """
    total = np.empty((1, table.shape[1]), table.dtype)
    for r in range(start, stop):
        if not len(values):
            in_two_sums(gradients, lists, offsets[r], offsets[r + 1], table, present[r], True)
            continue
        sum_rows(gradients, lists, values, offsets[r], offsets[r + 1], True, total, 0)
        table[present[r]] += total[0]
