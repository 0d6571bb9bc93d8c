"""Compiled learning, sequence by sequence, of scores of labels and of segments."""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy import ndarray

from structperc.kernels.best_segmentation import segment_end
from structperc.kernels.jit import kernel, subkernel, subkernel_no_alloc
from structperc.kernels.scores import in_two_sums, score
from structperc.kernels.slices import longest_sequence
from structperc.online.compiled import (
    add_changes,
    add_costs,
    add_to_count,
    apply_changes,
    count_differences,
    count_entries,
    empty_workspace,
    grown_workspace,
    path_score,
    squared_norm,
)


class Suffixes(NamedTuple):
    """Best scores of the tokens from t on, by kind of segment: C types of one token, O, C types of longer ones."""

    begin: ndarray  # (K,) int64, first label of a segment of each kind
    end: ndarray  # (K,) int64, last label
    begun: ndarray  # (T, K), of all that begins with a segment at t
    size: ndarray  # (T, K) int64, number of tokens of this segment
    after: ndarray  # (T + 1, K), of all that follows a segment which ends before t
    following: ndarray  # (T + 1, K) int64, kind of the next segment


@cache
def learning_pass(should_update: Callable[..., bool], size: Callable[..., float]) -> Any:
    """Return the compiled loop over the units of a batch, as that of `compiled`.

    Its features are those of the tokens, and `SegmentArrays`.
    """
    should_update, size = subkernel_no_alloc(should_update), subkernel_no_alloc(size)

    @kernel
    def learn(units, features, weights, sums, moved, scheme, rule, costs, numbers, step, losses):
        tokens, segments = features
        L, C, D, updates, wrong = weights.node.shape[1], len(segments.table) - 1, len(segments.ends), 0, 0
        T = longest_sequence(units.bounds)
        unary, edges = np.empty((T, L), weights.node.dtype), np.empty((1, L, L), weights.node.dtype)
        scores, searched = np.empty((T, D, C), weights.node.dtype), np.empty_like(unary)
        rival, best, alone = np.empty(T, np.int64), np.empty(T, np.int64), np.arange(T) == 0
        suffixes, workspace = _suffixes(T, segments.table), empty_workspace()
        sizes = weights.node.size, weights.edge.size, weights.transition.size, L
        for u in range(len(losses)):
            start, stop = units.bounds[u], units.bounds[u + 1]
            length, gold = stop - start, units.gold[start:stop]
            losses[u] = 0.0
            if length == 0:
                continue
            score(start, stop, units, tokens, weights, scheme, unary, edges)
            _score_segments(start, length, segments, weights.segment, scores)
            gap = path_score(unary, edges, gold, length) + _sum_of_segments(gold, segments, scores)
            searched[:length] = unary[:length]
            if len(costs.table):
                add_costs(unary, costs.table, costs.rows[start:stop], searched)
            _search(searched, edges[0], scores, length, segments.table, suffixes)
            exists = _best_path(length, segments.table, suffixes, best)
            if rule.exclude_gold:
                exists = _best_wrong_path(searched, edges[0], scores, gold, segments, suffixes, rival)
            else:
                rival[:length] = best[:length]
            if not exists or count_differences(gold, rival) == 0:
                continue
            gap -= path_score(searched, edges, rival, length) + _sum_of_segments(rival[:length], segments, scores)
            if not len(costs.table):
                wrong += count_differences(gold, best)
            elif -gap >= rule.least_cost:
                _search(unary, edges[0], scores, length, segments.table, suffixes)
                _best_path(length, segments.table, suffixes, best)
                wrong += count_differences(gold, best)
            if not should_update(gap, rule.threshold):
                continue
            factor = units.weights[start] if len(units.weights) else 1.0
            losses[u] = -gap * factor
            if not np.isfinite(gap):
                return updates, wrong
            updates += 1
            keys, counts, workspace = collect_changes(start, stop, gold, rival, alone, features, sizes, workspace)
            scale = factor * size(losses[u], factor * factor * squared_norm(counts), *numbers)
            apply_changes(keys, counts, scale, step + u, sizes, weights, sums, moved)
        return updates, wrong

    return learn


@subkernel_no_alloc
def _score_segments(start, length, segments, weights, scores):
    """Fill scores (T, D, C) with the sums of weights of all segments of the tokens from start on."""
    D, C = scores.shape[1], scores.shape[2]
    rows = scores.reshape(-1, C)
    for t in range(length):
        for d in range(min(D, length - t)):
            if len(segments.candidates) and not segments.candidates[start + t, d]:
                scores[t, d] = -np.inf
                continue
            first, last = segments.ends[d, start + t], segments.ends[d, start + t + 1]
            in_two_sums(weights, segments.ids, first, last, rows, t * D + d)


@subkernel_no_alloc
def _sum_of_segments(labels, segments, scores):
    """Return the sum of the scores (T, D, C) of the segments of labels (T,), in float64; -inf if one is too long."""
    total, t = 0.0, 0
    while t < len(labels):
        stop, kind = segment_end(labels, t, segments), segments.kinds[labels[t]]
        if kind < scores.shape[2]:
            if stop - t > scores.shape[1]:
                return -np.inf
            total += scores[t, stop - t - 1, kind]
        t = stop
    return total


@subkernel
def _suffixes(T, table):
    """Return `Suffixes` for sequences of up to T tokens; the scores are not filled."""
    C = len(table) - 1
    K = 2 * C + 1
    begin, end = np.empty(K, np.int64), np.empty(K, np.int64)
    begin[: C + 1] = end[: C + 1] = table[:, 0]
    begin[C + 1 :], end[C + 1 :] = table[:C, 1], table[:C, 3]
    begun, size = np.empty((T, K)), np.empty((T, K), np.int64)
    return Suffixes(begin, end, begun, size, np.empty((T + 1, K)), np.empty((T + 1, K), np.int64))


@subkernel_no_alloc
def _search(unary, edge, scores, length, table, suffixes):
    """Fill the scores of suffixes, in the order of `semi_markov_viterbi`: of equal ones the first kind and length."""
    K = len(suffixes.begin)
    suffixes.after[length] = 0.0
    for t in range(length - 1, -1, -1):
        for k in range(K):
            suffixes.begun[t, k], suffixes.size[t, k] = _begin(t, k, unary, edge, scores, length, table, suffixes.after)
        for i in range(K):
            highest, chosen = -np.inf, 0
            for k in range(K):
                total = edge[suffixes.end[i], suffixes.begin[k]] + suffixes.begun[t, k]
                if total > highest:
                    highest, chosen = total, k
            suffixes.after[t, i], suffixes.following[t, i] = highest, chosen


@subkernel_no_alloc
def _begin(t, kind, unary, edge, scores, length, table, after):
    """Return the best score of the tokens from t on that begin with a segment of a kind, and its number of tokens."""
    D, C = scores.shape[1], scores.shape[2]
    if kind == C:
        return unary[t, table[C, 0]] + after[t + 1, C], 1
    if kind < C:
        return unary[t, table[kind, 0]] + scores[t, 0, kind] + after[t + 1, kind], 1
    c = kind - C - 1
    first, middle, last = table[c, 1], table[c, 2], table[c, 3]
    run, before, highest, size = np.float64(unary[t, first]), first, -np.inf, 1
    for d in range(1, min(D, length - t)):
        total = run + edge[before, last] + unary[t + d, last] + scores[t, d, c] + after[t + d + 1, kind]
        if total > highest:
            highest, size = total, d + 1
        run, before = run + edge[before, middle] + unary[t + d, middle], middle
    return highest, size


@subkernel_no_alloc
def _best_path(length, table, suffixes, labels):
    """Fill labels (T,) with the best path; return True if there is one."""
    kind = suffixes.begun[0].argmax()
    if suffixes.begun[0, kind] == -np.inf:
        return False
    _follow(0, kind, suffixes.size[0, kind], length, table, suffixes, labels)
    return True


@subkernel_no_alloc
def _follow(t, kind, size, length, table, suffixes, labels):
    """Fill labels (T,) from t on: a segment, and the best of all that follows it."""
    C = len(table) - 1
    while True:
        c = kind if kind <= C else kind - C - 1
        labels[t : t + size] = table[c, 2]
        labels[t + size - 1] = table[c, 3]
        labels[t] = table[c, 1 if kind > C else 0]
        t += size
        if t >= length:
            return
        kind = suffixes.following[t, kind]
        size = suffixes.size[t, kind]


@subkernel
def _best_wrong_path(unary, edge, scores, gold, segments, suffixes, labels):
    """Fill labels (T,) with the best path other than gold (T,), the first of equal ones; return True if there is one.

    A wrong path has the segments of gold up to one in whose place it has another one.
    """
    length, C, after = len(gold), scores.shape[2], suffixes.after
    starts, kinds, n = np.empty(length + 1, np.int64), np.empty(length, np.int64), 0
    t = 0
    while t < length:
        stop, kind = segment_end(gold, t, segments), segments.kinds[gold[t]]
        starts[n], kinds[n] = t, kind + C + 1 if kind < C and stop - t > 1 else kind
        n, t = n + 1, stop
    starts[n] = length
    chosen, sizes, wrong = np.empty(n, np.int64), np.empty(n, np.int64), -np.inf
    for i in range(n - 1, -1, -1):
        t, stop, own = starts[i], starts[i + 1], kinds[i]
        free = after[stop, own]
        after[stop, own] = wrong  # so that all that begins with the segment of gold differs from gold later
        leaving = _begin(t, own, unary, edge, scores, length, segments.table, after)
        after[stop, own] = free
        wrong = -np.inf
        for k in range(len(suffixes.begin)):
            total, size = leaving if k == own else (suffixes.begun[t, k], suffixes.size[t, k])
            if i:
                total += edge[suffixes.end[kinds[i - 1]], suffixes.begin[k]]
            if total > wrong:
                wrong, chosen[i], sizes[i] = total, k, size
    if wrong == -np.inf:
        return False
    i = 0
    while chosen[i] == kinds[i] and sizes[i] == starts[i + 1] - starts[i]:
        i += 1
    labels[: starts[i]] = gold[: starts[i]]
    _follow(starts[i], chosen[i], sizes[i], length, segments.table, suffixes, labels)
    return True


@subkernel
def collect_changes(start, stop, gold, rival, alone, features, sizes, workspace):
    """Return the changes as `collect_changes` of `compiled` does, with those of the weights of segments."""
    (tokens, segments), needed = features, count_entries(start, stop, gold, rival, features[0])
    for labels in (gold, rival[: len(gold)]):
        t = 0
        while t < len(gold):
            end = segment_end(labels, t, segments)
            d, at = min(end - t, len(segments.ends)) - 1, start + t
            needed += segments.ends[d, at + 1] - segments.ends[d, at]
            t = end
    workspace, size = grown_workspace(needed, workspace)
    slots, keys, counts = workspace[0][:size], workspace[1], workspace[2]
    n, change = add_changes(start, stop, gold, rival, alone, tokens, sizes, slots, keys, counts), 1.0
    first, C = sizes[0] + sizes[1] + sizes[2], len(segments.table) - 1
    for labels in (gold, rival[: len(gold)]):
        t = 0
        while t < len(gold):
            end, kind = segment_end(labels, t, segments), segments.kinds[labels[t]]
            if kind < C:
                d, at = end - t - 1, start + t
                for place in range(segments.ends[d, at], segments.ends[d, at + 1]):
                    key = first + np.int64(segments.ids[place]) * C + kind
                    n = add_to_count(key, change, slots, keys, counts, n)
            t = end
        change = -1.0
    return keys[:n], counts[:n], workspace
