"""Forward-backward in tensor operations, on logarithms; differentiable as often as one likes."""

import torch
from torch import Tensor

from structperc.ops.tensors.scans import Rows, any_invalid, as_long_as, edges_into, high_precision, scan
from structperc.structures import real_tokens


def expectations(unary: Tensor, edge: Tensor, lengths: Tensor, with_pairs: bool) -> tuple[Tensor, Tensor, Tensor]:
    """The contract is that of `structperc.ops.expectations`."""
    (B, T, L), dtype = unary.shape, unary.dtype
    steps, lengths = as_long_as(lengths, unary)
    real = real_tokens(lengths, unary.shape[1])
    levels = _levels(unary, real)
    own = high_precision(torch.where(real.unsqueeze(2), unary, 0)) - levels.unsqueeze(2)
    table = high_precision(edge)
    before = _arriving(own, edges_into(table, T), real & (steps > 0))
    after = _completions(own, edges_into(table, T), real.roll(-1, 1) & (steps < T - 1))
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


def completions(unary: Tensor, edge: Tensor, lengths: Tensor) -> Tensor:
    """-> (B, T, L), log-sums over all that may follow each label, its own score excluded, each token's levelled."""
    T = unary.shape[1]
    steps, lengths = as_long_as(lengths, unary)
    real = real_tokens(lengths, unary.shape[1])
    own = high_precision(torch.where(real.unsqueeze(2), unary, 0)) - _levels(unary, real).unsqueeze(2)
    return _completions(own, edges_into(high_precision(edge), T), real.roll(-1, 1) & (steps < T - 1))


def _levels(unary: Tensor, real: Tensor) -> Tensor:
    """-> (B, T), the highest score of each real token; 0 where there is none. Sums of what is left stay small."""
    highest = high_precision(unary.detach().amax(2))
    return torch.where(real & (highest > -torch.inf), highest, 0)


def _arriving(own: Tensor, into: Tensor, later: Tensor) -> Tensor:
    """-> (B, T, L), log-sums over all before each label."""

    def step(carry: Tensor, here: Rows) -> tuple[Tensor, Tensor]:
        own, edge, later = here
        arriving = torch.where(later.unsqueeze(1), log_sum((carry.unsqueeze(2) + edge).mT), 0)
        return arriving + own, arriving

    carry = torch.zeros_like(own[:, 0]) if own.shape[1] else own.new_zeros(own.shape[0], own.shape[2])
    return scan(step, carry, (own.transpose(0, 1), into.expand(-1, own.shape[0], -1, -1), later.T)).transpose(0, 1)


def _completions(own: Tensor, into: Tensor, followed: Tensor) -> Tensor:
    """-> (B, T, L), log-sums over all after each label."""

    def step(carry: Tensor, here: Rows) -> tuple[Tensor, Tensor]:
        own, edge, followed = here
        after = torch.where(followed.unsqueeze(1), log_sum(edge + carry.unsqueeze(1)), 0)
        return after + own, after

    carry = torch.zeros_like(own[:, 0]) if own.shape[1] else own.new_zeros(own.shape[0], own.shape[2])
    out_of = into.roll(-1, 0).expand(-1, own.shape[0], -1, -1)
    backwards = tuple(x.flip(0) for x in (own.transpose(0, 1), out_of, followed.T))
    return scan(step, carry, backwards).flip(0).transpose(0, 1)


def log_sum(scores: Tensor) -> Tensor:
    """torch.logsumexp along the last dimension, whose derivatives are 0 and not NaN where all is impossible."""
    highest = scores.detach().amax(-1, keepdim=True)
    highest = torch.where(highest > -torch.inf, highest, 0)
    total = (scores - highest).exp().sum(-1)
    possible = total != 0  # NaN stays NaN
    return torch.where(possible, torch.where(possible, total, 1).log() + highest.squeeze(-1), -torch.inf)


def _shares(scores: Tensor, real: Tensor) -> Tensor:
    """exp(scores) over its sum along the last dimension; 0 where nothing is possible and in the padding."""
    possible = (real & (scores.detach().amax(-1) > -torch.inf)).unsqueeze(-1)
    return torch.where(possible, torch.where(possible, scores, 0).softmax(-1), 0)
