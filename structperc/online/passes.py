"""Learning a batch sequence by sequence in one compiled call: score, find the rival, move the weights, the next."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from structperc.kernels.compiled import inner_kernel, kernel
from structperc.kernels.lanes import padded
from structperc.kernels.scores import score
from structperc.kernels.sequences import longest
from structperc.online.changes import apply, collect, no_room, squared_norm
from structperc.online.rivals import find_rival, path_score


@cache
def learning_pass(asks: Callable[..., bool], size: Callable[..., float]) -> Any:
    """Return the compiled pass of one rule and one step.

    It is called with units, features, weights, sums, moved, scheme, margin (all of `arrays`), numbers, step and losses:
    `asks(gap, limit)` says whether a unit with this gap asks for an update, `size(loss, squared_norm, *numbers)` how
    far weights move along Phi(gold) - Phi(rival). `step` is the number of steps made before; without rows sums are not
    kept and moved is not marked. The losses (U,) are filled, and (updates, wrong labels of the best labellings by score
    alone) are returned. After a loss that is no finite number nothing more is learned.
    """
    asks, size = inner_kernel(asks), inner_kernel(size)

    @kernel
    def learn(units, features, weights, sums, moved, scheme, margin, numbers, step, losses):  # type: ignore[no-untyped-def]
        L, updates, wrong = weights.node.shape[1], 0, 0
        T = longest(units.bounds)
        each = T if len(weights.edge) else 1
        unary, edges = np.empty((T, L), weights.node.dtype), np.empty((each, L, L), weights.node.dtype)
        ahead = padded(T, L, unary), padded(T, L, unary), np.empty(T, weights.node.dtype)
        searched = np.empty_like(unary) if margin.cost > 0 else unary
        rival, best = np.empty(T, np.int64), np.empty(T, np.int64)
        room = no_room()
        sizes = weights.node.size, weights.edge.size, weights.transition.size, L
        for u in range(len(losses)):
            start, stop = units.bounds[u], units.bounds[u + 1]
            length, gold = stop - start, units.gold[start:stop]
            losses[u] = 0.0
            if length == 0:
                continue
            score(start, stop, units, features, weights, scheme, unary, edges)
            gap = path_score(unary, edges, gold, length)
            if margin.cost > 0:
                _add_cost(unary, gold, margin.cost, searched)
            exists = find_rival(searched, edges, length, gold, margin.other, ahead, rival)
            gap -= path_score(searched, edges, rival, length)
            if not exists or _differ(gold, rival) == 0:
                continue
            wrong += _wrong(unary, edges, gold, rival, gap, margin, ahead, best)
            if not asks(gap, margin.limit):
                continue
            losses[u] = -gap
            if not np.isfinite(gap):
                return updates, wrong
            updates += 1
            keys, counts, room = collect(start, stop, gold, rival, features, sizes, room)
            scale = size(-gap, squared_norm(counts), *numbers)
            apply(keys, counts, scale, step + u, sizes, weights, sums, moved)
        return updates, wrong

    return learn


@cache
def moving(size: Callable[..., float]) -> Any:
    """Return the compiled update of one sequence, away from a rival that was found elsewhere.

    It is called with units, of which there is one sequence, features, weights, sums, moved, rival (T,), the loss, the
    squared norm of what else moves with the same step, numbers and step, and returns how far the weights were moved.
    """
    size = inner_kernel(size)

    @kernel
    def move(units, features, weights, sums, moved, rival, loss, norm, numbers, step):  # type: ignore[no-untyped-def]
        sizes = weights.node.size, weights.edge.size, weights.transition.size, weights.node.shape[1]
        keys, counts, _ = collect(0, len(units.gold), units.gold, rival, features, sizes, no_room())
        scale = size(loss, norm + squared_norm(counts), *numbers)
        apply(keys, counts, scale, step, sizes, weights, sums, moved)
        return scale

    return move


@inner_kernel
def _add_cost(unary, gold, cost, sums):  # type: ignore[no-untyped-def]
    """Fill sums (T, L) with unary (T, L) and a cost for every label that is not that of gold (T,)."""
    for t in range(len(gold)):
        for j in range(unary.shape[1]):
            sums[t, j] = unary[t, j] + (cost if j != gold[t] else 0.0)


@kernel
def _wrong(unary, edges, gold, rival, gap, margin, room, best):  # type: ignore[no-untyped-def]
    """Return at how many tokens the best labelling by score alone differs from gold (T,), knowing the rival and gap.

    With a cost it is searched for, in best (T,), unless the rival leads gold by less than one cost: what leads gold by
    score alone has at least one cost on top of that.
    """
    if margin.cost > 0:
        if -gap < margin.cost:
            return 0
        find_rival(unary, edges, len(gold), gold, False, room, best)
        return _differ(gold, best)
    if margin.other and not _precedes(gap, gold, rival):
        return 0
    return _differ(gold, rival)


@inner_kernel
def _differ(gold, rival):  # type: ignore[no-untyped-def]
    """Return at how many tokens gold (T,) and the rival have different labels."""
    found = 0
    for t in range(len(gold)):
        found += gold[t] != rival[t]
    return found


@inner_kernel
def _precedes(gap, gold, rival):  # type: ignore[no-untyped-def]
    """Whether the rival comes before gold (T,) among candidates: it scores more, or as much and has lower labels."""
    if gap != 0.0:
        return gap < 0.0
    for t in range(len(gold)):
        if rival[t] != gold[t]:
            return rival[t] < gold[t]
    return False
