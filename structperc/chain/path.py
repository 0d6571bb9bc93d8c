"""The score of given labellings: sums of gathered entries, the only place where gradients enter."""

from typing import Any

import torch
from torch import Tensor

from structperc.chain.recursion import full_precision, is_stationary, live
from structperc.errors import InputError
from structperc.structures import Lattice


def path_score(lattice: Lattice, labels: Tensor, rows: Tensor | None = None) -> Tensor:
    """Sum of unary and edge scores along labellings: labels (B, T) -> (B,), labels (B, K, T) -> (B, K).

    With `rows` (S,) the labels are (S, T) and labelling s belongs to sequence rows[s] -> (S,).
    Labels in the padding are ignored. Gradients flow to the gathered entries only. Half precision is summed
    in float32. Raises InputError when a label of a real token is outside 0..L-1.
    """
    T, L = lattice.unary.shape[1:]
    real = live(lattice)
    if rows is None:
        rows = torch.arange(len(labels), device=labels.device).view(-1, *[1] * (labels.dim() - 2))
        real = real.view(len(labels), *[1] * (labels.dim() - 2), T)
    else:
        real = real.index_select(0, rows)
    labels = labels.where(real, 0)
    _check(labels, rows, L)
    token = rows.unsqueeze(-1) * T + torch.arange(T, device=labels.device)
    pair = labels[..., :-1] * L + labels[..., 1:]
    if not is_stationary(lattice.edge):
        pair = pair + token[..., 1:] * L**2
    return _Sum.apply(lattice.unary, lattice.edge, labels + token * L, pair, real)


class _Sum(torch.autograd.Function):
    """Sums of entries of both tables along labellings, where real; the gradient of an entry adds up its uses.

    Written out since a graph of its dozen operations costs more than they do themselves on small lattices.
    """

    @staticmethod
    def forward(ctx: Any, unary: Tensor, edge: Tensor, labels: Tensor, pairs: Tensor, real: Tensor) -> Tensor:
        ctx.save_for_backward(labels, pairs, real)
        ctx.tables = unary.shape, unary.dtype, edge.shape, edge.dtype, is_stationary(edge)
        return _total(unary, labels, real) + _total(_table(edge), pairs, real[..., 1:])

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        labels, pairs, real = ctx.saved_tensors
        unary, unary_type, edge, edge_type, stationary = ctx.tables
        uses = torch.where(real, grad.unsqueeze(-1), 0)
        own, steps = grad.new_zeros(unary), grad.new_zeros(edge)
        own.view(-1).index_add_(0, labels.flatten(), uses.flatten())
        (steps[:1, :1] if stationary else steps).view(-1).index_add_(0, pairs.flatten(), uses[..., 1:].flatten())
        return own.to(unary_type), steps.to(edge_type), None, None, None


def _table(edge: Tensor) -> Tensor:
    return edge[0, 0] if is_stationary(edge) else edge


def _total(scores: Tensor, entries: Tensor, real: Tensor) -> Tensor:
    """Sum over tokens of scores at flat entries (..., T), where real."""
    chosen = scores.reshape(-1).index_select(0, entries.flatten()).view(entries.shape)
    return full_precision(chosen).where(real, 0).sum(-1)


def _check(labels: Tensor, rows: Tensor, size: int) -> None:
    if labels.numel() and not 0 <= int(labels.min()) <= int(labels.max()) < size:
        place = ((labels < 0) | (labels >= size)).nonzero()[0].tolist()
        raise InputError(
            f"label {int(labels[tuple(place)])} at token {place[-1]} of sequence {int(rows.flatten()[place[0]])} "
            f"is outside 0..{size - 1}; give real tokens labels of the lattice"
        )
