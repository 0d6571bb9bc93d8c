"""Best scores before and after each label, compiled, and their gradients pushed back along the best labels."""

import numpy as np
import torch
from torch import Tensor

from structperc.ops.cpu.checks import check_lengths, first_infinite
from structperc.ops.cpu.compiled import ORDERED, arrays, kernel, over_sequences


def best_before_and_after(unary: Tensor, edge: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """The contract is that of `structperc.ops.best_before_and_after`."""
    check_lengths(lengths, unary.shape[1])
    B, T, L = unary.shape
    before, after = unary.new_zeros(B, T, L), unary.new_zeros(B, T, L)
    over_sequences(_find, 2 * B * T * L * L, *arrays(unary, edge, lengths, before, after))
    if first_infinite(unary, edge, lengths) >= 0:  # of a training that has diverged, as it is soon told
        before.fill_(torch.nan)
    return before, after


def push_back(
    unary: Tensor, edge: Tensor, lengths: Tensor, grad_before: Tensor, grad_after: Tensor
) -> tuple[Tensor, Tensor]:
    """The contract is that of `structperc.ops.push_back`."""
    B, T, L = unary.shape
    own = torch.zeros(B, T, L, dtype=torch.float64)
    steps = torch.zeros(B, *edge.shape[1:], dtype=torch.float64)
    over_sequences(_push, 4 * B * T * L * L, *arrays(unary, edge, lengths, grad_before, grad_after, own, steps))
    return own.to(unary.dtype), steps.sum_to_size(edge.shape).to(edge.dtype)


@kernel
def _find(first, step, unary, edge, lengths, before, after):  # type: ignore[no-untyped-def]
    _, T, L = unary.shape
    states = np.empty((2, T, L))
    for b in range(first, len(unary), step):
        length = lengths[b]
        _both_ways(unary[b], edge[0 if len(edge) == 1 else b], length, states)
        for t in range(length):
            for j in range(L):
                before[b, t, j] = states[0, t, j]
                after[b, t, j] = states[1, t, j]


@kernel(fastmath=ORDERED)
def _both_ways(unary, edge, length, states):  # type: ignore[no-untyped-def]
    """Fill states (2, T, L) with the best scores before and after each label; edge is (T or 1, L, L)."""
    _, L = unary.shape
    stationary = len(edge) == 1
    before, after = states
    here = np.empty(L)
    for t in range(length):
        for j in range(L):
            before[t, j] = -np.inf if t else 0.0
        if t > 0:
            at = 0 if stationary else t
            for i in range(L):
                state = before[t - 1, i] + unary[t - 1, i]
                for j in range(L):
                    score = state + edge[at, i, j]
                    before[t, j] = score if score > before[t, j] else before[t, j]
    for t in range(length - 1, -1, -1):
        for i in range(L):
            best = 0.0
            if t < length - 1:
                at = 0 if stationary else t + 1
                best = -np.inf
                for j in range(L):
                    score = edge[at, i, j] + here[j]
                    best = score if score > best else best
            after[t, i] = best
        for j in range(L):
            here[j] = unary[t, j] + after[t, j]


@kernel
def _push(first, step, unary, edge, lengths, grad_before, grad_after, own, steps):  # type: ignore[no-untyped-def]
    """Push what arrives at labels back to the scores that it was made of: the lowest of equal labels gets it all."""
    _, T, L = unary.shape
    states, pushed = np.empty((2, T, L)), np.empty((T, L))
    for b in range(first, len(unary), step):
        length, edges = lengths[b], edge[0 if len(edge) == 1 else b]
        _both_ways(unary[b], edges, length, states)
        for way in range(2):
            grads = grad_before[b] if way == 0 else grad_after[b]
            for t in range(length):
                for j in range(L):
                    pushed[t, j] = grads[t, j] if states[way, t, j] > -np.inf else 0.0
            for t in range(length - 1, 0, -1) if way == 0 else range(length - 1):
                _outwards(way, t, unary[b], edges, states[way], pushed, own[b], steps[b])


@kernel
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
