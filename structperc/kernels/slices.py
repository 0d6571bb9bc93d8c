"""Slices of arrays copied into one array, as mini-batches are taken from a corpus."""

import numpy as np

from structperc.kernels.jit import kernel, subkernel_no_alloc
from structperc.kernels.numba_internals import copy_bytes


def copy_slices(rows: np.ndarray, starts: np.ndarray, stops: np.ndarray) -> np.ndarray:
    """Return rows[starts[i]:stops[i]] for all i, concatenated; rows (N, ...) of any dtype.

    starts and stops are (m,) int64 with 0 <= start <= stop <= N, which is not checked.
    """
    taken = np.empty((int((stops - starts).sum()), *rows.shape[1:]), rows.dtype)
    size = rows.dtype.itemsize * int(np.prod(rows.shape[1:]))
    _copy(_bytes(rows), starts.astype(np.int64) * size, stops.astype(np.int64) * size, _bytes(taken))
    return taken


def remove_padding(padded: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Return the entries of (B, T, ...) before the padding, concatenated (n, ...); lengths (B,) are 0..T.

    Without padding this is a view.
    """
    B, T = padded.shape[:2]
    rows = padded.reshape(B * T, *padded.shape[2:])
    if lengths.sum() == len(rows):
        return rows
    starts = np.arange(B) * T
    return copy_slices(rows, starts, starts + lengths)


def copy_offsets(ends: np.ndarray, starts: np.ndarray, stops: np.ndarray) -> tuple[np.ndarray, int]:
    """Return the offsets (n + 1,) int32 of the lists starts[i], ..., stops[i] - 1 once concatenated, and the longest.

    List t is the entries ends[t]:ends[t + 1] of an array; ends (N + 1,), starts and stops (m,) are int64.
    """
    counts = copy_slices(ends[1:], starts, stops) - copy_slices(ends[:-1], starts, stops)
    taken = np.zeros(len(counts) + 1, np.int32)
    counts.cumsum(out=taken[1:])
    return taken, int(counts.max(initial=0))


@kernel
def _copy(whole, starts, stops, taken):
    """Copy bytes: one signature for arrays of all dtypes."""
    at = 0
    for i in range(len(starts)):
        length = stops[i] - starts[i]
        copy_bytes(whole, starts[i], taken, at, length)
        at += length


def _bytes(array: np.ndarray) -> np.ndarray:
    return array.ravel().view(np.uint8)


@subkernel_no_alloc
def longest_sequence(bounds):
    """Return the largest of bounds[s + 1] - bounds[s], 0 without any; numpy's `diff` takes three seconds to compile."""
    found = 0
    for s in range(len(bounds) - 1):
        found = max(found, bounds[s + 1] - bounds[s])
    return found


@subkernel_no_alloc
def rank(values, value):
    """Return how many of the ascending values are smaller than this one; `searchsorted` takes long to compile."""
    low, high = np.int64(0), np.int64(len(values))
    while low < high:
        middle = (low + high) // 2
        if values[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low
