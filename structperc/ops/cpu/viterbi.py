"""Viterbi, compiled: backwards over the tokens for the best score from each label on, forwards for the labels."""

import numpy as np
import torch
from torch import Tensor

from structperc.ops.cpu.checks import check_scores
from structperc.ops.cpu.compiled import ORDERED, arrays, kernel, over_sequences


def viterbi(unary: Tensor, edge: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """The contract is that of `structperc.ops.viterbi`."""
    check_scores(unary, edge, lengths)
    B, T, L = unary.shape
    scores, labels = torch.empty(B, dtype=unary.dtype), torch.zeros(B, T, dtype=torch.int64)
    over_sequences(_search, B * T * L * L, *arrays(unary, edge, lengths, scores, labels))
    return scores, labels


@kernel(fastmath=ORDERED)
def onward_scores(unary, edge, length, onward):  # type: ignore[no-untyped-def]
    """Fill onward (T, L) with the best score from each label on, scores levelled; edge is (T or 1, L, L)."""
    L = unary.shape[1]
    stationary = edge.shape[0] == 1
    for t in range(length - 1, -1, -1):
        level = unary[t, 0]
        for j in range(1, L):
            level = max(level, unary[t, j])
        if level == -np.inf:
            level = unary.dtype.type(0)
        if t == length - 1:
            for j in range(L):
                onward[t, j] = unary[t, j] - level
            continue
        step, after = edge[0 if stationary else t + 1], onward[t + 1]
        for i in range(L):
            best = step[i, 0] + after[0]
            for j in range(1, L):
                score = step[i, j] + after[j]
                if score > best:
                    best = score
            onward[t, i] = (unary[t, i] - level) + best


@kernel
def _search(first, step, unary, edge, lengths, scores, labels):  # type: ignore[no-untyped-def]
    _, T, L = unary.shape
    onward = np.empty((T, L), unary.dtype)
    for b in range(first, unary.shape[0], step):
        length = lengths[b]
        edges = edge[0 if edge.shape[0] == 1 else b]
        onward_scores(unary[b], edges, length, onward)
        scores[b] = _follow(unary[b], edges, length, onward, labels[b])


@kernel
def _follow(unary, edge, length, onward, labels):  # type: ignore[no-untyped-def]
    """Fill labels (T,) with the best labelling, the lowest label among equals, and return its score."""
    L = unary.shape[1]
    own, steps, label = 0.0, 0.0, 0
    for t in range(length):
        step = edge[0 if edge.shape[0] == 1 else t, label]
        best, score = 0, onward[t, 0] + (step[0] if t else unary.dtype.type(0))
        for j in range(1, L):
            other = onward[t, j] + (step[j] if t else unary.dtype.type(0))
            if other > score:
                best, score = j, other
        if score == -np.inf:
            labels[:t] = 0
            return -np.inf
        own += unary[t, best]
        if t:
            steps += step[best]
        label = labels[t] = best
    return own + steps
