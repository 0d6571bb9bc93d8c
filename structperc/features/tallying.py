"""Keys counted by bucket, compiled."""

import numpy as np

from structperc.features.hashing import NO_KEY
from structperc.kernels.jit import kernel

LAST = np.uint64(7)


@kernel
def tally(keys, counts, seen):  # type: ignore[no-untyped-def]
    """Add 1 to the counts (2**b,) uint8 of the buckets of keys (n,) uint64, as far as they go, and mark the keys.

    A bucket is the lowest bits of a key, its mark one bit of seen (2**24,) uint8, the highest ones. -> marks that are
    new.
    """
    new = 0
    mask = np.uint64(len(counts) - 1)
    for i in range(len(keys)):
        key = keys[i]
        if key == NO_KEY:
            continue
        bucket = np.int64(key & mask)
        if counts[bucket] < 255:
            counts[bucket] += 1
        mark = key >> np.uint64(37)
        byte, bit = np.int64(mark >> np.uint64(3)), np.uint8(1 << np.int64(mark & LAST))
        new += (seen[byte] & bit) == 0
        seen[byte] |= bit
    return new
