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
    into, best = edge[0].T.copy(), np.empty(L, unary.dtype)
    for t in range(length - 1, -1, -1):
        if t == length - 1:
            for i in range(L):
                best[i] = 0
        elif stationary:
            _best_by_columns(into, onward[t + 1], best)
        else:
            _best_by_rows(edge[t + 1], onward[t + 1], best)
        level = unary[t, 0]
        for j in range(1, L):
            level = max(level, unary[t, j])
        if level == -np.inf:
            level = unary.dtype.type(0)
        for i in range(L):
            onward[t, i] = (unary[t, i] - level) + best[i]


@kernel(fastmath=ORDERED, forceinline=True)
def _best_by_rows(step, after, best):  # type: ignore[no-untyped-def]
    """Fill best (L,) with the highest sum of step (L, L following) and after (L following,), label by label."""
    for i in range(len(after)):
        highest = step[i, 0] + after[0]
        for j in range(1, len(after)):
            score = step[i, j] + after[j]
            if score > highest:
                highest = score
        best[i] = highest


@kernel(fastmath=ORDERED, forceinline=True)
def _best_by_columns(into, after, best):  # type: ignore[no-untyped-def]
    """Fill best (L,) with the highest sum of into (L following, L) and after (L following,), all labels side by side.

    Labels that follow are taken four at a time, so that the best scores so far are read and written a quarter as often.
    """
    L = len(after)
    for i in range(L):
        best[i] = -np.inf
    for j in range(0, L - 3, 4):
        for i in range(L):
            a, b = into[j, i] + after[j], into[j + 1, i] + after[j + 1]
            c, d = into[j + 2, i] + after[j + 2], into[j + 3, i] + after[j + 3]
            a, c = a if a > b else b, c if c > d else d
            a = a if a > c else c
            best[i] = a if a > best[i] else best[i]
    for j in range(L - L % 4, L):
        for i in range(L):
            score = into[j, i] + after[j]
            best[i] = score if score > best[i] else best[i]


@kernel
def _search(first, step, unary, edge, lengths, scores, labels):  # type: ignore[no-untyped-def]
    _, T, L = unary.shape
    onward = np.empty((T, L), unary.dtype)
    for b in range(first, unary.shape[0], step):
        length = lengths[b]
        edges = edge[0 if edge.shape[0] == 1 else b]
        onward_scores(unary[b], edges, length, onward)
        scores[b] = _follow(unary[b], edges, length, onward, labels[b])


@kernel(fastmath=ORDERED)
def _follow(unary, edge, length, onward, labels):  # type: ignore[no-untyped-def]
    """Fill labels (T,) with the best labelling, the lowest label among equals, and return its score."""
    L = unary.shape[1]
    own, steps, label = 0.0, 0.0, 0
    for t in range(length):
        step, ahead = edge[0 if edge.shape[0] == 1 else t, label], onward[t]
        best, score = 0, ahead[0] + step[0] if t else ahead[0]
        for j in range(1, L):
            other = ahead[j] + step[j] if t else ahead[j]
            best = j if other > score else best
            score = other if other > score else score
        if score == -np.inf:
            labels[:t] = 0
            return -np.inf
        own += unary[t, best]
        steps += step[best] if t else 0.0
        label = labels[t] = best
    return own + steps
