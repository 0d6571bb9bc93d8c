"""Sums over all label sequences: probabilities, samples, and log-sums over the next label."""

import numpy as np
import torch
from torch import Tensor

from structperc.kernels.best_path import any_invalid, has_invalid_scores, subtract_levels
from structperc.kernels.jit import kernel, subkernel_no_alloc
from structperc.kernels.simd import WIDTH, exp
from structperc.kernels.sum_product import (
    edge_factors,
    log_sum,
    max_score,
    suffix_log_sums,
    workspace,
)
from structperc.kernels.sum_product import forward_backward as expect
from structperc.ops.cpu.checks import check_lengths, check_scores
from structperc.ops.cpu.threads import run_in_threads


def forward_backward(unary: Tensor, edge: Tensor, lengths: Tensor, with_pairs: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Implement `structperc.ops.operators.forward_backward`."""
    B, T, L = unary.shape
    each = 1 if edge.shape[1] == 1 else T
    totals, nodes = unary.new_zeros(B), unary.new_empty(B, T, L)
    pairs = unary.new_empty(B if with_pairs else 1, each if with_pairs else 0, L, L)
    work = 4 * T * (2 * WIDTH + L * L // WIDTH)
    if run_in_threads(_both_passes, B, work, unary, edge, lengths, totals, nodes, pairs):
        check_lengths(lengths, T)
    return totals, nodes, pairs if with_pairs else pairs.view(0)


@kernel
def _both_passes(start, stop, unary, edge, lengths, totals, nodes, pairs):
    _, T, L = unary.shape
    M = edge.shape[1]
    space, level, small, known = workspace(T, M, L), 0.0, False, False
    for b in range(start, stop):
        if not 0 <= lengths[b] <= T:
            return True
        length, into = lengths[b], pairs[0 if len(pairs) == 1 else b]
        if length == 0:
            nodes[b], into[:] = 0, 0
            continue
        edges = edge[0 if len(edge) == 1 else b]
        if not known:
            level, small = edge_factors(edges, length, space)
            known = M == 1 and len(edge) == 1
        none = nodes[b, :0]
        totals[b], scaled = expect(unary[b], edges, length, space, level, small, nodes[b], into, none, none)
        if scaled:
            nodes[b, length:] = 0
            if M > 1:
                into[:1], into[length:] = 0, 0
    return False


def sample(unary: Tensor, edge: Tensor, lengths: Tensor, noise: Tensor) -> Tensor:
    """Implement `structperc.ops.operators.sample`."""
    labels = torch.zeros(noise.shape, dtype=torch.int64)
    B, T, L = unary.shape
    if run_in_threads(_draw, B, 16 * T * L * (L + noise.shape[1]), unary, edge, lengths, noise, labels):
        check_scores(unary, edge, lengths)
    return labels


@kernel
def _draw(start, stop, unary, edge, lengths, noise, labels):
    each = len(edge) > 1 or any_invalid(edge.reshape(-1), np.int64(0), edge.size)
    _, T, L = unary.shape
    own, after, below = np.empty((T, L)), np.empty((T, L)), np.empty(L)
    for b in range(start, stop):
        length, edges = lengths[b], edge[0 if len(edge) == 1 else b]
        if not 0 <= length <= T or has_invalid_scores(unary[b], edges, length, each):
            return True
        if length == 0:
            continue
        subtract_levels(unary[b], length, own)
        suffix_log_sums(own, edges, length, after)
        own += after
        if max_score(own[0]) == -np.inf:
            continue
        for s in range(noise.shape[1]):
            for t in range(length):
                for j in range(L):
                    below[j] = own[t, j]
                    if t > 0:
                        below[j] += edges[0 if len(edges) == 1 else t, labels[b, s, t - 1], j]
                labels[b, s, t] = _first_above(below, noise[b, s, t])
    return False


@subkernel_no_alloc
def _first_above(scores, noise):
    """Return the first possible label whose cumulative share of exp(scores) exceeds the noise.

    The scores (L,) are overwritten.
    """
    highest, total = max_score(scores), 0.0
    for j in range(len(scores)):
        scores[j] = exp(scores[j] - highest)
        total += scores[j]
    below, last = 0.0, 0
    for j in range(len(scores)):
        if scores[j] > 0.0:
            below, last = below + scores[j], j
            if below > noise * total:
                break
    return last


def local_log_partition(unary: Tensor, edge: Tensor, lengths: Tensor) -> Tensor:
    """Implement `structperc.ops.operators.local_log_partition`."""
    B, T, L = unary.shape
    sums = unary.new_zeros(B, T, L)
    if run_in_threads(_log_sums, B, 16 * T * L * L, unary, edge, lengths, sums):
        check_lengths(lengths, T)
    return sums


def local_log_partition_backward(unary: Tensor, edge: Tensor, lengths: Tensor, grad: Tensor) -> tuple[Tensor, Tensor]:
    """Implement `structperc.ops.operators.local_log_partition_backward`."""
    B, T, L = unary.shape
    own, steps = unary.new_zeros(B, T, L), unary.new_zeros(B, *edge.shape[1:])
    run_in_threads(_shares, B, 16 * T * L * L, unary, edge, lengths, grad, own, steps)
    return own, steps.sum_to_size(edge.shape)


@kernel
def _log_sums(start, stop, unary, edge, lengths, sums):
    _, T, L = unary.shape
    scores = np.empty(L)
    for b in range(start, stop):
        if not 0 <= lengths[b] <= T:
            return True
        edges = edge[0 if len(edge) == 1 else b]
        for t in range(1, lengths[b]):
            for i in range(L):
                for j in range(L):
                    scores[j] = float(unary[b, t, j]) + edges[0 if len(edges) == 1 else t, i, j]
                total = log_sum(scores) if scores.sum() < np.inf else np.nan
                sums[b, t - 1, i] = np.inf if total == -np.inf else total
    return False


@kernel
def _shares(start, stop, unary, edge, lengths, grad, own, steps):
    L = unary.shape[2]
    scores = np.empty(L)
    for b in range(start, stop):
        edges = edge[0 if len(edge) == 1 else b]
        for t in range(1, lengths[b]):
            at = 0 if len(edges) == 1 else t
            for i in range(L):
                for j in range(L):
                    scores[j] = float(unary[b, t, j]) + edges[at, i, j]
                total = log_sum(scores)
                if total == -np.inf:
                    continue
                for j in range(L):
                    share = exp(min(scores[j] - total, 0.0)) * grad[b, t - 1, i]
                    own[b, t, j] += share
                    steps[b, at, i, j] += share
