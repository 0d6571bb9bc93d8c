"""What is looked at in tensors on a CPU, where nothing has to be waited for.

Tensors as kernels take them.
"""

import numpy as np
from torch import Tensor

from structperc.errors import InputError, InvalidScore
from structperc.kernels.jit import kernel, subkernel, subkernel_no_alloc
from structperc.kernels.viterbi import any_invalid


def arrays(*tensors: Tensor) -> tuple[np.ndarray, ...]:
    """Tensors as contiguous arrays; those that are contiguous share their memory."""
    return tuple((x.detach() if x.requires_grad else x).contiguous().numpy() for x in tensors)


def check_lengths(lengths: Tensor, T: int) -> None:
    """InputError for a length outside 0..T."""
    b = _first_beyond(*arrays(lengths), T)
    if b >= 0:
        raise InputError(f"lengths: sequence {b} of {len(lengths)} has {int(lengths[b])} tokens, expected 0..{T}")


def check_scores(unary: Tensor, edge: Tensor, lengths: Tensor) -> None:
    """InputError for a length outside 0..T, InvalidScore for a score of a real token or an edge into one: +inf or NaN.

    For searches: among paths that score +inf or NaN none is the best.
    """
    check_lengths(lengths, unary.shape[1])
    scores, edges, ends = arrays(unary, edge, lengths)
    place, pair = _first_invalid(scores, edges, ends)
    if place >= 0:
        b, t, j = map(int, np.unravel_index(place, scores.shape))
        found, where = scores[b, t, j], f"at token {t} of sequence {b}, label {j}"
    elif pair >= 0:
        b, t, i, j = map(int, np.unravel_index(pair, edges.shape))
        token = "all tokens" if edges.shape[1] == 1 else f"token {t}"
        sequence = "all sequences" if len(edges) == 1 else f"sequence {b}"
        found, where = edges[b, t, i, j], f"at {token} of {sequence}, label {i} before label {j}"
    else:
        return
    name = "NaN" if np.isnan(found) else "+inf"
    raise InvalidScore(f"scores: there is {name} {where}; scores are finite, or -inf for what is impossible")


def check_labels(labels: Tensor, lengths: Tensor, rows: Tensor, L: int) -> None:
    """InputError for a label of a real token that is outside 0..L-1."""
    s, t = _outside(*arrays(labels, lengths, rows), L)
    if s >= 0:
        raise InputError(
            f"label {int(labels[s, t])} at token {t} of sequence {int(rows[s])} is outside 0..{L - 1}; give real "
            "tokens labels of the lattice"
        )


def any_nan(x: Tensor) -> bool:
    """Return whether NaN is among numbers (N,)."""
    return bool(_any_nan(*arrays(x)))


@subkernel_no_alloc
def length_out_of_range(length, T):  # type: ignore[no-untyped-def]
    """Return whether `check_lengths` refuses a length."""
    return length < 0 or length > T


@subkernel_no_alloc
def unfit_edges(unary, edge):  # type: ignore[no-untyped-def]
    """Return whether +inf or NaN is among edges that all sequences share, be they read or not."""
    T = unary.shape[1]
    return len(edge) == 1 and T > 1 and any_invalid(edge, *_edges_of(edge, 0, T))


@subkernel_no_alloc
def has_invalid_scores(b, unary, edge, lengths, shared):  # type: ignore[no-untyped-def]
    """Return whether +inf or NaN is among the scores of sequence b, or its edges; `shared`: see `unfit_edges`.

    Its length is not `length_out_of_range` T.
    """
    (_, T, L), length = unary.shape, lengths[b]
    if any_invalid(unary, b * T * L, (b * T + length) * L):
        return True
    if length < 2 or not (shared or len(edge) > 1):
        return False
    start, stop = _edges_of(edge, min(b, len(edge) - 1), length)
    return any_invalid(edge, start, stop)


@kernel
def _first_beyond(lengths, T):  # type: ignore[no-untyped-def]
    """Return the first sequence whose length is not in 0..T; -1 where there is none."""
    for b in range(len(lengths)):
        if length_out_of_range(lengths[b], T):
            return b
    return -1


@kernel
def _any_nan(numbers):  # type: ignore[no-untyped-def]
    return np.isnan(numbers).any()


@kernel
def _first_invalid(unary, edge, lengths):  # type: ignore[no-untyped-def]
    """Return the places of the first +inf or NaN among the scores and among the edges; -1 where there is none."""
    B, T, L = unary.shape
    for b in range(B):
        at = _invalid(unary.reshape(-1), b * T * L, (b * T + lengths[b]) * L)
        if at >= 0:
            return at, -1
    for b in range(B):
        if lengths[b] > 1:
            start, stop = _edges_of(edge, min(b, len(edge) - 1), lengths[b])
            at = _invalid(edge.reshape(-1), start, stop)
            if at >= 0:
                return -1, at
    return -1, -1


@subkernel_no_alloc
def _edges_of(edge, b, length):  # type: ignore[no-untyped-def]
    """Return the places where the edges at b begin and end that lead from token to token of so many."""
    _, each, L, _ = edge.shape
    last = 1 if each == 1 else length
    return (b * each + (each > 1)) * L * L, (b * each + last) * L * L


@subkernel
def _invalid(scores, start, stop):  # type: ignore[no-untyped-def]
    """Return the first place from start to stop where scores (N,) are +inf or NaN; -1 where none is."""
    for place in range(start, stop):
        if not scores[place] < np.inf:
            return place
    return -1


@kernel
def _outside(labels, lengths, rows, L):  # type: ignore[no-untyped-def]
    for s in range(len(labels)):
        for t in range(lengths[rows[s]]):
            if labels[s, t] < 0 or labels[s, t] >= L:
                return s, t
    return -1, -1
