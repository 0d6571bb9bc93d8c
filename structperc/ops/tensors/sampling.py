"""Sampling in tensor operations."""

import torch
from torch import Tensor

from structperc.ops.tensors.expectations import completions
from structperc.ops.tensors.scans import Rows, any_invalid, as_long_as, edges_into, high_precision, levelled, scan
from structperc.structures import real_tokens


def sample(unary: Tensor, edge: Tensor, lengths: Tensor, noise: Tensor) -> Tensor:
    """The contract is that of `structperc.ops.sample`."""
    (B, T, L), n = unary.shape, noise.shape[1]
    if not T:
        return noise.new_zeros(B, n, T, dtype=torch.int64)
    unary, edge = unary.detach(), edge.detach()
    steps, lengths = as_long_as(lengths, unary)
    onward = high_precision(levelled(unary)) + completions(unary, edge, lengths)
    into = edges_into(high_precision(edge), T).expand(-1, B, -1, -1)

    def step(before: Tensor, here: Rows) -> tuple[Tensor, Tensor]:
        token, onward, edge, noise = here
        along = edge.gather(1, before.unsqueeze(2).expand(-1, -1, L))  # (B, n, L)
        scores = torch.where(token > 0, along, 0) + onward.unsqueeze(1)
        highest = scores.amax(2, keepdim=True)
        shares = (scores - torch.where(highest > -torch.inf, highest, 0)).exp()
        below = shares.cumsum(2)
        exceeds = (below > noise.unsqueeze(2) * below[..., -1:]) & (shares > 0)
        label = exceeds.to(torch.int8).argmax(2)
        return label, label.clone()

    first = torch.zeros(B, n, dtype=torch.int64, device=unary.device)
    labels = scan(step, first, (steps, onward.transpose(0, 1), into, noise.permute(2, 0, 1))).permute(1, 2, 0)
    possible = (onward[:, 0].amax(1) > -torch.inf) & ~any_invalid(unary, edge, lengths)
    return torch.where(real_tokens(lengths, unary.shape[1]).unsqueeze(1) & possible.view(-1, 1, 1), labels, 0)
