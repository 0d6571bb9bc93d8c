"""The k best labellings, compiled: prefixes, extended only where the k best can differ.

Losses, prefixes and their order are those of the reference in tensors. A bound on what the k best lose is known before
(`kbest_bound`): whatever loses more is never looked at, so that a list grows to k only at its end, and at most tokens
all prefixes have one choice, the free one. The other tokens are the forks. Prefixes are told by their labels at the
forks, each with the place of its prefix in the list of the fork before; between forks there is a map from the label of
the fork to that of each token. Work O(T L^2) and O(k L) at each fork, memory O(T k).
"""

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from structperc.kernels.jit import kernel, subkernel
from structperc.kernels.simd import padded_array
from structperc.kernels.viterbi import edge_blocks, suffix_scores
from structperc.ops.cpu.checks import check_scores, has_invalid_scores, length_out_of_range, unfit_edges
from structperc.ops.cpu.kbest_bound import loss_bound, losses_after, smallest
from structperc.ops.cpu.threads import run_in_threads, take


class Forks(NamedTuple):
    """Of one sequence; the first fork is the place before the first token, with one prefix, the empty one."""

    token: Any  # (T + 1,) where each fork is
    start: Any  # (T + 1,) where its prefixes stand in `origin` and `label`, in lexicographic order
    origin: Any  # (1 + (T + L) k,) which prefix of the fork before each one extends
    label: Any  # (1 + (T + L) k,) with which label
    labels: Any  # (T, L) of each token, by the label of the last fork up to it


class Choices(NamedTuple):
    """What may follow the prefixes, by their label at the last fork."""

    now: Any  # (L,) label that they have by now; -1 if there are none
    least: Any  # (L,) least loss of any
    gained: Any  # (L,) score since the fork
    count: Any  # (L,) how many labels are within the bound
    labels: Any  # (L, L) which, the lowest first; a single one is the free one
    losses: Any  # (L, L) of all labels


def kbest(unary: Tensor, edge: Tensor, lengths: Tensor, k: int) -> tuple[Tensor, Tensor, Tensor]:
    """The contract is that of `structperc.ops.kbest`."""
    B, T, L = unary.shape
    labels, scores = torch.empty(B, k, T, dtype=torch.int64), torch.empty(B, k, dtype=unary.dtype)
    if run_in_threads(_search, B, 16 * T * (L + k), unary, edge, lengths, k, labels, scores):
        check_scores(unary, edge, lengths)
    return labels, scores, scores > -torch.inf


@subkernel
def _search(side, turns, unary, edge, lengths, k, labels, scores):  # type: ignore[no-untyped-def]
    shared, (B, T, L) = unfit_edges(unary, edge), unary.shape
    into, onward, best = edge_blocks(edge[0], unary), padded_array(T, L, unary), padded_array(T, L, unary)
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
    for _ in range(B):
        b = take(side, turns)
        if b < 0:
            break
        if length_out_of_range(lengths[b], T) or has_invalid_scores(b, unary, edge, lengths, shared):
            return True
        length, edges = lengths[b], edge[0 if edge.shape[0] == 1 else b]
        if len(edge) > 1:
            into = edge_blocks(edges, unary)
        suffix_scores(unary[b], edges, into, length, onward, best)
        bound, n, last = loss_bound(edges, length, onward, k), 0, 0
        if bound >= 0:
            n, last = _list(unary[b], edges, length, onward, bound, forks, choices, losses, totals)
        labels[b], scores[b] = 0, -np.inf
        _write(n, last, length, forks, totals[last % 2], labels[b], scores[b])
    return False


@kernel
def _list(unary, edge, length, onward, bound, forks, choices, losses, totals):  # type: ignore[no-untyped-def]
    """Fill in the forks, and the scores of all labellings -> how many there are, and the last fork.

    The losses and scores of the prefixes of a fork stand in one row of (2, k L) and (2, k); those of the next in the
    other.
    """
    label, start = forks.label, forks.start
    forks.token[0] = start[0] = label[0] = 0
    losses[0, 0] = totals[0, 0] = 0
    n, f = np.int64(1), np.int64(0)  # for plain 1 and 0 the functions called would be compiled once more
    _tell_apart(n, label, losses[0], choices)
    for t in range(length):
        if not _choose(t, edge, onward, bound, choices):
            _go_on(t, unary, edge, choices, forks.labels)
            continue
        here, there, old, before = f % 2, 1 - f % 2, label[start[f] :], losses[f % 2]
        f += 1
        start[f], forks.token[f] = start[f - 1] + n, t
        origin, new = forks.origin[start[f] :], label[start[f] :]
        n = _extend(n, old, before, bound, choices, losses[there], origin, new)
        n, bound = _keep(n, totals.shape[1], bound, losses[there], before, origin, new)
        for p in range(n):
            q, j = old[origin[p]], new[p]
            totals[there, p] = totals[here, origin[p]] + choices.gained[q] + _gain(t, choices.now[q], j, unary, edge)
        _tell_apart(n, new, losses[there], choices)
        for q in range(unary.shape[1]):
            forks.labels[t, q] = q
    for p in range(n):
        totals[f % 2, p] += choices.gained[label[start[f] + p]]
    return n, f


@subkernel
def _choose(t, edge, onward, bound, choices):  # type: ignore[no-untyped-def]
    """Fill in what may follow at token t; return whether any prefix has a choice."""
    fork = False
    for q in range(edge.shape[1]):
        if choices.now[q] < 0:
            continue
        losses, labels, least, count = choices.losses[q], choices.labels[q], choices.least[q], 0
        losses_after(choices.now[q], t, edge, onward, losses)
        for j in range(edge.shape[1]):
            labels[count] = j
            count += least + losses[j] <= bound
        choices.count[q] = count
        fork |= count > 1
    return fork


@subkernel
def _go_on(t, unary, edge, choices, labels):  # type: ignore[no-untyped-def]
    """All prefixes take the free label at token t."""
    for q in range(unary.shape[1]):
        i = choices.now[q]
        if i >= 0:
            choices.now[q] = labels[t, q] = j = choices.labels[q, 0]
            choices.gained[q] += _gain(t, i, j, unary, edge)


@subkernel
def _gain(t, i, j, unary, edge):  # type: ignore[no-untyped-def]
    """Score of label j at token t after label i, in float64."""
    return np.float64(unary[t, j]) + (np.float64(edge[0 if edge.shape[0] == 1 else t, i, j]) if t else 0.0)


@kernel
def _extend(n, label, losses, bound, choices, longer, origin, new):  # type: ignore[no-untyped-def]
    """Extend n prefixes by all labels within the bound; return how many that makes, in lexicographic order."""
    counts, labels, steps = choices.count, choices.labels, choices.losses
    m = 0
    for p in range(n):
        q = label[p]
        for c in range(counts[q]):
            j = labels[q, c]
            longer[m], origin[m], new[m] = losses[p] + steps[q, j], p, j
            m += longer[m] <= bound
    return m


@kernel
def _keep(m, k, bound, losses, copies, origin, label):  # type: ignore[no-untyped-def]
    """Keep the k smallest of m prefixes, the first among equals -> how many are left, and a bound for the next ones."""
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


@subkernel
def _tell_apart(n, label, losses, choices):  # type: ignore[no-untyped-def]
    """From a fork on, prefixes are told by the label that they have there."""
    now, least = choices.now, choices.least
    for q in range(len(now)):
        now[q], least[q], choices.gained[q] = -1, np.inf, 0
    for p in range(n):
        q = label[p]
        now[q], least[q] = q, min(least[q], losses[p])


@kernel
def _write(n, last, length, forks, totals, labels, scores):  # type: ignore[no-untyped-def]
    """Write n labellings, the best first, and their scores."""
    for p in range(n):
        scores[p] = totals[p]
        totals[p] = scores[p]  # rounded to the precision of the lattice, in which they are compared
    order = _best_first(totals[:n])
    start, token, label, origin, between = forks.start, forks.token, forks.label, forks.origin, forks.labels
    rank = np.empty(n, np.int64)
    for r in range(n):
        rank[order[r]] = r
    for p in range(n):  # neighbours in lexicographic order stand close together at all forks
        scores[rank[p]] = totals[p]
        row, slot, end = labels[rank[p]], p, length
        for f in range(last, -1, -1):
            place = start[f] + slot
            q = label[place]
            for t in range(token[f], end):
                row[t] = between[t, q]
            end, slot = token[f], origin[place]


@subkernel
def _best_first(scores):  # type: ignore[no-untyped-def]
    """-> places (n,) of the scores, the highest first, equal ones in their order: a merge sort."""
    n, width = len(scores), 1
    order, merged = np.empty(n, np.int64), np.empty(n, np.int64)
    for r in range(n):
        order[r] = r
    while width < n:
        for low in range(0, n, 2 * width):
            middle, high = min(low + width, n), min(low + 2 * width, n)
            i, j = low, middle
            for r in range(low, high):
                if j >= high or (i < middle and scores[order[i]] >= scores[order[j]]):
                    merged[r] = order[i]
                    i += 1
                else:
                    merged[r] = order[j]
                    j += 1
        order, merged, width = merged, order, 2 * width
    return order
