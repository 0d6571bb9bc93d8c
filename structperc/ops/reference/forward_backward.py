"""Sums over all label sequences in tensor operations, on logarithms: probabilities, samples, sums over the next label.

All but samples have derivatives of any order.
"""

import torch
from torch import Tensor

from structperc.ops.reference.scan import (
    Rows,
    any_invalid,
    edges_into,
    high_precision,
    prefix_scores,
    scan,
    steps_and_lengths,
    subtract_levels,
    suffix_scores,
)
from structperc.structures import real_tokens


def forward_backward(unary: Tensor, edge: Tensor, lengths: Tensor, with_pairs: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Implement `structperc.ops.operators.forward_backward`."""
    (B, T, L), dtype = unary.shape, unary.dtype
    steps, lengths = steps_and_lengths(unary, lengths)
    real = real_tokens(lengths, T)
    own, levels = _own_and_levels(unary, real)
    table = high_precision(edge)
    before, after = prefix_scores(own, table, real, log_sum), suffix_scores(own, table, real, log_sum)
    through = before + own + after
    nodes = _shares(through, real)
    total = log_sum(through[:, 0]) + levels.sum(1) if T else levels.sum(1)
    invalid = any_invalid(unary.detach(), edge.detach(), lengths)
    total = torch.where(lengths > 0, total, 0).masked_fill(invalid, torch.nan)
    nodes = nodes.masked_fill((real & invalid.unsqueeze(1)).unsqueeze(2), torch.nan)
    if not with_pairs:
        return total.to(dtype), nodes.to(dtype), nodes.new_empty(0, dtype=dtype)
    left = torch.cat([own.new_zeros(B, min(T, 1), L), (before + own)[:, :-1]], 1)
    into = left.unsqueeze(3) + (own + after).unsqueeze(2)
    later = real & (steps > 0)
    pairs = _shares((into + table).flatten(2), later).view(B, T, L, L)
    pairs = pairs.masked_fill((later & invalid.unsqueeze(1))[:, :, None, None], torch.nan)
    if edge.shape[1] == 1 and T != 1:
        pairs = pairs.sum(1, keepdim=True)
    return total.to(dtype), nodes.to(dtype), pairs.to(dtype)


def _own_and_levels(unary: Tensor, real: Tensor) -> tuple[Tensor, Tensor]:
    """Return the scores (B, T, L) of real tokens less their levels, and the levels (B, T): the highest scores, or 0."""
    highest = high_precision(unary.detach().amax(2))
    levels = torch.where(real & (highest > -torch.inf), highest, 0)
    return high_precision(torch.where(real.unsqueeze(2), unary, 0)) - levels.unsqueeze(2), levels


def log_sum(scores: Tensor) -> Tensor:
    """Return torch.logsumexp along the last dimension, with derivatives 0 instead of NaN where all are -inf."""
    highest = scores.detach().amax(-1, keepdim=True)
    highest = torch.where(highest > -torch.inf, highest, 0)
    total = (scores - highest).exp().sum(-1)
    possible = total != 0  # NaN stays NaN
    return torch.where(possible, torch.where(possible, total, 1).log() + highest.squeeze(-1), -torch.inf)


def _shares(scores: Tensor, real: Tensor) -> Tensor:
    """Return the softmax along the last dimension; 0 where nothing is possible and in the padding."""
    possible = (real & (scores.detach().amax(-1) > -torch.inf)).unsqueeze(-1)
    return torch.where(possible, torch.where(possible, scores, 0).softmax(-1), 0)


def sample(unary: Tensor, edge: Tensor, lengths: Tensor, noise: Tensor) -> Tensor:
    """Implement `structperc.ops.operators.sample`."""
    (B, T, L), n = unary.shape, noise.shape[1]
    if not T:
        return noise.new_zeros(B, n, T, dtype=torch.int64)
    unary, edge = unary.detach(), edge.detach()
    steps, lengths = steps_and_lengths(unary, lengths)
    real, table = real_tokens(lengths, T), high_precision(edge)
    after = suffix_scores(_own_and_levels(unary, real)[0], table, real, log_sum)
    suffix = high_precision(subtract_levels(unary)) + after

    def step(before: Tensor, here: Rows) -> tuple[Tensor, Tensor]:
        token, suffix, edge, noise = here
        along = edge.gather(1, before.unsqueeze(2).expand(-1, -1, L))  # (B, n, L)
        scores = torch.where(token > 0, along, 0) + suffix.unsqueeze(1)
        highest = scores.amax(2, keepdim=True)
        shares = (scores - torch.where(highest > -torch.inf, highest, 0)).exp()
        below = shares.cumsum(2)
        exceeds = (below > noise.unsqueeze(2) * below[..., -1:]) & (shares > 0)
        label = exceeds.to(torch.int8).argmax(2)
        return label, label.clone()

    first = torch.zeros(B, n, dtype=torch.int64, device=unary.device)
    into = edges_into(table, T).expand(-1, B, -1, -1)
    labels = scan(step, first, (steps, suffix.transpose(0, 1), into, noise.permute(2, 0, 1))).permute(1, 2, 0)
    possible = (suffix[:, 0].amax(1) > -torch.inf) & ~any_invalid(unary, edge, lengths)
    return torch.where(real.unsqueeze(1) & possible.view(-1, 1, 1), labels, 0)


def local_log_partition(unary: Tensor, edge: Tensor, lengths: Tensor) -> Tensor:
    """Implement `structperc.ops.operators.local_log_partition`."""
    T = unary.shape[1]
    if T < 2:
        return torch.zeros_like(unary)
    steps, lengths = steps_and_lengths(unary, lengths)
    followed = (steps[1:] < lengths.unsqueeze(1)).view(len(lengths), T - 1, 1)
    edge = edge.expand(-1, T, -1, -1)[:, 1:]
    scores = torch.where(followed, unary[:, 1:], 0).unsqueeze(2) + torch.where(followed.unsqueeze(3), edge, 0)
    sums = log_sum(high_precision(scores))
    sums = torch.where(followed, torch.where(sums != -torch.inf, sums, torch.inf), 0)
    return torch.nn.functional.pad(sums.to(unary.dtype), (0, 0, 0, 1))


def local_log_partition_backward(unary: Tensor, edge: Tensor, lengths: Tensor, grad: Tensor) -> tuple[Tensor, Tensor]:
    """Implement `structperc.ops.operators.local_log_partition_backward`."""
    with torch.enable_grad():
        inputs = unary.detach().requires_grad_(), edge.detach().requires_grad_()
        sums = local_log_partition(*inputs, lengths)
        if not sums.requires_grad:
            return torch.zeros_like(unary), torch.zeros_like(edge)
        own, steps = torch.autograd.grad(sums, inputs, grad)
    return own, steps
