"""Sampling, compiled: log-sums backwards, labels drawn forwards."""

import numpy as np
import torch
from torch import Tensor

from structperc.kernels.forward_backward import max_score, subtract_levels, suffix_log_sums
from structperc.kernels.jit import subkernel
from structperc.kernels.simd import exp
from structperc.ops.cpu.checks import check_scores, has_invalid_scores, length_out_of_range, unfit_edges
from structperc.ops.cpu.threads import run_in_threads, take


def sample(unary: Tensor, edge: Tensor, lengths: Tensor, noise: Tensor) -> Tensor:
    """The contract is that of `structperc.ops.sample`."""
    labels = torch.zeros(noise.shape, dtype=torch.int64)
    B, T, L = unary.shape
    if run_in_threads(_draw, B, 16 * T * L * (L + noise.shape[1]), unary, edge, lengths, noise, labels):
        check_scores(unary, edge, lengths)
    return labels


@subkernel
def _draw(side, turns, unary, edge, lengths, noise, labels):  # type: ignore[no-untyped-def]
    shared = unfit_edges(unary, edge)
    _, T, L = unary.shape
    own, after, below = np.empty((T, L)), np.empty((T, L)), np.empty(L)
    for _ in range(len(unary)):
        b = take(side, turns)
        if b < 0:
            break
        if length_out_of_range(lengths[b], T) or has_invalid_scores(b, unary, edge, lengths, shared):
            return True
        length, edges = lengths[b], edge[0 if len(edge) == 1 else b]
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
                labels[b, s, t] = _passed(below, noise[b, s, t])
    return False


@subkernel
def _passed(scores, noise):  # type: ignore[no-untyped-def]
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
