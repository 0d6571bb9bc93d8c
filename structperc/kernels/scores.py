"""The lattice of one sequence: sums of the weights of its features."""

import numpy as np

from structperc.kernels.jit import subkernel_no_alloc
from structperc.kernels.simd import WIDTH, broadcast, load_masked, store_masked


@subkernel_no_alloc(forceinline=True)
def in_two_sums(table, ids, first, last, total, row, add=False):
    """Fill total[row], C numbers, with the sum of the rows ids[first:last] of table (R, C), as sum of two sums.

    The two additions do not wait for each other. With `add` the sum is added to the row.
    """
    C, zero = table.shape[1], broadcast(table.dtype.type(0))
    for j in range(0, C, 2 * WIDTH):
        if C - j > WIDTH:
            _two_vectors(table, ids, first, last, total, row, add, j)
            continue
        even = odd = zero
        if add:
            even = load_masked(total, row * C + j, C - j)
        for place in range(first, last - 1, 2):
            even += load_masked(table, np.int64(ids[place]) * C + j, C - j)
            odd += load_masked(table, np.int64(ids[place + 1]) * C + j, C - j)
        if (last - first) % 2:
            even += load_masked(table, np.int64(ids[last - 1]) * C + j, C - j)
        store_masked(total, row * C + j, C - j, even + odd)


@subkernel_no_alloc(forceinline=True)
def _two_vectors(table, ids, first, last, total, row, add, j):
    """Sum up to 2 WIDTH columns from j on in one pass, which waits once for each row that is not in the cache."""
    C, zero = table.shape[1], broadcast(table.dtype.type(0))
    even = odd = more_even = more_odd = zero
    k = j + WIDTH
    if add:
        even, more_even = load_masked(total, row * C + j, C - j), load_masked(total, row * C + k, C - k)
    for place in range(first, last - 1, 2):
        one, other = np.int64(ids[place]) * C, np.int64(ids[place + 1]) * C
        even += load_masked(table, one + j, C - j)
        more_even += load_masked(table, one + k, C - k)
        odd += load_masked(table, other + j, C - j)
        more_odd += load_masked(table, other + k, C - k)
    if (last - first) % 2:
        one = np.int64(ids[last - 1]) * C
        even += load_masked(table, one + j, C - j)
        more_even += load_masked(table, one + k, C - k)
    store_masked(total, row * C + j, C - j, even + odd)
    store_masked(total, row * C + k, C - k, more_even + more_odd)


@subkernel_no_alloc
def sum_rows(table, ids, values, first, last, ordered, total, row):
    """Fill total[row] with the sum of these rows times the values of the features, 1 if there are none.

    They are added in order, as tensor operations do, so that ties stay ties, or in two sums, which is faster: those of
    value 1 if not `ordered`.
    """
    if not ordered and not len(values):
        in_two_sums(table, ids, first, last, total, row)
        return
    C = table.shape[1]
    for j in range(0, C, WIDTH):
        sums = broadcast(table.dtype.type(0))
        for place in range(first, last):
            here = load_masked(table, np.int64(ids[place]) * C + j, C - j)
            sums += broadcast(table.dtype.type(values[place])) * here if len(values) else here
        store_masked(total, row * C + j, C - j, sums)


@subkernel_no_alloc
def score(start, stop, sentences, features, weights, scheme, ordered, unary, edges):
    """Fill unary (T, L) and edges (T or 1, L, L) with the lattice of the tokens start, ..., stop - 1.

    sentences are two arrays (n,) bool, the first and the last tokens of sentences: no tuple of a module that imports
    torch, since the index of compiled code would import that for predictors, too. Weights are added by
    `sum_rows`. edges[0] of an array with edges of each token is not written, as nothing reads it.
    """
    (opens, closes), L, stationary, tables = sentences, unary.shape[1], len(edges) == 1, edges.reshape(len(edges), -1)
    for t in range(stop - start):
        token = start + t
        first, last = features.node_ends[token], features.node_ends[token + 1]
        sum_rows(weights.node, features.node_ids, features.node_weights, first, last, ordered, unary, t)
        for j in range(L):
            if (opens[token] and not scheme.start[j]) or (closes[token] and not scheme.end[j]):
                unary[t, j] = -np.inf
    for t in range(0 if stationary else 1, 1 if stationary else stop - start):
        if not stationary:
            first, last = features.edge_ends[start + t], features.edge_ends[start + t + 1]
            sum_rows(weights.edge, features.edge_ids, features.edge_weights, first, last, ordered, tables, t)
        for i in range(L):
            for j in range(L):
                own = edges.dtype.type(0) if stationary else edges[t, i, j]
                if len(weights.transition):
                    own += weights.transition[i, j]
                edges[t, i, j] = own if scheme.transition[i, j] else -np.inf
