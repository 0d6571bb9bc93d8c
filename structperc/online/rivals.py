"""The rival of gold in one lattice, compiled: the best labelling of all, or the best that is not gold."""

import numpy as np

from structperc.kernels.compiled import inner_kernel, kernel
from structperc.kernels.follow import follow
from structperc.kernels.onward import columns, onward_scores


@kernel
def find_rival(unary, edges, length, gold, other, room, labels):  # type: ignore[no-untyped-def]
    """Fill labels (T,) with the best labelling, or with the best `other` than gold (T,); say whether there is one.

    Of equal ones it is the first in lexicographic order. The scores are unary (T, L) and edges (T or 1, L, L);
    the room to work in is two arrays that `padded` makes, and one (T,).
    """
    onward, best, departing = room
    onward_scores(unary, edges, columns(edges, unary), length, onward, best)
    if not other:
        return follow(unary, edges, length, onward, best, labels) > -np.inf
    _departures(unary, edges, length, gold, onward, departing)
    return _follow_other(edges, length, gold, onward, departing, labels)


@inner_kernel
def _departures(unary, edges, length, gold, onward, departing):  # type: ignore[no-untyped-def]
    """Fill departing (T,) with the best score from gold's label on, of labellings that leave gold after this token.

    Scores are levelled as those of `onward` are.
    """
    L = unary.shape[1]
    departing[length - 1] = -np.inf
    for t in range(length - 2, -1, -1):
        step, after = edges[0 if len(edges) == 1 else t + 1, gold[t]], onward[t + 1]
        best = step[gold[t + 1]] + departing[t + 1]
        for j in range(L):
            if j != gold[t + 1]:
                best = max(best, step[j] + after[j])
        level = unary[t, 0]
        for j in range(1, L):
            level = max(level, unary[t, j])
        if level == -np.inf:
            level = unary.dtype.type(0)
        departing[t] = (unary[t, gold[t]] - level) + best


@inner_kernel
def _follow_other(edges, length, gold, onward, departing, labels):  # type: ignore[no-untyped-def]
    """Fill labels (T,) with the best labelling that is not gold, the lowest label among equals; say if there is one."""
    with_gold, label = True, 0
    for t in range(length):
        step = edges[0 if len(edges) == 1 else t, label]
        best, highest = -1, onward.dtype.type(-np.inf)
        for j in range(edges.shape[1]):
            ahead = departing[t] if with_gold and j == gold[t] else onward[t, j]
            if t:
                ahead += step[j]
            if ahead > highest:
                best, highest = j, ahead
        if best < 0:
            return False
        with_gold = with_gold and best == gold[t]
        label = labels[t] = best
    return not with_gold


@inner_kernel
def path_score(unary, edges, labels, length):  # type: ignore[no-untyped-def]
    """Return the score of labels (T,) in float64."""
    total = 0.0
    for t in range(length):
        total += unary[t, labels[t]]
        if t:
            total += edges[0 if len(edges) == 1 else t, labels[t - 1], labels[t]]
    return total
