"""Checks of lengths, scores and labels on a CPU. Kernels report that something is wrong; these functions say what."""

import torch
from torch import Tensor

from structperc.errors import InputError, InvalidScoreError
from structperc.structures import real_tokens


def check_lengths(lengths: Tensor, T: int) -> None:
    """Raise InputError for a length outside 0..T."""
    wrong = ((lengths < 0) | (lengths > T)).nonzero()
    if len(wrong):
        b = int(wrong[0])
        raise InputError(f"lengths: sequence {b} of {len(lengths)} has {int(lengths[b])} tokens, expected 0..{T}")


def check_scores(unary: Tensor, edge: Tensor, lengths: Tensor) -> None:
    """Raise InputError for a length outside 0..T, InvalidScoreError for +inf or NaN at a token or an edge into it."""
    T = unary.shape[1]
    check_lengths(lengths, T)
    real = real_tokens(lengths, T)
    into = real & (torch.arange(T) > 0)
    for d in (0, 1):
        into = into.any(d, keepdim=True) if edge.shape[d] == 1 else into
    nodes = (~(unary < torch.inf) & real.unsqueeze(2)).nonzero()
    pairs = (~(edge < torch.inf) & into[:, :, None, None]).nonzero()
    if len(nodes):
        b, t, j = nodes[0].tolist()
        found, where = unary[b, t, j], f"at token {t} of sequence {b}, label {j}"
    elif len(pairs):
        b, t, i, j = pairs[0].tolist()
        token = "all tokens" if edge.shape[1] == 1 else f"token {t}"
        sequence = "all sequences" if len(edge) == 1 else f"sequence {b}"
        found, where = edge[b, t, i, j], f"at {token} of {sequence}, label {i} before label {j}"
    else:
        return
    name = "NaN" if found.isnan() else "+inf"
    raise InvalidScoreError(f"scores: {name} {where}; scores must be finite, or -inf for what is impossible")


def check_labels(labels: Tensor, lengths: Tensor, rows: Tensor, L: int) -> None:
    """Raise InputError for a label of a real token outside 0..L-1."""
    wrong = (((labels < 0) | (labels >= L)) & real_tokens(lengths[rows], labels.shape[1])).nonzero()
    if len(wrong):
        s, t = wrong[0].tolist()
        raise InputError(
            f"label {int(labels[s, t])} at token {t} of sequence {int(rows[s])} is outside 0..{L - 1}; give real "
            "tokens labels of the lattice"
        )
