"""Exponentials of scores, compiled: factors from 0 to 1, of tokens and of the edges into them."""

import numpy as np

from structperc.kernels.compiled import kernel_part
from structperc.kernels.exponential import exp
from structperc.kernels.lanes import WIDTH, larger, largest, like, load_some, spread, store, where_above
from structperc.kernels.onward import level_of

SPREAD = 150.0  # nats from the highest to the lowest possible score of a token, or of the edges into it


@kernel_part
def factors_of_tokens(unary, length, own):  # type: ignore[no-untyped-def]
    """Fill own (T, W) with exp(score - highest of the token) -> sum of the highest, whether no factor is too small."""
    levels, deepest = 0.0, spread(0.0)
    for t in range(length):
        level = level_of(unary, t, t + 1)
        deepest = _exponentials(unary, t, t + 1, level, own, deepest)
        levels += level
    return levels, largest(deepest) <= SPREAD


@kernel_part
def factors_of_edges(edge, length, steps, back):  # type: ignore[no-untyped-def]
    """Fill steps (M L, W) with exp(score - highest of the token's edges); results are those of `factors_of_tokens`.

    edge is (M, L, L), of one matrix or of each token. That of one matrix comes transposed, too: back (L, W).
    """
    L, levels, deepest = edge.shape[1], 0.0, spread(0.0)
    rows = edge.reshape(-1, L)
    for e in range(len(back) == 0, 1 if len(back) else length):
        level = level_of(rows, e * L, e * L + L)
        deepest = _exponentials(rows, e * L, e * L + L, level, steps, deepest)
        levels += level
    for i in range(L if len(back) else 0):
        for j in range(L):
            back[j, i] = steps[i, j]
    return levels, largest(deepest) <= SPREAD


@kernel_part(forceinline=True)
def _exponentials(rows, start, stop, level, found, deepest):  # type: ignore[no-untyped-def]
    """Fill found[start : stop] with exp(score - level); -> how far below level a possible score was, in each lane."""
    L, W = rows.shape[1], found.shape[1]
    for r in range(start, stop):
        for i in range(0, L, WIDTH):
            score = like(load_some(rows, r * L + i, L - i), found) - level
            store(found, r * W + i, exp(score))
            deepest = larger(where_above(score, -np.inf, 0.0 - score, 0.0), deepest)
    return deepest
