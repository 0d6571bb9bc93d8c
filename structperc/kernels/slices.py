"""Stretches of what lies one after the other, copied into one array: what mini-batches are cut from a corpus by.

Sequences that lie one after the other: sequence s is the tokens bounds[s], ..., bounds[s + 1] - 1.
"""

from typing import Any

import numpy as np
from numba import types
from numba.core.cgutils import raw_memcpy

from structperc.kernels.jit import kernel, subkernel_no_alloc
from structperc.kernels.numba_internals import number_at, operation


def copy_slices(rows: np.ndarray, starts: np.ndarray, stops: np.ndarray) -> np.ndarray:
    """Return a copy of rows[starts[i]:stops[i]] for one i after the other; rows (N, ...) of any type.

    starts and stops, (m,) int64, lie within 0..N, no stretch ends before it starts. Nothing of this is checked.
    """
    taken = np.empty((int((stops - starts).sum()), *rows.shape[1:]), rows.dtype)
    size = rows.dtype.itemsize * int(np.prod(rows.shape[1:]))
    _copy(_bytes(rows), starts.astype(np.int64) * size, stops.astype(np.int64) * size, _bytes(taken))
    return taken


def remove_padding(padded: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Return what stands in rows (B, T, ...) before their padding, row after row: (n, ...); lengths (B,), 0 to T.

    It is not copied where there is no padding, as of single sequences.
    """
    B, T = padded.shape[:2]
    rows = padded.reshape(B * T, *padded.shape[2:])
    if lengths.sum() == len(rows):
        return rows
    starts = np.arange(B) * T
    return copy_slices(rows, starts, starts + lengths)


@kernel
def copy_offsets(ends, starts, stops):  # type: ignore[no-untyped-def]
    """Return where the lists starts[i], ..., stops[i] - 1 end once they are copied, and how long the longest is.

    List t is what lies from ends[t] to ends[t + 1]; ends (N + 1,), starts and stops (m,), all int64. The lists of one
    i come after those of the other: -> (n + 1,) int32, from 0 on, and a number.
    """
    taken = np.empty((stops - starts).sum() + 1, np.int32)
    taken[0] = at = longest = k = 0
    for i in range(len(starts)):
        for t in range(starts[i], stops[i]):
            count = ends[t + 1] - ends[t]
            longest = max(longest, count)
            at += count
            k += 1
            taken[k] = at
    return taken, longest


@kernel
def _copy(whole, starts, stops, taken):  # type: ignore[no-untyped-def]
    """Copy bytes, one signature for arrays of all types."""
    at = 0
    for i in range(len(starts)):
        length = stops[i] - starts[i]
        _move(whole, starts[i], taken, at, length)
        at += length


@operation
def _move(context: Any, whole: Any, start: Any, taken: Any, at: Any, length: Any) -> Any:
    """As C's memcpy: assigning the slice would move number after number, in two to five times as long."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        source = number_at(context, builder, signature, arguments)
        target = number_at(context, builder, signature.replace(args=signature.args[2:]), arguments[2:])
        raw_memcpy(builder, target, source, arguments[4], 1)
        return context.get_dummy_value()

    return types.void(whole, start, taken, at, length), generate


def _bytes(array: np.ndarray) -> np.ndarray:
    return array.ravel().view(np.uint8)


@subkernel_no_alloc
def longest_sequence(bounds):  # type: ignore[no-untyped-def]
    """Return the length of the longest sequence, 0 of none. numpy's `diff` would take three seconds to compile."""
    found = 0
    for s in range(len(bounds) - 1):
        found = max(found, bounds[s + 1] - bounds[s])
    return found
