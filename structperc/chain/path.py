"""The score of given labellings: sums of gathered entries, the only place where gradients enter."""

import torch
from torch import Tensor

from structperc.chain.recursion import full_precision, is_stationary, live
from structperc.errors import InputError
from structperc.structures import Lattice


def path_score(lattice: Lattice, labels: Tensor, rows: Tensor | None = None) -> Tensor:
    """Sum of unary and edge scores along labellings: labels (B, T) -> (B,), labels (B, K, T) -> (B, K).

    With `rows` (S,) the labels are (S, T) and labelling s belongs to sequence rows[s] -> (S,).
    Labels in the padding are ignored. Gradients flow to the gathered entries only. Half precision is summed in
    float32. Raises InputError when a label of a real token is outside 0..L-1.
    """
    if rows is None:
        rows = torch.arange(len(labels), device=labels.device)
        rows = rows.view(-1, *[1] * (labels.dim() - 2)).expand(labels.shape[:-1])
    return _score(lattice, labels.flatten(0, -2), rows.flatten()).view(labels.shape[:-1])


def _score(lattice: Lattice, labels: Tensor, rows: Tensor) -> Tensor:
    _, T, L = lattice.unary.shape
    real = live(lattice)[rows]
    _check(labels, rows, real, L)
    labels = labels.where(real, 0)
    token = rows.unsqueeze(1) * T + torch.arange(T, device=labels.device)
    pair = labels[:, :-1] * L + labels[:, 1:]
    edge = lattice.edge
    if is_stationary(edge):
        edge = edge[0, 0]
    else:
        pair = pair + token[:, 1:] * L**2
    return _total(lattice.unary, token * L + labels, real) + _total(edge, pair, real[:, 1:])


def _total(scores: Tensor, entries: Tensor, real: Tensor) -> Tensor:
    """Sum of scores at flat entries (S, T) where real -> (S,)."""
    chosen = scores.reshape(-1).index_select(0, entries.flatten()).view(entries.shape)
    return full_precision(chosen).where(real, 0).sum(1)


def _check(labels: Tensor, rows: Tensor, real: Tensor, size: int) -> None:
    wrong = ((labels < 0) | (labels >= size)) & real
    if wrong.any():
        s, t = wrong.nonzero()[0].tolist()
        raise InputError(
            f"label {int(labels[s, t])} at token {t} of sequence {int(rows[s])} is outside 0..{size - 1}; "
            "give real tokens labels of the lattice"
        )
