"""Loops over tokens in tensor operations, which an exporter turns into one node of its graph."""

from collections.abc import Callable

import torch
from torch import Tensor

Rows = tuple[Tensor, ...]


def scan(step: Callable[[Tensor, Rows], tuple[Tensor, Tensor]], carry: Tensor, inputs: Rows) -> Tensor:
    """Return what the steps put out, stacked; each gets what the one before carries on, and its row of the inputs.

    While a program is exported this is torch's own scan: a loop would be unrolled, for one T. Elsewhere that would
    be compiled anew for every shape.
    """
    if torch.compiler.is_exporting():
        from torch._higher_order_ops.scan import scan as exported  # a prototype: needed by those alone who export

        return exported(step, carry, inputs)[1]
    outputs = []
    for here in zip(*inputs, strict=True):
        carry, output = step(carry, here)
        outputs.append(output)
    return torch.stack(outputs) if outputs else carry.new_empty(0, *carry.shape)


def edges_into(edge: Tensor, T: int) -> Tensor:
    """Edge scores (B or 1, T or 1, L, L) -> (T, B or 1, L, L), those into each token."""
    return edge.expand(-1, T, -1, -1).transpose(0, 1)


def high_precision(x: Tensor) -> Tensor:
    """As float64, in which sums are kept, where the device has it."""
    return x if x.device.type == "mps" else x.double()


def levelled(unary: Tensor) -> Tensor:
    """The highest score of each token moved to 0, so that sums over long sequences keep their digits."""
    highest = unary.amax(-1, keepdim=True)
    return unary - torch.where(highest > -torch.inf, highest, 0)


def any_invalid(unary: Tensor, edge: Tensor, lengths: Tensor) -> Tensor:
    """Return for each sequence (B,) bool whether a score of a token, or of an edge into one, is +inf or NaN."""
    steps, lengths = as_long_as(lengths, unary)
    own, into = (~(unary < torch.inf)).any(2), (~(edge < torch.inf)).flatten(2).any(2)
    return ((own | (into & (steps > 0))) & (steps < lengths.unsqueeze(1))).any(1)


def as_long_as(lengths: Tensor, unary: Tensor) -> tuple[Tensor, Tensor]:
    """Return steps (T,) and lengths (B,), both on the device of the scores."""
    return torch.arange(unary.shape[1], device=unary.device), lengths.to(unary.device, non_blocking=True)
