"""Recursions over tokens in tensor operations, which torch.export turns into one node of a graph."""

from collections.abc import Callable

import torch
from torch import Tensor

from structperc.torch_internals import exported_scan

Rows = tuple[Tensor, ...]
Reduce = Callable[[Tensor], Tensor]  # along the last dimension


def scan(step: Callable[[Tensor, Rows], tuple[Tensor, Tensor]], carry: Tensor, inputs: Rows) -> Tensor:
    """Run steps over tokens, and return their stacked outputs.

    During export this is the scan of torch, since a loop would be unrolled for one T. Elsewhere torch's scan would be
    compiled again for every shape. `step`: function of the carry and a row of each input; returns the next carry and an
    output. `carry`: first carry. `inputs`: tensors whose first dimension is the tokens. Returns the outputs (T, ...).
    """
    if torch.compiler.is_exporting():
        return exported_scan(step, carry, inputs)
    outputs = []
    for here in zip(*inputs, strict=True):
        carry, output = step(carry, here)
        outputs.append(output)
    return torch.stack(outputs) if outputs else carry.new_empty(0, *carry.shape)


def prefix_scores(own: Tensor, edge: Tensor, real: Tensor, reduce: Reduce) -> Tensor:
    """Reduce the scores of all label sequences before each label.

    `own`: (B, T, L) unary scores. `edge`: (B or 1, T or 1, L, L). `real`: (B, T) bool, True at tokens. `reduce`:
    reduction along the last dimension, such as torch.amax or torch.logsumexp. Returns (B, T, L), 0 at the first token
    and in the padding.
    """
    steps = torch.arange(own.shape[1], device=own.device)

    def step(carry: Tensor, here: Rows) -> tuple[Tensor, Tensor]:
        own, edge, joined = here
        before = torch.where(joined.unsqueeze(1), reduce((carry.unsqueeze(2) + edge).mT), 0)
        return before + own, before

    inputs = own.transpose(0, 1), edges_into(edge, own.shape[1]), (real & (steps > 0)).T
    return scan(step, _zeros(own), inputs).transpose(0, 1)


def suffix_scores(own: Tensor, edge: Tensor, real: Tensor, reduce: Reduce) -> Tensor:
    """Reduce the scores of all label sequences after each label; arguments and shapes are those of `prefix_scores`."""
    T = own.shape[1]
    followed = real.roll(-1, 1) & (torch.arange(T, device=own.device) < T - 1)

    def step(carry: Tensor, here: Rows) -> tuple[Tensor, Tensor]:
        own, edge, followed = here
        after = torch.where(followed.unsqueeze(1), reduce(edge + carry.unsqueeze(1)), 0)
        return after + own, after

    inputs = own.transpose(0, 1), edges_into(edge, T).roll(-1, 0), followed.T
    return scan(step, _zeros(own), tuple(x.flip(0) for x in inputs)).flip(0).transpose(0, 1)


def _zeros(own: Tensor) -> Tensor:
    return torch.zeros_like(own[:, 0]) if own.shape[1] else own.new_zeros(own.shape[0], own.shape[2])


def edges_into(edge: Tensor, T: int) -> Tensor:
    """Return edge scores (B or 1, T or 1, L, L) as (T, B or 1, L, L), those into each token."""
    return edge.expand(-1, T, -1, -1).transpose(0, 1)


def high_precision(x: Tensor) -> Tensor:
    """Return x as float64, where the device has it."""
    return x if x.device.type == "mps" else x.double()


def subtract_levels(unary: Tensor) -> Tensor:
    """Subtract the highest score of each token, so that sums over long sequences keep their digits."""
    highest = unary.amax(-1, keepdim=True)
    return unary - torch.where(highest > -torch.inf, highest, 0)


def any_invalid(unary: Tensor, edge: Tensor, lengths: Tensor) -> Tensor:
    """Return for each sequence whether a score of one of its tokens, or of an edge into one, is +inf or NaN.

    Returns (B,) bool.

    Example:
        >>> import torch
        >>> from structperc.ops.reference.scan import any_invalid
        >>> unary = torch.tensor([[[0.0, 1.0]], [[0.0, float("nan")]]])
        >>> any_invalid(unary, torch.zeros(1, 1, 2, 2), torch.tensor([1, 1]))
        tensor([False,  True])
    """
    steps, lengths = steps_and_lengths(unary, lengths)
    own, into = (~(unary < torch.inf)).any(2), (~(edge < torch.inf)).flatten(2).any(2)
    return ((own | (into & (steps > 0))) & (steps < lengths.unsqueeze(1))).any(1)


def steps_and_lengths(unary: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """Return steps (T,) and lengths (B,) on the device of the scores."""
    return torch.arange(unary.shape[1], device=unary.device), lengths.to(unary.device, non_blocking=True)
