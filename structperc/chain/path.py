"""The score of given labellings, the only place where gradients enter."""

import torch
from torch import Tensor

from structperc.chain.lattices import checked
from structperc.errors import InputError
from structperc.ops import path_score as scores_of
from structperc.structures import Lattice


def path_score(lattice: Lattice, labels: Tensor, rows: Tensor | None = None) -> Tensor:
    """Return the sums of unary and edge scores along labellings: labels (B, T) -> (B,), labels (B, K, T) -> (B, K).

    With `rows` (S,) the labels are (S, T) and labelling s belongs to sequence rows[s] -> (S,).
    Labels in the padding are ignored. Gradients flow to the entries along the labellings only. Raises InputError for
    tensors whose shapes do not fit and, on a CPU, where a label of a real token is outside 0..L-1; on other devices,
    which would have to be waited for, its score is NaN.
    """
    lattice = checked(lattice)
    B, T, _ = lattice.unary.shape
    if rows is None:
        if labels.dim() not in (2, 3) or labels.shape[0] != B or labels.shape[-1] != T:
            raise InputError(f"labels: the shape is {tuple(labels.shape)}, expected ({B}, {T}) or ({B}, K, {T})")
        rows = torch.arange(B, device=labels.device)
        if labels.dim() == 3:
            K = labels.shape[1]
            scores = path_score(lattice, labels.reshape(B * K, T), rows.repeat_interleave(K, output_size=B * K))
            return scores.view(B, K)
    if labels.shape != (rows.shape[0], T):
        raise InputError(f"labels: the shape is {tuple(labels.shape)}, expected ({rows.shape[0]}, {T}), as rows say")
    return scores_of(*lattice, labels, rows)
