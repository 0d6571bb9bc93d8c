"""Log-sums over the next label, compiled."""

import numpy as np
from torch import Tensor

from structperc.kernels.forward_backward import log_sum
from structperc.kernels.jit import kernel, subkernel
from structperc.kernels.simd import exp
from structperc.ops.cpu.checks import check_lengths
from structperc.ops.cpu.threads import run_in_threads, take


def log_following(unary: Tensor, edge: Tensor, lengths: Tensor) -> Tensor:
    """The contract is that of `structperc.ops.log_following`."""
    check_lengths(lengths, unary.shape[1])
    B, T, L = unary.shape
    sums = unary.new_zeros(B, T, L)
    run_in_threads(_sum, B, 16 * T * L * L, unary, edge, lengths, sums)
    return sums


def following_shares(unary: Tensor, edge: Tensor, lengths: Tensor, grad: Tensor) -> tuple[Tensor, Tensor]:
    """The contract is that of `structperc.ops.following_shares`."""
    B, T, L = unary.shape
    own, steps = unary.new_zeros(B, T, L), unary.new_zeros(B, *edge.shape[1:])
    run_in_threads(_share, B, 16 * T * L * L, unary, edge, lengths, grad, own, steps)
    return own, steps.sum_to_size(edge.shape)


@subkernel
def _sum(side, turns, unary, edge, lengths, sums):  # type: ignore[no-untyped-def]
    L = unary.shape[2]
    scores = np.empty(L)
    for _ in range(len(unary)):
        b = take(side, turns)
        if b < 0:
            break
        edges = edge[0 if len(edge) == 1 else b]
        for t in range(1, lengths[b]):
            for i in range(L):
                _terms(unary[b, t], edges[0 if len(edges) == 1 else t, i], scores)
                total = log_sum(scores) if scores.sum() < np.inf else np.nan  # +inf and NaN are no scores
                sums[b, t - 1, i] = np.inf if total == -np.inf else total


@subkernel
def _share(side, turns, unary, edge, lengths, grad, own, steps):  # type: ignore[no-untyped-def]
    L = unary.shape[2]
    scores = np.empty(L)
    for _ in range(len(unary)):
        b = take(side, turns)
        if b < 0:
            break
        edges = edge[0 if len(edge) == 1 else b]
        for t in range(1, lengths[b]):
            at = 0 if len(edges) == 1 else t
            for i in range(L):
                _terms(unary[b, t], edges[at, i], scores)
                total = log_sum(scores)
                if total == -np.inf:
                    continue
                for j in range(L):
                    share = exp(min(scores[j] - total, 0.0)) * grad[b, t - 1, i]
                    own[b, t, j] += share
                    steps[b, at, i, j] += share


@kernel
def _terms(unary, edge, scores):  # type: ignore[no-untyped-def]
    for j in range(len(scores)):
        scores[j] = float(unary[j]) + edge[j]
