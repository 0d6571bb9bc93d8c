"""The score of given labellings: sums of gathered entries, the only place where gradients enter."""

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
    if is_stationary(lattice.edge):
        edge = lattice.edge[0, 0]
    else:
        edge, pair = lattice.edge, pair + token[..., 1:] * L**2
    return _total(lattice.unary, labels + token * L, real) + _total(edge, pair, real[..., 1:])


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
