"""Scores of given label sequences in tensor operations: entries of the tables, gathered and summed."""

import torch
from torch import Tensor

from structperc.ops.reference.scan import high_precision, steps_and_lengths
from structperc.structures import real_tokens


def path_score(unary: Tensor, edge: Tensor, lengths: Tensor, labels: Tensor, rows: Tensor) -> Tensor:
    """Implement `structperc.ops.operators.path_score`."""
    _, T, L = unary.shape
    steps, lengths = steps_and_lengths(unary, lengths)
    real = real_tokens(lengths[rows], unary.shape[1])
    known = ((labels >= 0) & (labels < L)) | ~real
    labels = torch.where(real & known, labels, 0)
    own = unary[rows.unsqueeze(1), steps, labels]
    table, place = edge.expand(-1, T, -1, -1), rows if edge.shape[0] > 1 else torch.zeros_like(rows)
    before = labels[:, (steps - 1).clamp(min=0)]  # no slice, for which an exporter requires three tokens
    pairs = torch.where(real & (steps > 0), table[place.unsqueeze(1), steps, before, labels], 0)
    total = high_precision(torch.where(real, own, 0)).sum(1) + high_precision(pairs).sum(1)
    return torch.where(known.all(1), total, torch.nan).to(unary.dtype)


def path_counts(
    weights: Tensor, lengths: Tensor, labels: Tensor, rows: Tensor, unary: list[int], edge: list[int]
) -> tuple[Tensor, Tensor]:
    """Implement `structperc.ops.operators.path_counts`."""
    (_, T, L), many = unary, [int(n > 1) for n in edge[:2]]
    own, steps = weights.new_zeros(unary), weights.new_zeros(edge)
    step, lengths = steps_and_lengths(own, lengths)
    real = real_tokens(lengths[rows], T) & (labels >= 0) & (labels < L)
    labels = torch.where(real, labels, 0)
    uses = torch.where(real, weights.unsqueeze(1), 0)
    token = rows.unsqueeze(1) * T + step
    own.view(-1).index_add_(0, (token * L + labels).flatten(), uses.flatten())
    both = torch.where(real[:, :-1], uses[:, 1:], 0)
    pair = (rows.unsqueeze(1) * many[0] * edge[1] + step[1:] * many[1]) * L**2 + labels[:, :-1] * L + labels[:, 1:]
    steps.view(-1).index_add_(0, pair.flatten(), both.flatten())
    return own, steps
