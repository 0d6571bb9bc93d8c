"""What is looked at in tensors on a CPU, where nothing has to be waited for."""

import numpy as np
from torch import Tensor

from structperc.errors import InfiniteScore, InputError
from structperc.ops.cpu.compiled import arrays, kernel
from structperc.ops.cpu.lanes import WIDTH, larger, largest, load_some, spread


def check_lengths(lengths: Tensor, T: int) -> None:
    """InputError for a length outside 0..T."""
    b = _first_beyond(0, 1, *arrays(lengths), T)
    if b >= 0:
        raise InputError(f"lengths: sequence {b} of {len(lengths)} has {int(lengths[b])} tokens, expected 0..{T}")


def check_scores(unary: Tensor, edge: Tensor, lengths: Tensor) -> None:
    """InputError for a length outside 0..T, InfiniteScore for a score of a real token or an edge into one that is +inf.

    For searches: of labellings that score +inf none is the best.
    """
    check_lengths(lengths, unary.shape[1])
    wrong = _first_infinite(0, 1, *arrays(unary, edge, lengths))
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


@kernel
def any_beyond(first, step, lengths, T):  # type: ignore[no-untyped-def]
    """Return whether `check_lengths` refuses sequences first, first + step, ..., for the kernel that works on them."""
    return _first_beyond(first, step, lengths, T) >= 0


@kernel
def any_unfit(first, step, unary, edge, lengths):  # type: ignore[no-untyped-def]
    """Return whether `check_scores` refuses sequences first, first + step, ..., for the kernel that searches them."""
    return any_beyond(first, step, lengths, unary.shape[1]) or _first_infinite(first, step, unary, edge, lengths) >= 0


@kernel
def _first_beyond(first, step, lengths, T):  # type: ignore[no-untyped-def]
    """Return the first sequence whose length is not in 0..T; -1 where there is none."""
    for b in range(first, len(lengths), step):
        if lengths[b] < 0 or lengths[b] > T:
            return b
    return -1


@kernel
def _any_nan(numbers):  # type: ignore[no-untyped-def]
    return np.isnan(numbers).any()


@kernel
def _first_infinite(first, step, unary, edge, lengths):  # type: ignore[no-untyped-def]
    """Return sequence * T + token of the first +inf among the scores; -1 where there is none."""
    B, T, L = unary.shape
    scores, steps = unary.reshape(-1), edge.reshape(-1)
    for b in range(first, B, step):
        at = _infinite(scores, b * T * L, (b * T + lengths[b]) * L)
        if at >= 0:
            return at // L
    own, each = len(edge) > 1, edge.shape[1]
    for b in range(first if own else 0, len(edge) if T > 1 else 0, step):
        last = 1 if each == 1 else lengths[b] if own else T
        at = _infinite(steps, (b * each + (each > 1)) * L * L, (b * each + last) * L * L)
        if at >= 0:
            return b * T + at // (L * L) % each
    return -1


@kernel
def _infinite(scores, start, stop):  # type: ignore[no-untyped-def]
    """Return the first place from start to stop where scores (N,) are +inf; -1 where none is."""
    highest = spread(scores.dtype.type(-np.inf))
    for place in range(start, stop, WIDTH):
        highest = larger(load_some(scores, place, stop - place), highest)
    if largest(highest) == np.inf:
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
