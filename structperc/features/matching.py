"""Phrases found in sentences, compiled."""

import numpy as np

from structperc.kernels.jit import kernel, subkernel_no_alloc


@kernel
def match(words, sentences, keys, final, size, tags):  # type: ignore[no-untyped-def]
    """Set tags (N,) int8, 0 before, to 1 where the leftmost-longest matches begin and to 2 inside of them.

    words (N,) are numbers below `size`, negative where no phrase has the word. The trie is as in `Gazetteer`.
    """
    for r in range(len(sentences) - 1):
        t, stop = sentences[r], sentences[r + 1]
        while t < stop:
            end = _longest(words, t, stop, keys, final, size)
            for i in range(t, end):
                tags[i] = 1 if i == t else 2
            t = max(end, t + 1)


@subkernel_no_alloc
def _longest(words, start, stop, keys, final, size):  # type: ignore[no-untyped-def]
    """Return where the longest phrase ends that begins with the word at start; start where none does."""
    state, end = 0, start
    for t in range(start, stop):
        if words[t] < 0:
            break
        key = state * size + words[t]
        rank = _rank(keys, key)
        if rank == len(keys) or keys[rank] != key:
            break
        state = rank + 1
        if final[state]:
            end = t + 1
    return end


@subkernel_no_alloc
def _rank(keys, key):  # type: ignore[no-untyped-def]
    """Return how many of the ascending keys are smaller than this one."""
    low, high = np.int64(0), np.int64(len(keys))
    while low < high:
        middle = (low + high) // 2
        if keys[middle] < key:
            low = middle + 1
        else:
            high = middle
    return low
