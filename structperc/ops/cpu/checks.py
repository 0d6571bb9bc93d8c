"""What is looked at in tensors on a CPU, where nothing has to be waited for."""

import numpy as np
from torch import Tensor

from structperc.errors import InputError
from structperc.ops.cpu.compiled import arrays, kernel


def check_scores(unary: Tensor, edge: Tensor, lengths: Tensor) -> None:
    """InputError for a length outside 0..T, and for a score of a real token, or of an edge into one, that is +inf."""
    B, T, _ = unary.shape
    tables = arrays(unary, edge, lengths)
    wrong = _wrong(*tables)
    if wrong < 0:
        return
    b, t = divmod(int(wrong), T + 1)
    if t == T:
        raise InputError(f"lengths: sequence {b} of {B} has {int(lengths[b])} tokens, expected 0..{T}")
    raise InputError(
        f"scores: there is +inf at token {t} of sequence {b}; scores are finite, or -inf for what is impossible"
    )


def check_labels(labels: Tensor, lengths: Tensor, rows: Tensor, L: int) -> None:
    """InputError for a label of a real token that is outside 0..L-1."""
    s, t = _outside(*arrays(labels, lengths, rows), L)
    if s >= 0:
        raise InputError(
            f"label {int(labels[s, t])} at token {t} of sequence {int(rows[s])} is outside 0..{L - 1}; give real "
            "tokens labels of the lattice"
        )


@kernel
def _wrong(unary, edge, lengths):  # type: ignore[no-untyped-def]
    """Return sequence * (T + 1) + token of the first that is wrong, token T for a length; -1 where all is right."""
    B, T, L = unary.shape
    scores, steps = unary.reshape(-1), edge.reshape(-1)
    for b in range(B):
        if lengths[b] < 0 or lengths[b] > T:
            return b * (T + 1) + T
        at = _infinite(scores, b * T * L, (b * T + lengths[b]) * L)
        if at >= 0:
            return b * (T + 1) + at // L % T
    each = edge.shape[1]
    for b in range(edge.shape[0] if T > 1 else 0):
        last = 1 if each == 1 else lengths[b] if edge.shape[0] > 1 else T
        at = _infinite(steps, (b * each + (each > 1)) * L * L, (b * each + last) * L * L)
        if at >= 0:
            return b * (T + 1) + at // (L * L) % each
    return -1


@kernel
def _infinite(scores, start, stop):  # type: ignore[no-untyped-def]
    """Return the first place from start to stop where scores (N,) are +inf; -1 where none is."""
    found = 0  # counted in bits, as a compiler does several at once
    for place in range(start, stop):
        found |= int(scores[place] == np.inf)
    if found:
        for place in range(start, stop):
            if scores[place] == np.inf:
                return place
    return -1


@kernel
def _outside(labels, lengths, rows, L):  # type: ignore[no-untyped-def]
    for s in range(len(labels)):
        for t in range(lengths[rows[s]]):
            if labels[s, t] < 0 or labels[s, t] >= L:
                return s, t
    return -1, -1
