"""The lattice of one sequence: sums of the weights of its features."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from structperc.kernels.jit import subkernel_no_alloc
from structperc.kernels.simd import WIDTH, broadcast, load_masked, store_masked


@subkernel_no_alloc
def in_two_sums(table, ids, first, last, total, row, add=False):
    """Fill total[row], C numbers, with the sum of the rows ids[first:last] of table (R, C), as sum of two sums.

    With `add` the sum is added to it.
    """
    C = table.shape[1]
    for j in range(0, C, 2 * WIDTH):
        if C - j > WIDTH:
            _two_vectors(table, ids, first, last, total, row, add, j)
        else:
            _one_vector(table, ids, first, last, total, row, add, j)


@subkernel_no_alloc(forceinline=True)
def _one_vector(table, ids, first, last, total, row, add, j):
    """Sum the last columns, from j on; two additions do not wait for each other."""
    C, zero = table.shape[1], broadcast(table.dtype.type(0))
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
def in_order(table, ids, first, last, total, row):
    """Fill total[row] with the same sum, added in order."""
    C = table.shape[1]
    for j in range(0, C, WIDTH):
        sums = broadcast(table.dtype.type(0))
        for place in range(first, last):
            sums += load_masked(table, np.int64(ids[place]) * C + j, C - j)
        store_masked(total, row * C + j, C - j, sums)


@subkernel_no_alloc
def weighted(table, ids, values, first, last, total, row):
    """Fill total[row] with the sum of these rows times the values of the features."""
    C = table.shape[1]
    for j in range(0, C, WIDTH):
        sums = broadcast(table.dtype.type(0))
        for place in range(first, last):
            value = broadcast(table.dtype.type(values[place]))
            sums += value * load_masked(table, np.int64(ids[place]) * C + j, C - j)
        store_masked(total, row * C + j, C - j, sums)


@subkernel_no_alloc
def _add_transitions(transition, allowed, edges, overwrite):
    """Add transition (L, L or none) to edges (L, L), or write it over them; -inf where not allowed."""
    L = len(edges)
    for i in range(L):
        for j in range(L):
            own = edges.dtype.type(0) if overwrite else edges[i, j]
            if len(transition):
                own += transition[i, j]
            edges[i, j] = own if allowed[i, j] else -np.inf


@cache
def _scoring(sum_rows: Callable[..., None]) -> Any:
    """Return the kernel that fills a lattice with sums of weights, added up by `sum_rows`."""

    @subkernel_no_alloc
    def score(start, stop, units, features, weights, scheme, unary, edges):
        """Fill unary (T, L) and edges (T or 1, L, L) with the lattice of the tokens start, ..., stop - 1.

        edges[0] of an array with edges of each token is not written, as nothing reads it.
        """
        stationary, tables = len(edges) == 1, edges.reshape(len(edges), edges.shape[1] * edges.shape[2])
        for t in range(stop - start):
            token = start + t
            first, last = features.node_ends[token], features.node_ends[token + 1]
            if len(features.node_weights):
                weighted(weights.node, features.node_ids, features.node_weights, first, last, unary, t)
            else:
                sum_rows(weights.node, features.node_ids, first, last, unary, t)
            for j in range(unary.shape[1]):
                if (units.first[token] and not scheme.start[j]) or (units.last[token] and not scheme.end[j]):
                    unary[t, j] = -np.inf
        if stationary:
            _add_transitions(weights.transition, scheme.transition, edges[0], stationary)
            return
        for t in range(1, stop - start):
            token = start + t
            first, last = features.edge_ends[token], features.edge_ends[token + 1]
            if len(features.edge_weights):
                weighted(weights.edge, features.edge_ids, features.edge_weights, first, last, tables, t)
            else:
                sum_rows(weights.edge, features.edge_ids, first, last, tables, t)
            _add_transitions(weights.transition, scheme.transition, edges[t], stationary)

    return score


score = _scoring(in_two_sums)  # fast, for learning
score_in_order = _scoring(in_order)  # the same bits as tensor operations, so that ties stay ties
