"""Compiled loops: phrases of gazetteers in sentences, keys counted by bucket."""

import numpy as np

from structperc.kernels.jit import kernel, subkernel_no_alloc
from structperc.kernels.slices import rank


@kernel
def match(words, sentences, keys, final, size, tags):
    """Set tags (N,) int8, 0 before, to 1 where the leftmost-longest matches begin and to 2 inside of them.

    words (N,) are numbers below `size`, negative where no phrase has the word. The trie is as in `Gazetteer`.
    """
    for r in range(len(sentences) - 1):
        t, stop = sentences[r], sentences[r + 1]
        while t < stop:
            end = _longest_phrase(words, t, stop, keys, final, size)
            for i in range(t, end):
                tags[i] = 1 if i == t else 2
            t = max(end, t + 1)


@subkernel_no_alloc
def _longest_phrase(words, start, stop, keys, final, size):
    """Return where the longest phrase ends that begins with the word at start; start where none does."""
    state, end = 0, start
    for t in range(start, stop):
        if words[t] < 0:
            break
        key = state * size + words[t]
        state = rank(keys, key) + 1
        if state > len(keys) or keys[state - 1] != key:
            break
        if final[state]:
            end = t + 1
    return end


LAST = np.uint64(7)


@kernel
def count_keys(keys, counts, seen):
    """Add 1 to the counts (2**b,) uint8 of the buckets of keys (n,) uint64, as far as they go, and mark the keys.

    A bucket is the lowest bits of a key, its mark one bit of seen (2**24,) uint8, the highest ones. -> marks that are
    new.
    """
    new = 0
    mask = np.uint64(len(counts) - 1)
    for i in range(len(keys)):
        key = keys[i]
        if key == 0:  # `hashing.NO_KEY`
            continue
        bucket = np.int64(key & mask)
        if counts[bucket] < 255:
            counts[bucket] += 1
        mark = key >> np.uint64(37)
        byte, bit = np.int64(mark >> np.uint64(3)), np.uint8(1 << np.int64(mark & LAST))
        new += (seen[byte] & bit) == 0
        seen[byte] |= bit
    return new
