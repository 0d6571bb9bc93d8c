"""Scores of given label sequences and their transpose."""

import torch
from torch import Tensor

from structperc.kernels.jit import kernel
from structperc.ops.cpu.checks import check_labels, check_lengths
from structperc.ops.cpu.threads import run_in_threads


def path_score(unary: Tensor, edge: Tensor, lengths: Tensor, labels: Tensor, rows: Tensor) -> Tensor:
    """Implement `structperc.ops.operators.path_score`."""
    scores = unary.new_empty(len(labels))
    if run_in_threads(_score, len(labels), 2 * labels.shape[1], unary, edge, lengths, labels, rows, scores):
        check_lengths(lengths, unary.shape[1])
        check_labels(labels, lengths, rows, unary.shape[2])
    return scores


def path_counts(
    weights: Tensor, lengths: Tensor, labels: Tensor, rows: Tensor, unary: list[int], edge: list[int]
) -> tuple[Tensor, Tensor]:
    """Implement `structperc.ops.operators.path_counts`."""
    own = weights.new_zeros(unary)
    shared = 1 in edge[:2]  # by sequences or tokens, so that sums are long
    steps = torch.zeros(edge, dtype=torch.float64 if shared else weights.dtype)
    _count(*(x.detach().contiguous().numpy() for x in (weights, lengths, labels, rows, own, steps)))
    return own, steps.to(weights.dtype)


@kernel
def _score(start, stop, unary, edge, lengths, labels, rows, scores):
    _, T, L = unary.shape
    for s in range(start, stop):
        if not 0 <= lengths[rows[s]] <= T:
            return True
        b, before, own, steps = rows[s], 0, 0.0, 0.0
        for t in range(lengths[b]):
            label = labels[s, t]
            if label < 0 or label >= L:
                return True
            own += unary[b, t, label]
            if t > 0:
                steps += edge[0 if len(edge) == 1 else b, 0 if edge.shape[1] == 1 else t, before, label]
            before = label
        scores[s] = own + steps
    return False


@kernel
def _count(weights, lengths, labels, rows, own, steps):
    L = own.shape[2]
    for s in range(len(labels)):
        b, before = rows[s], -1
        for t in range(lengths[b]):
            label = labels[s, t] if 0 <= labels[s, t] < L else -1
            if label >= 0:
                own[b, t, label] += weights[s]
            if t > 0 and label >= 0 and before >= 0:
                steps[0 if len(steps) == 1 else b, 0 if steps.shape[1] == 1 else t, before, label] += weights[s]
            before = label
