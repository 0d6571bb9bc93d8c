"""Viterbi, compiled: backwards over the tokens for the best score from each label on, forwards for the labels."""

import numpy as np
import torch
from torch import Tensor

from structperc.ops.cpu.checks import check_scores, unfit_edges, unfit_sequence
from structperc.ops.cpu.compiled import arrays, kernel
from structperc.ops.cpu.lanes import WIDTH, first_equal, like, load, load_some, padded
from structperc.ops.cpu.onward import columns, onward_scores
from structperc.ops.cpu.threads import over_sequences, take


def viterbi(unary: Tensor, edge: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """The contract is that of `structperc.ops.viterbi`."""
    B, T, L = unary.shape
    scores, labels = torch.empty(B, dtype=unary.dtype), torch.empty(B, T, dtype=torch.int64)
    if over_sequences(_search, B, 2 * T * (WIDTH + L * L // WIDTH), *arrays(unary, edge, lengths, scores, labels)):
        check_scores(unary, edge, lengths)
    return scores, labels


@kernel
def _search(turns, unary, edge, lengths, scores, labels):  # type: ignore[no-untyped-def]
    unfit = unfit_edges(unary, edge)
    _, T, L = unary.shape
    into, onward, best = columns(edge[0], unary), padded(T, L, unary), padded(T, L, unary)
    for b in range(len(unary)):
        if not take(b, turns):
            continue
        if unfit or unfit_sequence(b, unary, edge, lengths):
            return True
        length, edges = lengths[b], edge[0 if len(edge) == 1 else b]
        if len(edge) > 1:
            into = columns(edges, unary)
        onward_scores(unary[b], edges, into, length, onward, best)
        labels[b] = 0
        scores[b] = follow(unary[b], edges, length, onward, best, labels[b]) if length else 0.0
    return False


@kernel
def follow(unary, edge, length, onward, best, labels):  # type: ignore[no-untyped-def]
    """Fill labels (T,) with the best labelling, the lowest label among equals, and return its score."""
    highest = onward[0].max()
    if highest == -np.inf:
        return -np.inf
    label = labels[0] = onward[0].argmax()
    own, steps = np.float64(unary[0, label]), 0.0
    for t in range(1, length):
        at = 0 if len(edge) == 1 else t
        before, label = label, _first(edge, at, label, onward, t, best[t - 1, label])
        own += unary[t, label]
        steps += edge[at, before, label]
        labels[t] = label
    return own + steps


@kernel(forceinline=True)
def _first(edge, at, before, onward, t, highest):  # type: ignore[no-untyped-def]
    """Return the lowest label of token t whose sum of edge after a label before and onward is the highest one."""
    first, L, width = 0, edge.shape[1], onward.shape[1]
    row = (at * L + before) * L
    for j in range(width - WIDTH, -1, -WIDTH):
        step = like(load_some(edge, row + j, L - j), onward)
        lane = first_equal(step + load(onward, t * width + j), highest)
        first = j + lane if lane < WIDTH else first
    return first
