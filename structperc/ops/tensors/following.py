"""Log-sums over the next label in tensor operations."""

import torch
from torch import Tensor

from structperc.ops.tensors.expectations import log_sum
from structperc.ops.tensors.scans import as_long_as, high_precision


def log_following(unary: Tensor, edge: Tensor, lengths: Tensor) -> Tensor:
    """The contract is that of `structperc.ops.log_following`."""
    T = unary.shape[1]
    if T < 2:
        return torch.zeros_like(unary)
    steps, lengths = as_long_as(lengths, unary)
    followed = (steps[1:] < lengths.unsqueeze(1)).view(len(lengths), T - 1, 1)
    edge = edge.expand(-1, T, -1, -1)[:, 1:]
    scores = torch.where(followed, unary[:, 1:], 0).unsqueeze(2) + torch.where(followed.unsqueeze(3), edge, 0)
    sums = log_sum(high_precision(scores))
    sums = torch.where(followed, torch.where(sums != -torch.inf, sums, torch.inf), 0)
    return torch.nn.functional.pad(sums.to(unary.dtype), (0, 0, 0, 1))


def following_shares(unary: Tensor, edge: Tensor, lengths: Tensor, grad: Tensor) -> tuple[Tensor, Tensor]:
    """The contract is that of `structperc.ops.following_shares`."""
    with torch.enable_grad():
        inputs = unary.detach().requires_grad_(), edge.detach().requires_grad_()
        sums = log_following(*inputs, lengths)
        if not sums.requires_grad:
            return torch.zeros_like(unary), torch.zeros_like(edge)
        own, steps = torch.autograd.grad(sums, inputs, grad)
    return own, steps
