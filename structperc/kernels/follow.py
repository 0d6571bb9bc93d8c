"""The best labelling, forwards over the tokens once the best score from each label on is known."""

import numpy as np

from structperc.kernels.compiled import kernel
from structperc.kernels.lanes import WIDTH, first_equal, like, load, load_some


@kernel
def follow(unary, edge, length, onward, best, labels):  # type: ignore[no-untyped-def]
    """Fill labels (T,) with the best labelling, the lowest label among equals, and return its score."""
    highest = onward[0].max()
    if highest == -np.inf:
        return -np.inf
    label = labels[0] = onward[0].argmax()
    own, steps = np.float64(unary[0, label]), 0.0
    for t in range(1, length):
        at = 0 if len(edge) == 1 else t
        before, label = label, _first(edge, at, label, onward, t, best[t - 1, label])
        own += unary[t, label]
        steps += edge[at, before, label]
        labels[t] = label
    return own + steps


@kernel(forceinline=True)
def _first(edge, at, before, onward, t, highest):  # type: ignore[no-untyped-def]
    """Return the lowest label of token t whose sum of edge after a label before and onward is the highest one."""
    first, L, width = 0, edge.shape[1], onward.shape[1]
    row = (at * L + before) * L
    for j in range(width - WIDTH, -1, -WIDTH):
        step = like(load_some(edge, row + j, L - j), onward)
        lane = first_equal(step + load(onward, t * width + j), highest)
        first = j + lane if lane < WIDTH else first
    return min(first, L - 1)  # where scores are NaN, lanes beyond the labels may be found
