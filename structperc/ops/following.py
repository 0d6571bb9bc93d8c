"""Log-sums over what may follow each label by one token: what local normalisation takes off."""

from typing import Any

import torch
from torch import Tensor

from structperc.ops.registration import by_tensors, declare
from structperc.ops.tensors.following import log_following as reference


def _shapes(unary: Tensor, edge: Tensor, lengths: Tensor) -> Tensor:
    return torch.empty_like(unary)


def _keep(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
    ctx.save_for_backward(*inputs)


def _backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    unary, edge, lengths = ctx.saved_tensors
    if torch.is_grad_enabled():  # somebody asks for second derivatives
        own, steps = by_tensors(lambda u, e: (reference(u, e, lengths),), (unary, edge), (grad,))
        return own, steps, None
    return *following_shares(unary, edge, lengths, grad), None


_log_following = declare(
    "following", "log_following", "(Tensor unary, Tensor edge, Tensor lengths) -> Tensor", _shapes, (_keep, _backward)
)


def log_following(unary: Tensor, edge: Tensor, lengths: Tensor) -> Tensor:
    """Return, for label i of token t, the log of the sum over j of exp(unary[t + 1, j] + edge[t + 1, i, j]), (B, T, L).

    unary is (B, T, L), edge (B or 1, T or 1, L, L), lengths (B,) int64. It is 0 at last tokens and in the padding, +inf
    where nothing is possible: a label less that is impossible.
    """
    return _log_following(unary, edge, lengths)


def _gradients(unary: Tensor, edge: Tensor, lengths: Tensor, grad: Tensor) -> tuple[Tensor, Tensor]:
    return torch.empty_like(unary), edge.new_empty(edge.shape)


_following_shares = declare(
    "following",
    "following_shares",
    "(Tensor unary, Tensor edge, Tensor lengths, Tensor grad) -> (Tensor, Tensor)",
    _gradients,
)


def following_shares(unary: Tensor, edge: Tensor, lengths: Tensor, grad: Tensor) -> tuple[Tensor, Tensor]:
    """Return gradients of unary and edge from that of `log_following` (B, T, L): shares of sums, weighted by it."""
    return _following_shares(unary, edge, lengths, grad)
