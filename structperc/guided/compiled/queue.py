"""The queue of candidates of one sentence, which says which one comes next: a tournament between places.

An array of 2 n scores, n a power of two: the last n are those of the places, -inf where no candidate waits, and each
one before is the higher of two, so that to find and to change one costs O(log n).
"""

import numpy as np

from structperc.kernels.jit import kernel, subkernel_no_alloc


@kernel
def empty_queue(places, dtype):  # type: ignore[no-untyped-def]
    """Return a queue for so many places, in which nobody waits."""
    n = 1
    while n < places:
        n *= 2
    return np.full(2 * n, -np.inf, dtype)


@subkernel_no_alloc
def put(queue, place, score):  # type: ignore[no-untyped-def]
    """Set the score of a place; -inf takes its candidate out."""
    i = len(queue) // 2 + place
    queue[i] = score
    while i > 1:
        i //= 2
        queue[i] = max(queue[2 * i], queue[2 * i + 1])


@subkernel_no_alloc
def best(queue):  # type: ignore[no-untyped-def]
    """Return the place of the highest score, of equal ones the first; some candidate must wait."""
    i = 1
    while i < len(queue) // 2:
        i = 2 * i + (queue[2 * i] < queue[2 * i + 1])
    return i - len(queue) // 2


@subkernel_no_alloc
def waits(queue, place):  # type: ignore[no-untyped-def]
    """Tell whether there is a candidate at a place."""
    return queue[len(queue) // 2 + place] > -np.inf
