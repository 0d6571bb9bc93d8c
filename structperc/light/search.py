"""The best labellings of many sequences under linear scores, in one compiled call."""

from typing import NamedTuple

import numpy as np

from structperc.kernels.compiled import kernel
from structperc.kernels.follow import follow
from structperc.kernels.lanes import padded
from structperc.kernels.onward import any_invalid, columns, onward_scores
from structperc.kernels.scores import score_in_order
from structperc.kernels.sequences import longest


class Stretches(NamedTuple):
    """Sequences of n tokens: sequence s is the tokens bounds[s], ..., bounds[s + 1] - 1."""

    bounds: np.ndarray  # (S + 1,) int64
    first: np.ndarray  # (n,) bool, first token of a sentence
    last: np.ndarray  # (n,) bool, last token of a sentence


@kernel
def best_labels(stretches, features, weights, scheme, apart, labels):  # type: ignore[no-untyped-def]
    """Fill labels (n,), zeros before, with the best labelling of each sequence, the lowest label among equals.

    The scores are those of `SparseLinear` and of the scheme's constraints, a sequence without any legal labelling keeps
    its zeros. Where sentences are `apart`, a pair of labels on both sides of their boundary scores 0.
    -> the first token with a score of +inf, at which the search ends; -1 where there is none.
    """
    bounds, L = stretches.bounds, weights.node.shape[1]
    T = longest(bounds)
    each = T if len(weights.edge) or apart else 1
    unary, edges = np.empty((T, L), weights.node.dtype), np.empty((each, L, L), weights.node.dtype)
    onward, best = padded(T, L, unary), padded(T, L, unary)
    for s in range(len(bounds) - 1):
        start, length = bounds[s], bounds[s + 1] - bounds[s]
        if length == 0:
            continue
        score_in_order(start, start + length, stretches, features, weights, scheme, unary, edges)
        for t in range(length):
            if apart and t and stretches.first[start + t]:
                edges[t] = 0
            if any_invalid(unary, t * L, (t + 1) * L):
                return start + t
            if t and each > 1 and any_invalid(edges, t * L * L, (t + 1) * L * L):
                return start + t
        onward_scores(unary, edges, columns(edges, unary), length, onward, best)
        follow(unary, edges, length, onward, best, labels[start : start + length])
    return -1
