"""What is looked at in tensors on a CPU, where nothing has to be waited for."""

import numpy as np
from torch import Tensor

from structperc.errors import InfiniteScore, InputError
from structperc.kernels.compiled import inner_kernel, kernel, kernel_part
from structperc.kernels.onward import highest
from structperc.ops.cpu.arrays import arrays


def check_lengths(lengths: Tensor, T: int) -> None:
    """InputError for a length outside 0..T."""
    b = _first_beyond(*arrays(lengths), T)
    if b >= 0:
        raise InputError(f"lengths: sequence {b} of {len(lengths)} has {int(lengths[b])} tokens, expected 0..{T}")


def check_scores(unary: Tensor, edge: Tensor, lengths: Tensor) -> None:
    """InputError for a length outside 0..T, InfiniteScore for a score of a real token or an edge into one that is +inf.

    For searches: of labellings that score +inf none is the best.
    """
    check_lengths(lengths, unary.shape[1])
    wrong = _first_infinite(*arrays(unary, edge, lengths))
    if wrong >= 0:
        b, t = divmod(wrong, unary.shape[1])
        raise InfiniteScore(
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


def any_nan(x: Tensor) -> bool:
    """Return whether NaN is among numbers (N,)."""
    return bool(_any_nan(*arrays(x)))


@inner_kernel
def beyond(length, T):  # type: ignore[no-untyped-def]
    """Return whether `check_lengths` refuses a length."""
    return length < 0 or length > T


@inner_kernel
def unfit_edges(unary, edge):  # type: ignore[no-untyped-def]
    """Return whether `check_scores` refuses edges that all sequences share."""
    T = unary.shape[1]
    return len(edge) == 1 and T > 1 and highest(edge, *_edges_of(edge, 0, T)) == np.inf


@inner_kernel
def unfit_sequence(b, unary, edge, lengths):  # type: ignore[no-untyped-def]
    """Return whether `check_scores` refuses the length of sequence b, its scores or its own edges."""
    (_, T, L), length = unary.shape, lengths[b]
    if beyond(length, T) or highest(unary, b * T * L, (b * T + length) * L) == np.inf:
        return True
    return len(edge) > 1 and T > 1 and highest(edge, *_edges_of(edge, b, length)) == np.inf


@kernel
def _first_beyond(lengths, T):  # type: ignore[no-untyped-def]
    """Return the first sequence whose length is not in 0..T; -1 where there is none."""
    for b in range(len(lengths)):
        if beyond(lengths[b], T):
            return b
    return -1


@kernel
def _any_nan(numbers):  # type: ignore[no-untyped-def]
    return np.isnan(numbers).any()


@kernel
def _first_infinite(unary, edge, lengths):  # type: ignore[no-untyped-def]
    """Return sequence * T + token of the first +inf among the scores; -1 where there is none."""
    B, T, L = unary.shape
    for b in range(B):
        at = _infinite(unary.reshape(-1), b * T * L, (b * T + lengths[b]) * L)
        if at >= 0:
            return at // L
    for b in range(len(edge) if T > 1 else 0):
        start, stop = _edges_of(edge, b, lengths[b] if len(edge) > 1 else T)
        at = _infinite(edge.reshape(-1), start, stop)
        if at >= 0:
            return b * T + at // (L * L) % edge.shape[1]
    return -1


@inner_kernel
def _edges_of(edge, b, length):  # type: ignore[no-untyped-def]
    """Return the places where the edges at b begin and end that lead from token to token of so many."""
    _, each, L, _ = edge.shape
    last = 1 if each == 1 else length
    return (b * each + (each > 1)) * L * L, (b * each + last) * L * L


@kernel_part
def _infinite(scores, start, stop):  # type: ignore[no-untyped-def]
    """Return the first place from start to stop where scores (N,) are +inf; -1 where none is."""
    if highest(scores, start, stop) == np.inf:
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
