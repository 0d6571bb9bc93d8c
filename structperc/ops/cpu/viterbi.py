"""The best label sequence, and the best scores before and after each label with their gradients."""

import numpy as np
import torch
from torch import Tensor

from structperc.kernels.best_path import (
    any_invalid,
    best_by_columns,
    best_by_rows,
    edge_blocks,
    fill_edge_blocks,
    has_invalid_scores,
    suffix_scores,
    trace_best_path,
)
from structperc.kernels.jit import kernel, subkernel, subkernel_no_alloc
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
from structperc.ops.cpu.checks import check_lengths, check_scores
from structperc.ops.cpu.threads import run_in_threads


def viterbi(unary: Tensor, edge: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """Implement `structperc.ops.operators.viterbi`."""
    B, T, L = unary.shape
    scores, labels = unary.new_empty(B), lengths.new_empty(B, T)
    if run_in_threads(_search, B, 2 * T * (WIDTH + L * L // WIDTH), unary, edge, lengths, scores, labels):
        check_scores(unary, edge, lengths)
    return scores, labels


@kernel
def _search(start, stop, unary, edge, lengths, scores, labels):
    each = len(edge) > 1 or any_invalid(edge.reshape(-1), np.int64(0), edge.size)
    _, T, L = unary.shape
    into = edge_blocks(edge[0], unary.dtype)
    fill_edge_blocks(edge[0], into)
    suffix, best = padded_array(T, L, unary.dtype), padded_array(T, L, unary.dtype)
    for b in range(start, stop):
        length, edges = lengths[b], edge[0 if len(edge) == 1 else b]
        if not 0 <= length <= T or has_invalid_scores(unary[b], edges, length, each):
            return True
        if len(edge) > 1:
            fill_edge_blocks(edges, into)
        suffix_scores(unary[b], edges, into, length, suffix, best)
        labels[b] = 0
        scores[b] = trace_best_path(unary[b], edges, length, suffix, best, labels[b]) if length else 0.0
    return False


def best_before_and_after(unary: Tensor, edge: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """Implement `structperc.ops.operators.best_before_and_after`."""
    B, T, L = unary.shape
    before, after = unary.new_zeros(B, T, L), unary.new_zeros(B, T, L)
    if run_in_threads(_find, B, 4 * T * (WIDTH + L * L // WIDTH), unary, edge, lengths, before, after):
        check_lengths(lengths, T)
    return before, after


def best_before_and_after_backward(
    unary: Tensor, edge: Tensor, lengths: Tensor, grad_before: Tensor, grad_after: Tensor
) -> tuple[Tensor, Tensor]:
    """Implement `structperc.ops.operators.best_before_and_after_backward`."""
    B, T, L = unary.shape
    own = torch.zeros(B, T, L, dtype=torch.float64)
    steps = torch.zeros(B, *edge.shape[1:], dtype=torch.float64)
    run_in_threads(_push, B, 8 * T * L * L, unary, edge, lengths, grad_before, grad_after, own, steps)
    return own.to(unary.dtype), steps.sum_to_size(edge.shape).to(edge.dtype)


@kernel
def _find(start, stop, unary, edge, lengths, before, after):
    each, (_, T, L) = len(edge) > 1 or any_invalid(edge.reshape(-1), np.int64(0), edge.size), unary.shape
    states = padded_array(2 * T, L, np.empty(0).dtype).reshape(2, T, -1)
    for b in range(start, stop):
        if not 0 <= lengths[b] <= T:
            return True
        length, edges = lengths[b], edge[0 if len(edge) == 1 else b]
        if has_invalid_scores(unary[b], edges, length, each):
            before[b, :length], after[b, :length] = np.nan, np.nan
            continue
        _before_and_after(unary[b], edges, length, states)
        for t in range(length):
            for j in range(L):
                before[b, t, j] = states[0, t, j]
                after[b, t, j] = states[1, t, j]
    return False


@subkernel
def _before_and_after(unary, edge, length, states):
    """Fill states (2, T, W) with the best scores before and after each label; edge is (T or 1, L, L)."""
    L, width, stationary, into = unary.shape[1], states.shape[2], len(edge) == 1, edge_blocks(edge, states.dtype)
    before, after, here = states[0], states[1], padded_array(1, L, states.dtype)  # here: a token's, plus own scores
    fill_edge_blocks(edge, into)
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


@subkernel_no_alloc(forceinline=True)
def _with_own(state, unary, t, here):
    """Fill here with the states of token t plus its own scores."""
    L, width = unary.shape[1], state.shape[1]
    for j in range(0, width, WIDTH):
        store(here, j, load(state, t * width + j) + cast_like(load_masked(unary, t * L + j, L - j), here))


@kernel
def _push(start, stop, unary, edge, lengths, grad_before, grad_after, own, steps):
    """Add the gradients of states to the scores that they are sums of; the lowest of equal labels gets all."""
    _, T, L = unary.shape
    states, pushed = padded_array(2 * T, L, np.empty(0).dtype).reshape(2, T, -1), np.empty((T, L))
    for b in range(start, stop):
        length, edges = lengths[b], edge[0 if len(edge) == 1 else b]
        _before_and_after(unary[b], edges, length, states)
        for direction in range(2):
            grads = grad_before[b] if direction == 0 else grad_after[b]
            for t in range(length):
                for j in range(L):
                    pushed[t, j] = grads[t, j] if states[direction, t, j] > -np.inf else 0.0
            for t in range(length - 1, 0, -1) if direction == 0 else range(length - 1):
                _push_to_neighbour(direction, t, unary[b], edges, states[direction], pushed, own[b], steps[b])


@subkernel_no_alloc
def _push_to_neighbour(direction, t, unary, edge, states, pushed, own, steps):
    """Push gradients of token t to the token before (direction 0) or after it (direction 1)."""
    L = unary.shape[1]
    source, at = (t - 1, t) if direction == 0 else (t + 1, t + 1)
    if len(edge) == 1:
        at = 0
    for label in range(L):
        gradient = pushed[t, label]
        if gradient == 0.0:
            continue
        best, highest = 0, -np.inf
        for other in range(L):
            i, j = (other, label) if direction == 0 else (label, other)
            score = (states[source, other] + unary[source, other]) + edge[at, i, j]
            if score > highest:
                best, highest = other, score
        pushed[source, best] += gradient
        own[source, best] += gradient
        i, j = (best, label) if direction == 0 else (label, best)
        steps[at, i, j] += gradient
