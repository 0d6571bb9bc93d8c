"""Labels that a search leaves out by their bounds."""

import numpy as np
import pytest
from numba import njit

from structperc.kernels.best_path import edge_blocks, fill_edge_blocks, suffix_scores
from structperc.kernels.simd import padded_array


@njit  # not cached: a cache would not see changes of what it calls
def best_after(unary, edge):
    T, L = unary.shape
    suffix, best = padded_array(T, L, unary.dtype), padded_array(T, L, unary.dtype)
    blocks = edge_blocks(edge, unary.dtype)
    fill_edge_blocks(edge, blocks)
    suffix_scores(unary, edge, blocks, T, suffix, best)
    return best


@pytest.mark.parametrize(
    ("L", "spread", "forbidden"), [(33, 0.1, 0.0), (64, 1.0, 0.3), (130, 30.0, 0.0), (64, 0.0, 0.0)]
)
def test_bounds_keep_every_best_label(L: int, spread: float, forbidden: float) -> None:
    """The maxima are those over all labels, bit for bit: for few labels, for many, and for ties."""
    random = np.random.default_rng(0)
    unary = (random.standard_normal((9, L)) * 3).round(1).astype(np.float32)
    edge = (random.uniform(-1, 1, (1, L, L)) * spread).astype(np.float32)
    edge[random.random(edge.shape) < forbidden] = -np.inf
    best = best_after(unary, edge)
    own, after = unary - unary.max(1, keepdims=True), np.zeros(L, np.float32)
    for t in range(8, -1, -1):
        np.testing.assert_array_equal(best[t, :L], after)
        after = (edge[0] + (own[t] + after)).max(1)
