"""Forward-backward on logarithms, compiled: for lattices whose products of probabilities might vanish."""

import numpy as np

from structperc.kernels.compiled import ORDERED, kernel, kernel_part
from structperc.kernels.exponential import exp


@kernel_part
def expect_by_logs(unary, edge, length, nodes, pairs):  # type: ignore[no-untyped-def]
    """Fill nodes (T, L) and pairs (T or 1 or 0, L, L) with probabilities and return the log-partition.

    unary is (T, L), edge (T or 1, L, L), length at least 1. Nodes and pairs are 0 before.
    """
    T, L = unary.shape
    own, after, before = np.empty((T, L)), np.zeros((T, L)), np.zeros((T, L))
    level = levelled(unary, length, own)
    arrivals(own, edge, length, before)
    completions(own, edge, length, after)
    scores = np.empty((L, L))
    total = 0.0
    for t in range(length):
        if t > 0:
            step = edge[0 if len(edge) == 1 else t]
            if len(pairs):
                for i in range(L):
                    for j in range(L):
                        left = before[t - 1, i] + own[t - 1, i]
                        scores[i, j] = left + step[i, j] + (own[t, j] + after[t, j])
                _add_shares(scores, pairs[0 if len(pairs) == 1 else t])
        for j in range(L):
            scores[0, j] = before[t, j] + own[t, j] + after[t, j]
        if t == 0:
            total = log_sum(scores[0])
        _add_shares(scores[:1], nodes[t : t + 1])
    return total + level


@kernel
def levelled(unary, length, own):  # type: ignore[no-untyped-def]
    """Fill own (T, L) with scores whose highest at each token is 0, and return the sum of what was taken off."""
    total = 0.0
    for t in range(length):
        highest = float(largest(unary[t]))
        if highest == -np.inf:
            highest = 0.0
        for j in range(unary.shape[1]):
            own[t, j] = unary[t, j] - highest
        total += highest
    return total


@kernel
def completions(own, edge, length, after):  # type: ignore[no-untyped-def]
    """Fill after (T, L) with log-sums over all that may follow each label; 0 at the last token."""
    _, L = own.shape
    terms = np.empty(L)
    for j in range(L):
        after[length - 1, j] = 0.0
    for t in range(length - 1, 0, -1):
        step = edge[0 if len(edge) == 1 else t]
        for i in range(L):
            for j in range(L):
                terms[j] = step[i, j] + (own[t, j] + after[t, j])
            after[t - 1, i] = log_sum(terms)


@kernel
def arrivals(own, edge, length, before):  # type: ignore[no-untyped-def]
    """Fill before (T, L) with log-sums over all that may precede each label; 0 at the first token."""
    _, L = own.shape
    terms = np.empty(L)
    for j in range(L):
        before[0, j] = 0.0
    for t in range(1, length):
        step = edge[0 if len(edge) == 1 else t]
        for j in range(L):
            for i in range(L):
                terms[i] = (before[t - 1, i] + own[t - 1, i]) + step[i, j]
            before[t, j] = log_sum(terms)


@kernel(fastmath=ORDERED)
def largest(scores):  # type: ignore[no-untyped-def]
    """Return the highest of scores (L,)."""
    highest = scores[0]
    for j in range(1, len(scores)):
        highest = scores[j] if scores[j] > highest else highest
    return highest


@kernel(fastmath=ORDERED)
def log_sum(scores):  # type: ignore[no-untyped-def]
    """log of the sum of exp(scores), -inf where all are."""
    highest = largest(scores)
    if highest == -np.inf:
        return highest
    total = 0.0
    for j in range(len(scores)):
        total += exp(scores[j] - highest)
    return np.log(total) + highest


@kernel_part
def _add_shares(scores, found):  # type: ignore[no-untyped-def]
    """Add exp(scores) over their sum to found, both (M, L); nothing where nothing is possible."""
    highest = scores.max()
    if highest == -np.inf:
        return
    total = 0.0
    for i in range(scores.shape[0]):
        for j in range(scores.shape[1]):
            scores[i, j] = exp(scores[i, j] - highest)
            total += scores[i, j]
    for i in range(scores.shape[0]):
        for j in range(scores.shape[1]):
            found[i, j] += scores[i, j] / total
