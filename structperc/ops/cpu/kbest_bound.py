"""What the k best labellings lose at most, before any is listed: the less a list has to hold, the sooner it is done."""

import numpy as np

from structperc.kernels.jit import ORDERED, subkernel

COUNTED = 200  # lists from here on repay a count of the labellings (measured)
BINS = 64  # of losses, in such a count


@subkernel(fastmath=ORDERED)
def losses_after(label, t, edge, onward, losses):  # type: ignore[no-untyped-def]
    """Fill losses (L,) with what each label of token t loses, after this label, against the best continuation.

    Return the lowest label that loses nothing; -1 where nothing can follow. No label comes before the first token.
    """
    L = edge.shape[1]
    step = edge[0 if edge.shape[0] == 1 else t, label]
    best = onward.dtype.type(-np.inf)
    for j in range(L):
        losses[j] = (step[j] if t else onward.dtype.type(0)) + onward[t, j]
        best = max(best, losses[j])
    if best == -np.inf:
        return -1
    free = L - 1
    for j in range(L):
        losses[j] = best - losses[j]
        free = min(free, j if losses[j] == 0 else L)
    return free


@subkernel
def loss_bound(edge, length, onward, k):  # type: ignore[no-untyped-def]
    """Return a loss that the k best labellings do not exceed; -1 if there is no labelling.

    The best labelling loses nothing; those that leave it once, and are free from there, lose what the edge loses on
    which they leave. So the best one and the k - 1 cheapest of these bound the loss of the k best. It is the very
    number that the search finds for them: no rounding comes in. Long lists deserve the closer bound of a count.
    """
    L, label, n = edge.shape[1], np.int64(0), np.int64(0)
    losses = np.empty(length * L, onward.dtype)
    for t in range(length):
        here = losses[n : n + L]
        label = losses_after(label, t, edge, onward, here)
        if label < 0:
            return onward.dtype.type(-1)
        here[label] = np.inf
        for j in range(L):
            losses[n] = here[j]
            n += losses[n] < np.inf
    if k == 1 or n == 0:
        return onward.dtype.type(0)
    bound = smallest(losses, n, min(n, k - 1))
    reached = bound if k - 1 <= n else np.finfo(onward.dtype).max
    return _counted_bound(edge, length, onward, k, bound, reached) if k >= COUNTED else reached


@subkernel
def _counted_bound(edge, length, onward, k, trial, bound):  # type: ignore[no-untyped-def]
    """Return a bound by counting labellings, in bins up to a trial, while finer ones lower it by a third."""
    while trial / BINS > 0:
        found = _lost_by(edge, length, onward, k, trial)
        found *= 1 + (length + 2) * np.finfo(onward.dtype).eps  # a sum of losses may be rounded up at each token
        bound = min(bound, onward.dtype.type(found))
        if found > 2 * trial / 3:
            break
        trial = bound
    return bound


@subkernel
def _lost_by(edge, length, onward, k, trial):  # type: ignore[no-untyped-def]
    """Return the loss up to which there are k labellings, each edge's rounded up to a whole bin; inf if above a trial.

    Prefixes are counted by their last label and loss, and extended by all labels: L^2 additions of bins at most, few
    where most edges lose more than the trial.
    """
    L, width = edge.shape[1], trial / BINS
    losses = np.empty(L, onward.dtype)
    counts, longer = np.zeros((L, BINS + 1)), np.zeros((L, BINS + 1))
    counts[0, 0] = 1
    for t in range(length):
        longer[:] = 0
        for i in range(L):
            if not counts[i].any():
                continue
            losses_after(i, t, edge, onward, losses)
            for j in range(L):
                if losses[j] <= trial:
                    lost = np.int64(np.ceil(losses[j] / width))
                    for s in range(BINS + 1 - lost):
                        longer[j, lost + s] += counts[i, s]
        counts, longer = longer, counts
    total = 0.0
    for s in range(BINS + 1):
        for j in range(L):
            total += counts[j, s]
        if total >= k:
            return s * width
    return np.inf


@subkernel
def smallest(values, n, k):  # type: ignore[no-untyped-def]
    """Return the k-th smallest of the first n values, which are reordered (Hoare's FIND, 1961)."""
    low, high = 0, n - 1
    while low < high:
        a, b, c = values[low], values[(low + high) // 2], values[high]
        pivot = max(min(a, b), min(max(a, b), c))
        i, j = low, high
        while i <= j:
            while values[i] < pivot:
                i += 1
            while values[j] > pivot:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i, j = i + 1, j - 1
        if k - 1 <= j:
            high = j
        elif k - 1 >= i:
            low = i
        else:
            break
    return values[k - 1]
