"""The score of given labellings: sums of gathered entries, the only place where gradients enter."""

from typing import Any

import torch
from torch import Tensor

from structperc.chain.recursion import array, full_precision, live, narrowed
from structperc.errors import InputError
from structperc.structures import Lattice


def path_score(lattice: Lattice, labels: Tensor, rows: Tensor | None = None) -> Tensor:
    """Return the sums of unary and edge scores along labellings: labels (B, T) -> (B,), labels (B, K, T) -> (B, K).

    With `rows` (S,) the labels are (S, T) and labelling s belongs to sequence rows[s] -> (S,).
    Labels in the padding are ignored. Gradients flow to the gathered entries only. Half precision is summed
    in float32. Raises InputError when a label of a real token is outside 0..L-1.
    """
    lattice, device = narrowed(lattice), lattice.unary.device
    steps = torch.arange(lattice.unary.shape[1], device=device)
    if rows is None:
        rows = torch.arange(len(labels), device=device).view(-1, *[1] * (labels.dim() - 2))
    entries = _entries(lattice, *(array(x) for x in (live(lattice), labels, rows, steps)))
    return _Sum.apply(lattice.unary, lattice.edge, *(torch.as_tensor(x) for x in entries))


def _entries(lattice: Lattice, real: Any, labels: Any, rows: Any, steps: Any) -> tuple[Any, Any, Any]:
    """Where labels stand in the flattened unary table, pairs of them in that of edges, and which tokens are real.

    real (B, T) bool. On tensors or on arrays.
    """
    _, T, L = lattice.unary.shape
    real = real[rows]
    labels = labels * real
    _check(labels, rows, L)
    token = rows[..., None] * T + steps
    pairs = labels[..., :-1] * L + labels[..., 1:]
    if lattice.edge.shape[:2] != (1, 1):
        pairs = pairs + token[..., 1:] * L**2
    return token * L + labels, pairs, real


class _Sum(torch.autograd.Function):
    """Sums of entries of both tables along labellings, where real; the gradient of an entry adds up its uses.

    Written out since a graph of its dozen operations costs more than they do themselves on small lattices.
    """

    @staticmethod
    def forward(ctx: Any, unary: Tensor, edge: Tensor, labels: Tensor, pairs: Tensor, real: Tensor) -> Tensor:
        ctx.save_for_backward(labels, pairs, real)
        ctx.tables = unary.shape, unary.dtype, edge.shape, edge.dtype
        return _total(unary, labels, real) + _total(edge, pairs, real[..., 1:])

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        labels, pairs, real = ctx.saved_tensors
        unary, unary_type, edge, edge_type = ctx.tables
        uses = torch.where(real, grad.unsqueeze(-1), 0)
        own, steps = grad.new_zeros(unary), grad.new_zeros(edge)
        own.view(-1).index_add_(0, labels.flatten(), uses.flatten())
        steps.view(-1).index_add_(0, pairs.flatten(), uses[..., 1:].flatten())
        return own.to(unary_type), steps.to(edge_type), None, None, None


def _total(scores: Tensor, entries: Tensor, real: Tensor) -> Tensor:
    """Sum over tokens of scores at flat entries (..., T), where real."""
    chosen = scores.reshape(-1).index_select(0, entries.flatten()).view(entries.shape)
    return full_precision(chosen).where(real, 0).sum(-1)


def _check(labels: Any, rows: Any, size: int) -> None:
    if 0 not in labels.shape and not 0 <= int(labels.min()) <= int(labels.max()) < size:
        labels, rows = torch.as_tensor(labels), torch.as_tensor(rows)
        place = ((labels < 0) | (labels >= size)).nonzero()[0].tolist()
        raise InputError(
            f"label {int(labels[tuple(place)])} at token {place[-1]} of sequence {int(rows.flatten()[place[0]])} "
            f"is outside 0..{size - 1}; give real tokens labels of the lattice"
        )
