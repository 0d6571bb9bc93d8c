"""Best scores before and after each label in tensor operations."""

import torch
from torch import Tensor

from structperc.ops.tensors.scans import Rows, any_invalid, as_long_as, edges_into, high_precision, scan
from structperc.structures import real_tokens


def best_before_and_after(unary: Tensor, edge: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """The contract is that of `structperc.ops.best_before_and_after`."""
    (B, T, L), dtype = unary.shape, unary.dtype
    steps, lengths = as_long_as(lengths, unary)
    real = real_tokens(lengths, unary.shape[1])
    own = high_precision(torch.where(real.unsqueeze(2), unary, 0)).transpose(0, 1)
    into = edges_into(high_precision(edge), T).expand(-1, B, -1, -1)
    later, followed = (real & (steps > 0)).T, (real.roll(-1, 1) & (steps < T - 1)).T

    def forwards(carry: Tensor, here: Rows) -> tuple[Tensor, Tensor]:
        own, edge, later = here
        arriving = torch.where(later.unsqueeze(1), _best((carry.unsqueeze(2) + edge).mT), 0)
        return arriving + own, arriving

    def backwards(carry: Tensor, here: Rows) -> tuple[Tensor, Tensor]:
        own, edge, followed = here
        after = torch.where(followed.unsqueeze(1), _best(edge + carry.unsqueeze(1)), 0)
        return after + own, after

    nothing = own.new_zeros(B, L)
    before = scan(forwards, nothing, (own, into, later)).transpose(0, 1)
    flipped = tuple(x.flip(0) for x in (own, into.roll(-1, 0), followed))
    after = scan(backwards, nothing, flipped).flip(0).transpose(0, 1)
    invalid = real & any_invalid(unary.detach(), edge.detach(), lengths).unsqueeze(1)
    before, after = (x.masked_fill(invalid.unsqueeze(2), torch.nan).to(dtype) for x in (before, after))
    return before, after


def push_back(
    unary: Tensor, edge: Tensor, lengths: Tensor, grad_before: Tensor, grad_after: Tensor
) -> tuple[Tensor, Tensor]:
    """The contract is that of `structperc.ops.push_back`."""
    if not unary.numel():
        return torch.zeros_like(unary), torch.zeros_like(edge)
    with torch.enable_grad():
        inputs = unary.detach().requires_grad_(), edge.detach().requires_grad_()
        found = best_before_and_after(*inputs, lengths)
        own, steps = torch.autograd.grad(found, inputs, (grad_before, grad_after), allow_unused=True)
    return torch.zeros_like(unary) if own is None else own, torch.zeros_like(edge) if steps is None else steps


def _best(scores: Tensor) -> Tensor:
    """The highest score along the last dimension, with the gradient of the first of equals; none where all are -inf."""
    best = scores.gather(-1, scores.detach().argmax(-1, keepdim=True)).squeeze(-1)
    return torch.where(best > -torch.inf, best, -torch.inf)
