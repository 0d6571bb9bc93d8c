"""Best scores before and after each label, compiled, and their gradients pushed back along the best labels."""

import numpy as np
import torch
from torch import Tensor

from structperc.kernels.jit import kernel, subkernel
from structperc.kernels.simd import (
    WIDTH,
    broadcast,
    cast_like,
    load,
    load_broadcast,
    load_masked,
    maximum,
    padded_array,
    store,
)
from structperc.kernels.viterbi import best_by_columns, best_by_rows, edge_blocks
from structperc.ops.cpu.checks import check_lengths, has_invalid_scores, length_out_of_range, unfit_edges
from structperc.ops.cpu.threads import run_in_threads, take


def best_before_and_after(unary: Tensor, edge: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """The contract is that of `structperc.ops.best_before_and_after`."""
    B, T, L = unary.shape
    before, after = unary.new_zeros(B, T, L), unary.new_zeros(B, T, L)
    if run_in_threads(_find, B, 4 * T * (WIDTH + L * L // WIDTH), unary, edge, lengths, before, after):
        check_lengths(lengths, T)
    return before, after


def push_back(
    unary: Tensor, edge: Tensor, lengths: Tensor, grad_before: Tensor, grad_after: Tensor
) -> tuple[Tensor, Tensor]:
    """The contract is that of `structperc.ops.push_back`."""
    B, T, L = unary.shape
    own = torch.zeros(B, T, L, dtype=torch.float64)
    steps = torch.zeros(B, *edge.shape[1:], dtype=torch.float64)
    run_in_threads(_push, B, 8 * T * L * L, unary, edge, lengths, grad_before, grad_after, own, steps)
    return own.to(unary.dtype), steps.sum_to_size(edge.shape).to(edge.dtype)


@subkernel
def _find(side, turns, unary, edge, lengths, before, after):  # type: ignore[no-untyped-def]
    shared, (_, T, L) = unfit_edges(unary, edge), unary.shape
    states, here = _room(T, L)
    for _ in range(len(unary)):
        b = take(side, turns)
        if b < 0:
            break
        if length_out_of_range(lengths[b], T):
            return True
        length = lengths[b]
        if has_invalid_scores(b, unary, edge, lengths, shared):
            before[b, :length], after[b, :length] = np.nan, np.nan
            continue
        _both_ways(unary[b], edge[0 if len(edge) == 1 else b], length, states, here)
        for t in range(length):
            for j in range(L):
                before[b, t, j] = states[0, t, j]
                after[b, t, j] = states[1, t, j]
    return False


@kernel
def _room(T, L):  # type: ignore[no-untyped-def]
    """Make arrays (2, T, L) and (1, L) of float64, L rounded up to whole lanes."""
    here = padded_array(1, L, np.empty(0))
    return padded_array(2 * T, L, here).reshape(2, T, here.shape[1]), here


@kernel
def _both_ways(unary, edge, length, states, here):  # type: ignore[no-untyped-def]
    """Fill states (2, T, L) with the best scores before and after each label; edge is (T or 1, L, L).

    Both and here (1, L) are what `_room` makes; here are the states of one token and its own scores, added up.
    """
    L, width, stationary, into = unary.shape[1], states.shape[2], len(edge) == 1, edge_blocks(edge, here)
    before, after = states
    for t in range(length):
        for j in range(0, width, WIDTH):
            best = broadcast(-np.inf if t else 0.0)
            for i in range(L if t else 0):
                step = load_masked(edge, ((0 if stationary else t) * L + i) * L + j, L - j)
                best = maximum(cast_like(step, here) + load_broadcast(here, i), best)
            store(before, t * width + j, best)
        _with_own(before, unary, t, here)
    for t in range(length - 1, -1, -1):
        if t < length - 1 and not stationary:
            best_by_rows(edge, t + 1, here, 0, after, t)
        for i in range(0, width, WIDTH):
            if t == length - 1:
                store(after, t * width + i, broadcast(0.0))
            elif stationary:
                store(after, t * width + i, best_by_columns(into, i // WIDTH, here, 0))
        _with_own(after, unary, t, here)


@subkernel(forceinline=True)
def _with_own(state, unary, t, here):  # type: ignore[no-untyped-def]
    """Fill here with the states of token t and its own scores."""
    L, width = unary.shape[1], state.shape[1]
    for j in range(0, width, WIDTH):
        store(here, j, load(state, t * width + j) + cast_like(load_masked(unary, t * L + j, L - j), here))


@subkernel
def _push(side, turns, unary, edge, lengths, grad_before, grad_after, own, steps):  # type: ignore[no-untyped-def]
    """Push what arrives at labels back to the scores that it was made of: the lowest of equal labels gets it all."""
    _, T, L = unary.shape
    (states, here), pushed = _room(T, L), np.empty((T, L))
    for _ in range(len(unary)):
        b = take(side, turns)
        if b < 0:
            break
        length, edges = lengths[b], edge[0 if len(edge) == 1 else b]
        _both_ways(unary[b], edges, length, states, here)
        for way in range(2):
            grads = grad_before[b] if way == 0 else grad_after[b]
            for t in range(length):
                for j in range(L):
                    pushed[t, j] = grads[t, j] if states[way, t, j] > -np.inf else 0.0
            for t in range(length - 1, 0, -1) if way == 0 else range(length - 1):
                _outwards(way, t, unary[b], edges, states[way], pushed, own[b], steps[b])


@subkernel
def _outwards(way, t, unary, edge, states, pushed, own, steps):  # type: ignore[no-untyped-def]
    """Push gradients of token t to the token before (way 0) or after it (way 1)."""
    L = unary.shape[1]
    source, at = (t - 1, t) if way == 0 else (t + 1, t + 1)
    if len(edge) == 1:
        at = 0
    for label in range(L):
        gradient = pushed[t, label]
        if gradient == 0.0:
            continue
        best, highest = 0, -np.inf
        for other in range(L):
            i, j = (other, label) if way == 0 else (label, other)
            score = (states[source, other] + unary[source, other]) + edge[at, i, j]
            if score > highest:
                best, highest = other, score
        pushed[source, best] += gradient
        own[source, best] += gradient
        i, j = (best, label) if way == 0 else (label, best)
        steps[at, i, j] += gradient
