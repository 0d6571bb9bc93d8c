"""Counts of pairs of segments in one chain, compiled."""

import numpy as np

from structperc.kernels.jit import kernel, subkernel_no_alloc


@kernel
def counted_chains(bounds, starts, stops, types, connects, first, C):  # type: ignore[no-untyped-def]
    """Return the pairs of each kind, (N, C (C + 1) / 2) float32, of segments listed of N labellings.

    Of C types. connects and first, (B * T,) bool: connectors, and first tokens of sentences; see
    `ConjunctionConsistency`.
    """
    counts, members = np.zeros((len(bounds) - 1, C * (C + 1) // 2), np.float32), np.zeros(C, np.int64)
    for i in range(len(counts)):
        for e in range(bounds[i], bounds[i + 1]):
            if e > bounds[i] and not _connected(stops[e - 1], starts[e], connects, first):
                _close(members, counts[i])
            members[types[e]] += 1
        _close(members, counts[i])
    return counts


@subkernel_no_alloc
def _connected(start, stop, connects, first):  # type: ignore[no-untyped-def]
    """Whether the tokens between two segments, at least one, are connectors, and all are of one sentence."""
    for t in range(start, stop):
        if first[t] or not connects[t]:
            return False
    return stop > start and not first[stop]


@subkernel_no_alloc
def _close(members, counts):  # type: ignore[no-untyped-def]
    """Count the pairs of a chain with members (C,) of each type, and begin another one."""
    C, column = len(members), 0
    for a in range(C):
        for b in range(a, C):
            counts[column] += members[a] * (members[a] - 1) // 2 if a == b else members[a] * members[b]
            column += 1
    members[:] = 0
