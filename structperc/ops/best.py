"""The best score before and after each label: both halves of every max-marginal."""

from typing import Any

import torch
from torch import Tensor

from structperc.ops.registration import by_tensors, declare
from structperc.ops.tensors.best import best_before_and_after as reference


def _shapes(unary: Tensor, edge: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    return torch.empty_like(unary), torch.empty_like(unary)


def _keep(ctx: Any, inputs: tuple[Tensor, ...], output: tuple[Tensor, ...]) -> None:
    ctx.save_for_backward(*inputs)


def _backward(ctx: Any, before: Tensor, after: Tensor) -> tuple[Tensor | None, ...]:
    unary, edge, lengths = ctx.saved_tensors
    if torch.is_grad_enabled():  # somebody asks for second derivatives
        own, steps = by_tensors(lambda u, e: reference(u, e, lengths), (unary, edge), (before, after))
        return own, steps, None
    return *push_back(unary, edge, lengths, before, after), None


_best_before_and_after = declare(
    "best",
    "best_before_and_after",
    "(Tensor unary, Tensor edge, Tensor lengths) -> (Tensor, Tensor)",
    _shapes,
    (_keep, _backward),
)


def best_before_and_after(unary: Tensor, edge: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """Return two tensors (B, T, L), the best score of all before and of all after each label, its own unary excluded.

    unary is (B, T, L), edge (B or 1, T or 1, L, L), lengths (B,) int64. They are 0 at the ends and in the padding, -inf
    where nothing is possible. Sums are kept in double precision where the device has it.

    The gradient of an entry is that of the score of its best prefix or suffix, the lowest label among equals at each
    step outwards, and 0 where there is none.
    """
    return _best_before_and_after(unary, edge, lengths)


def _gradients(unary: Tensor, edge: Tensor, lengths: Tensor, before: Tensor, after: Tensor) -> tuple[Tensor, Tensor]:
    return torch.empty_like(unary), edge.new_empty(edge.shape)


_push_back = declare(
    "best",
    "push_back",
    "(Tensor unary, Tensor edge, Tensor lengths, Tensor grad_before, Tensor grad_after) -> (Tensor, Tensor)",
    _gradients,
)


def push_back(
    unary: Tensor, edge: Tensor, lengths: Tensor, grad_before: Tensor, grad_after: Tensor
) -> tuple[Tensor, Tensor]:
    """Return gradients of unary and edge, in their shapes, from those of what `best_before_and_after` gives.

    The latter are (B, T, L) each. No labelling is kept: gradients are pushed outwards along the best labels, many
    labellings at once.
    """
    return _push_back(unary, edge, lengths, grad_before, grad_after)
