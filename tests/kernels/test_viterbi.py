"""Labels that a search leaves out by their bounds."""

import numpy as np
import pytest

from structperc.kernels.best_path import edge_blocks, suffix_scores
from structperc.kernels.simd import padded_array


@pytest.mark.parametrize(
    ("L", "spread", "forbidden"), [(33, 0.1, 0.0), (64, 1.0, 0.3), (130, 30.0, 0.0), (64, 0.0, 0.0)]
)
def test_bounds_keep_every_best_label(L: int, spread: float, forbidden: float) -> None:
    """The maxima are those over all labels, bit for bit: for few labels, for many, and for ties."""
    random = np.random.default_rng(0)
    unary = (random.standard_normal((9, L)) * 3).round(1).astype(np.float32)
    edge = (random.uniform(-1, 1, (1, L, L)) * spread).astype(np.float32)
    edge[random.random(edge.shape) < forbidden] = -np.inf
    suffix, best = padded_array(9, L, unary), padded_array(9, L, unary)
    suffix_scores(unary, edge, edge_blocks(edge, unary), 9, suffix, best)
    own, after = unary - unary.max(1, keepdims=True), np.zeros(L, np.float32)
    for t in range(8, -1, -1):
        np.testing.assert_array_equal(best[t, :L], after)
        after = (edge[0] + (own[t] + after)).max(1)
