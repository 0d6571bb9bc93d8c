"""The segments of all labellings of a batch, listed labelling by labelling, compiled."""

import numpy as np

from structperc.kernels.jit import kernel, subkernel_no_alloc

FEW = 16  # segments of a labelling for which there is room at first


@kernel
def listed_segments(labels, valid, lengths, first, types, opening):  # type: ignore[no-untyped-def]
    """Read the segments of labels (B, K, T) that `segment_boundaries` reads -> the fields of `SegmentLists`.

    valid (B, K): those that are not have none. lengths (B,); first (B, T), first tokens of sentences; types (L,) of
    labels, -1 for none, and opening (L, L) are those of a `LabelSet`. Nothing of the padding is read.
    """
    B, K, T = labels.shape
    bounds, n = np.zeros(B * K + 1, np.int64), 0
    found = np.empty((3, FEW * B * K + T), np.int64)
    for b in range(B):
        for k in range(K):
            if valid[b, k]:
                if found.shape[1] < n + T:
                    larger = np.empty((3, 2 * found.shape[1]), np.int64)
                    larger[:, :n] = found[:, :n]
                    found = larger
                n = _read(labels[b, k], lengths[b], first[b], types, opening, b * T, found, n)
            bounds[b * K + k + 1] = n
    return bounds, found[0, :n], found[1, :n], found[2, :n]


@subkernel_no_alloc
def _read(labels, length, first, types, opening, at, found, n):  # type: ignore[no-untyped-def]
    """Write the segments of labels (T,), whose first token is at a place, after the n that are found; -> how many."""
    within, before = False, 0
    for t in range(length):
        label = labels[t]
        inside = types[label] >= 0
        opens = inside and (t == 0 or first[t] or opening[before, label])
        if within and (opens or not inside):
            found[1, n] = at + t
            n, within = n + 1, False
        if opens:
            found[0, n], found[2, n], within = at + t, types[label], True
        before = label
    if within:
        found[1, n] = at + length
        n += 1
    return n
