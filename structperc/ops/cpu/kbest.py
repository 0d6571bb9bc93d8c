"""The k best label sequences: prefixes, extended only where the k best can differ.

Losses, prefixes and their order are those of the reference. A bound on the loss of the k best is known before the
search: what loses more is never looked at, so that a list grows to k only at its end, and at most tokens all prefixes
have one choice, which loses nothing. The other tokens are the forks. Prefixes are identified by their labels at the
forks, each with the index of its prefix in the list of the fork before; between forks there is a map from the label of
the fork to that of each token. Work is O(T L^2) and O(k L) at each fork, memory O(T k).
"""

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from structperc.kernels.best_path import any_invalid, edge_blocks, fill_edge_blocks, has_invalid_scores, suffix_scores
from structperc.kernels.jit import FAST_COMPARISONS, kernel, subkernel, subkernel_no_alloc
from structperc.kernels.simd import padded_array
from structperc.ops.cpu.checks import check_scores
from structperc.ops.cpu.threads import run_in_threads

COUNTED = 200  # list length from which a count of paths pays (measured)
BINS = 64  # of losses, in such a count


class Forks(NamedTuple):
    """Forks of one sequence; the first one is before the first token and has one prefix, the empty one."""

    token: Any  # (T + 1,) token of each fork
    start: Any  # (T + 1,) index of its first prefix in `origin` and `label`, in lexicographic order
    origin: Any  # (1 + (T + L) k,) the prefix of the fork before that each one extends
    label: Any  # (1 + (T + L) k,) the label of each
    labels: Any  # (T, L) of each token, by the label of the last fork up to it


class Choices(NamedTuple):
    """Continuations of the prefixes, by their label at the last fork."""

    now: Any  # (L,) their present label; -1 if there are none
    least: Any  # (L,) smallest loss
    gained: Any  # (L,) score since the fork
    count: Any  # (L,) number of labels within the bound
    labels: Any  # (L, L) these labels in order; a single one has loss 0
    losses: Any  # (L, L) of all labels


def kbest(unary: Tensor, edge: Tensor, lengths: Tensor, k: int) -> tuple[Tensor, Tensor, Tensor]:
    """Implement `structperc.ops.operators.kbest`."""
    B, T, L = unary.shape
    labels, scores = torch.empty(B, k, T, dtype=torch.int64), torch.empty(B, k, dtype=unary.dtype)
    if run_in_threads(_search, B, 16 * T * (L + k), unary, edge, lengths, k, labels, scores):
        check_scores(unary, edge, lengths)
    return labels, scores, scores > -torch.inf


@subkernel_no_alloc(fastmath=FAST_COMPARISONS)
def losses_after(label, t, edge, suffix, losses):
    """Fill losses (L,) of the labels of token t after this label: how much worse their best continuation is.

    Return the lowest label of loss 0; -1 where nothing can follow. The first token follows no label.
    """
    L = edge.shape[1]
    step = edge[0 if edge.shape[0] == 1 else t, label]
    best = suffix.dtype.type(-np.inf)
    for j in range(L):
        losses[j] = (step[j] if t else suffix.dtype.type(0)) + suffix[t, j]
        best = max(best, losses[j])
    if best == -np.inf:
        return -1
    free = L - 1
    for j in range(L):
        losses[j] = best - losses[j]
        free = min(free, j if losses[j] == 0 else L)
    return free


@subkernel
def loss_bound(edge, length, suffix, k):
    """Return an upper bound on the losses of the k best paths; -1 if there is no path.

    A path that leaves the best one once, and then continues as well as possible, has the loss of the edge on which it
    leaves. The (k - 1)-th smallest of these losses is the bound, without rounding: the search computes the same
    numbers. Long lists get the closer bound of `_counted_bound`.
    """
    L, label, n = edge.shape[1], np.int64(0), np.int64(0)
    losses = np.empty(length * L, suffix.dtype)
    for t in range(length):
        here = losses[n : n + L]
        label = losses_after(label, t, edge, suffix, here)
        if label < 0:
            return suffix.dtype.type(-1)
        here[label] = np.inf
        for j in range(L):
            losses[n] = here[j]
            n += losses[n] < np.inf
    if k == 1 or n == 0:
        return suffix.dtype.type(0)
    bound = smallest(losses, n, min(n, k - 1))
    reached = bound if k - 1 <= n else np.finfo(suffix.dtype).max
    return _counted_bound(edge, length, suffix, k, bound, reached) if k >= COUNTED else reached


@subkernel
def _counted_bound(edge, length, suffix, k, trial, bound):
    """Return a bound by counting paths, in bins of losses up to a trial, as long as finer bins lower it by a third."""
    while trial / BINS > 0:
        found = _loss_of_kth_path(edge, length, suffix, k, trial)
        found *= 1 + (length + 2) * np.finfo(suffix.dtype).eps  # a sum of losses may be rounded up at each token
        bound = min(bound, suffix.dtype.type(found))
        if found > 2 * trial / 3:
            break
        trial = bound
    return bound


@subkernel
def _loss_of_kth_path(edge, length, suffix, k, trial):
    """Return the loss up to which there are k paths, each edge's rounded up to a whole bin; inf if above the trial.

    Prefixes are counted by their last label and loss, and extended by all labels: L^2 additions of bins at most, few
    where most edges lose more than the trial.
    """
    L, width = edge.shape[1], trial / BINS
    losses = np.empty(L, suffix.dtype)
    counts, longer = np.zeros((L, BINS + 1)), np.zeros((L, BINS + 1))
    counts[0, 0] = 1
    for t in range(length):
        longer[:] = 0
        for i in range(L):
            if not counts[i].any():
                continue
            losses_after(i, t, edge, suffix, losses)
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


@subkernel_no_alloc
def smallest(values, n, k):
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


@kernel
def _search(start, stop, unary, edge, lengths, k, labels, scores):
    each, (_, T, L) = len(edge) > 1 or any_invalid(edge.reshape(-1), np.int64(0), edge.size), unary.shape
    into = edge_blocks(edge[0], unary.dtype)
    fill_edge_blocks(edge[0], into)
    suffix, best = padded_array(T, L, unary.dtype), padded_array(T, L, unary.dtype)
    losses, totals = np.empty((2, k * L), unary.dtype), np.empty((2, k))
    origin, label = np.empty(1 + (T + L) * k, np.int32), np.empty(1 + (T + L) * k, np.int16)
    forks = Forks(np.empty(T + 1, np.int64), np.empty(T + 1, np.int64), origin, label, np.empty((T, L), np.int16))
    choices = Choices(
        np.empty(L, np.int64),
        np.empty(L, unary.dtype),
        np.empty(L, np.float64),
        np.empty(L, np.int64),
        np.empty((L, L), np.int16),
        np.empty((L, L), unary.dtype),
    )
    for b in range(start, stop):
        length, edges = lengths[b], edge[0 if edge.shape[0] == 1 else b]
        if not 0 <= length <= T or has_invalid_scores(unary[b], edges, length, each):
            return True
        if len(edge) > 1:
            fill_edge_blocks(edges, into)
        suffix_scores(unary[b], edges, into, length, suffix, best)
        bound, n, last = loss_bound(edges, length, suffix, k), 0, 0
        if bound >= 0:
            n, last = _list_paths(unary[b], edges, length, suffix, bound, forks, choices, losses, totals)
        labels[b], scores[b] = 0, -np.inf
        _write(n, last, length, forks, totals[last % 2], labels[b], scores[b])
    return False


@subkernel_no_alloc
def _list_paths(unary, edge, length, suffix, bound, forks, choices, losses, totals):
    """Fill forks and scores; return the number of paths and of the last fork.

    losses (2, k L) and totals (2, k) hold those of the prefixes of one fork, and of the next, in turn.
    """
    label, start = forks.label, forks.start
    forks.token[0] = start[0] = label[0] = 0
    losses[0, 0] = totals[0, 0] = 0
    n, f = np.int64(1), np.int64(0)  # plain 1 and 0 would compile the functions below twice
    _identify(n, label, losses[0], choices)
    for t in range(length):
        if not _choose(t, edge, suffix, bound, choices):
            _extend_by_best(t, unary, edge, choices, forks.labels)
            continue
        here, there, old, before = f % 2, 1 - f % 2, label[start[f] :], losses[f % 2]
        f += 1
        start[f], forks.token[f] = start[f - 1] + n, t
        origin, new = forks.origin[start[f] :], label[start[f] :]
        n = _extend(n, old, before, bound, choices, losses[there], origin, new)
        n, bound = keep_best(n, totals.shape[1], bound, losses[there], before, origin, new)
        for p in range(n):
            q, j = old[origin[p]], new[p]
            totals[there, p] = totals[here, origin[p]] + choices.gained[q] + _gain(t, choices.now[q], j, unary, edge)
        _identify(n, new, losses[there], choices)
        for q in range(unary.shape[1]):
            forks.labels[t, q] = q
    for p in range(n):
        totals[f % 2, p] += choices.gained[label[start[f] + p]]
    return n, f


@subkernel_no_alloc
def _choose(t, edge, suffix, bound, choices):
    """Fill in the continuations at token t; return whether any prefix has a choice."""
    fork = False
    for q in range(edge.shape[1]):
        if choices.now[q] < 0:
            continue
        losses, labels, least, count = choices.losses[q], choices.labels[q], choices.least[q], 0
        losses_after(choices.now[q], t, edge, suffix, losses)
        for j in range(edge.shape[1]):
            labels[count] = j
            count += least + losses[j] <= bound
        choices.count[q] = count
        fork |= count > 1
    return fork


@subkernel_no_alloc
def _extend_by_best(t, unary, edge, choices, labels):
    """Extend all prefixes by the label of loss 0 at token t."""
    for q in range(unary.shape[1]):
        i = choices.now[q]
        if i >= 0:
            choices.now[q] = labels[t, q] = j = choices.labels[q, 0]
            choices.gained[q] += _gain(t, i, j, unary, edge)


@subkernel_no_alloc
def _gain(t, i, j, unary, edge):
    """Return the score of label j at token t after label i, in float64."""
    return np.float64(unary[t, j]) + (np.float64(edge[0 if edge.shape[0] == 1 else t, i, j]) if t else 0.0)


@subkernel_no_alloc
def _extend(n, label, losses, bound, choices, longer, origin, new):
    """Extend n prefixes by all labels within the bound, in lexicographic order; return their number."""
    counts, labels, steps = choices.count, choices.labels, choices.losses
    m = 0
    for p in range(n):
        q = label[p]
        for c in range(counts[q]):
            j = labels[q, c]
            longer[m], origin[m], new[m] = losses[p] + steps[q, j], p, j
            m += longer[m] <= bound
    return m


@subkernel_no_alloc
def keep_best(m, k, bound, losses, copies, origin, label):
    """Keep the k prefixes of smallest loss, the first among equals; return their number and the new bound."""
    if m <= k:
        return m, bound
    for c in range(m):
        copies[c] = losses[c]
    bound, equals, n = smallest(copies, m, k), k, 0
    for c in range(m):
        equals -= losses[c] < bound
    for c in range(m):
        if losses[c] < bound or (losses[c] == bound and equals > 0):
            equals -= losses[c] == bound
            losses[n], origin[n], label[n] = losses[c], origin[c], label[c]
            n += 1
    return n, bound


@subkernel_no_alloc
def _identify(n, label, losses, choices):
    """Identify the prefixes by their label at a new fork."""
    now, least = choices.now, choices.least
    for q in range(len(now)):
        now[q], least[q], choices.gained[q] = -1, np.inf, 0
    for p in range(n):
        q = label[p]
        now[q], least[q] = q, min(least[q], losses[p])


@kernel
def _write(n, last, length, forks, totals, labels, scores):
    """Write n label sequences, the best first, and their scores."""
    for p in range(n):
        scores[p] = totals[p]
        totals[p] = scores[p]  # compared in the precision of the lattice
    order = np.argsort(-totals[:n], kind="mergesort")
    start, token, label, origin, between = forks.start, forks.token, forks.label, forks.origin, forks.labels
    rank = np.empty(n, np.int64)
    for r in range(n):
        rank[order[r]] = r
    for p in range(n):  # neighbours in lexicographic order are close at all forks
        scores[rank[p]] = totals[p]
        row, slot, end = labels[rank[p]], p, length
        for f in range(last, -1, -1):
            place = start[f] + slot
            q = label[place]
            for t in range(token[f], end):
                row[t] = between[t, q]
            end, slot = token[f], origin[place]
