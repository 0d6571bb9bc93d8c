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

from structperc.ops.cpu.compiled import kernel, over_sequences
from structperc.ops.cpu.kbest_bound import loss_bound, losses_after, smallest
from structperc.ops.cpu.viterbi import onward_scores


class Forks(NamedTuple):
    """Of one sequence; the first fork is the place before the first token, with one prefix, the empty one."""

    token: Any  # (T + 1,) where each fork is
    start: Any  # (T + 1,) where its prefixes stand in `origin` and `label`, in lexicographic order
    origin: Any  # (1 + T k,) which prefix of the fork before each one extends
    label: Any  # (1 + T k,) with which label
    labels: Any  # (T, L) of each token, by the label of the last fork up to it


class Choices(NamedTuple):
    """What may follow the prefixes, by their label at the last fork."""

    now: Any  # (L,) label that they have by now; -1 if there are none
    least: Any  # (L,) least loss of any
    gained: Any  # (L,) score since the fork
    losses: Any  # (L, L) of the next label
    labels: Any  # (L, L) the next labels within the bound, the lowest first
    count: Any  # (L,) how many there are
    free: Any  # (L,) the lowest label of loss 0


class Candidates(NamedTuple):
    """Prefixes one token longer, in lexicographic order."""

    losses: Any  # (k L,)
    copies: Any  # (k L,) to be reordered
    origin: Any  # (k L,)
    label: Any  # (k L,)
    sums: Any  # (k,) their scores, of those that are kept


def kbest(unary: Tensor, edge: Tensor, lengths: Tensor, k: int) -> tuple[Tensor, Tensor, Tensor]:
    """The contract is that of `structperc.ops.kbest`."""
    B, T, L = unary.shape
    labels, scores = torch.empty(B, k, T, dtype=torch.int64), torch.empty(B, k, dtype=unary.dtype)
    arrays = (x.detach().contiguous().numpy() for x in (unary, edge, lengths))
    over_sequences(_search, B * T * (L * L + k), *arrays, k, labels.numpy(), scores.numpy())
    return labels, scores, scores > -torch.inf


@kernel
def _search(first, step, unary, edge, lengths, k, labels, scores):  # type: ignore[no-untyped-def]
    B, T, L = unary.shape
    onward, table, row = np.empty((T, L), unary.dtype), np.empty((L, L), unary.dtype), np.empty(L, np.int64)
    places, losses, totals = np.empty(T + 1, np.int64), np.empty(k, unary.dtype), np.empty(k)
    forks = Forks(
        places, places.copy(), np.zeros(1 + T * k, np.int32), np.zeros(1 + T * k, np.int16), np.empty((T, L), np.int16)
    )
    choices = Choices(
        row, np.empty(L, unary.dtype), np.empty(L), table, np.empty((L, L), np.int16), row.copy(), row.copy()
    )
    found = np.empty(k * L, unary.dtype)
    candidates = Candidates(found, found.copy(), np.empty(k * L, np.int32), np.empty(k * L, np.int16), totals.copy())
    for b in range(first, B, step):
        length, edges = lengths[b], edge[0 if edge.shape[0] == 1 else b]
        onward_scores(unary[b], edges, length, onward)
        bound, n, last = loss_bound(edges, length, onward, k), 0, 0
        if bound >= 0:
            n, last = _list(unary[b], edges, length, onward, bound, forks, choices, candidates, losses, totals)
        _write(n, last, length, forks, totals, labels[b], scores[b])


@kernel
def _list(unary, edge, length, onward, bound, forks, choices, candidates, losses, totals):  # type: ignore[no-untyped-def]
    """Fill the forks and the score of each labelling -> how many there are, and the last fork."""
    forks.token[0] = forks.start[0] = losses[0] = totals[0] = 0
    choices.now[:], choices.least[0], choices.gained[:] = -1, 0, 0
    choices.now[0] = 0
    n, f = 1, 0
    for t in range(length):
        if not _choose(t, edge, onward, bound, choices):
            _go_on(t, unary, edge, choices, forks.labels)
            continue
        m = _extend(n, forks.label[forks.start[f] :], losses, bound, choices, candidates)
        forks.token[f + 1], forks.start[f + 1] = t, forks.start[f] + n
        n, bound = _keep(m, t, bound, unary, edge, forks, f, choices, candidates, losses, totals)
        f += 1
        _start_anew(n, forks.label[forks.start[f] :], losses, choices, forks.labels[t])
    for p in range(n):
        totals[p] += choices.gained[forks.label[forks.start[f] + p]]
    return n, f


@kernel
def _choose(t, edge, onward, bound, choices):  # type: ignore[no-untyped-def]
    """Fill in what may follow at token t; return whether any prefix has a choice."""
    fork = False
    for q in range(onward.shape[1]):
        if choices.now[q] < 0:
            continue
        losses = choices.losses[q]
        choices.free[q] = losses_after(choices.now[q], t, edge, onward, losses)
        count = 0
        for j in range(onward.shape[1]):
            choices.labels[q, count] = j
            count += choices.least[q] + losses[j] <= bound
        choices.count[q] = count
        fork |= count > 1
    return fork


@kernel
def _go_on(t, unary, edge, choices, labels):  # type: ignore[no-untyped-def]
    """All prefixes take the free label at token t."""
    for q in range(unary.shape[1]):
        if choices.now[q] >= 0:
            j = choices.free[q]
            choices.gained[q] += _gain(t, choices.now[q], j, unary, edge)
            choices.now[q] = labels[t, q] = j


@kernel
def _gain(t, i, j, unary, edge):  # type: ignore[no-untyped-def]
    return np.float64(unary[t, j]) + (np.float64(edge[0 if edge.shape[0] == 1 else t, i, j]) if t else 0.0)


@kernel
def _extend(n, label, losses, bound, choices, candidates):  # type: ignore[no-untyped-def]
    """Extend n prefixes by all labels within the bound; return how many candidates there are."""
    m = 0
    for p in range(n):
        q = label[p]
        for c in range(choices.count[q]):
            j = choices.labels[q, c]
            loss = losses[p] + choices.losses[q, j]
            candidates.losses[m], candidates.origin[m], candidates.label[m] = loss, p, j
            m += loss <= bound
    return m


@kernel
def _keep(m, t, bound, unary, edge, forks, f, choices, candidates, losses, totals):  # type: ignore[no-untyped-def]
    """List the k smallest of m candidates at the next fork, the first among equals -> how many, and the bound now."""
    k = len(losses)
    equal = m  # how many that lose as much as the bound there is room for
    if m > k:
        candidates.copies[:m] = candidates.losses[:m]
        bound, equal = smallest(candidates.copies, m, k), k
        for c in range(m):
            equal -= candidates.losses[c] < bound
    before, start = forks.label[forks.start[f] :], forks.start[f + 1]
    sums = candidates.sums
    n = 0
    for c in range(m):
        loss = candidates.losses[c]
        if loss < bound or (loss == bound and equal > 0):
            equal -= loss == bound
            p, j = candidates.origin[c], candidates.label[c]
            forks.origin[start + n], forks.label[start + n], losses[n] = p, j, loss
            sums[n] = totals[p] + choices.gained[before[p]] + _gain(t, choices.now[before[p]], j, unary, edge)
            n += 1
    totals[:n] = sums[:n]
    return n, bound


@kernel
def _start_anew(n, label, losses, choices, labels):  # type: ignore[no-untyped-def]
    """From a fork on, prefixes are told by the label that they have there."""
    choices.now[:], choices.least[:], choices.gained[:] = -1, np.inf, 0
    for p in range(n):
        q = label[p]
        choices.now[q] = labels[q] = q
        choices.least[q] = min(choices.least[q], losses[p])


@kernel
def _write(n, last, length, forks, totals, labels, scores):  # type: ignore[no-untyped-def]
    """Write n labellings, the best first; labels and scores of what is missing."""
    labels[n:], scores[n:] = 0, -np.inf
    for p in range(n):
        scores[p] = -totals[p]
    order = np.argsort(scores[:n], kind="mergesort")
    rank = np.empty(n, np.int64)
    for r in range(n):
        rank[order[r]] = r
    for p in range(n):
        scores[rank[p]] = totals[p]
        row, slot, end = labels[rank[p]], p, length
        row[length:] = 0
        for f in range(last, -1, -1):
            place = forks.start[f] + slot
            q = forks.label[place]
            for t in range(forks.token[f], end):
                row[t] = forks.labels[t, q]
            end, slot = forks.token[f], forks.origin[place]
