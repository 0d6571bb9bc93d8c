"""Compiled learning, sequence by sequence, of scores of labels and of segments."""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy import ndarray

from structperc.kernels.jit import kernel, subkernel, subkernel_no_alloc
from structperc.kernels.scores import in_two_sums, score
from structperc.kernels.slices import longest_sequence
from structperc.online.compiled import (
    add_costs,
    add_to_count,
    apply_changes,
    collect_changes,
    count_differences,
    empty_workspace,
    grown_workspace,
    path_score,
    squared_norm,
)


class SegmentTables(NamedTuple):
    """Weights of features of segments, sums for their averages, and marks of moved ones; without rows if not stored."""

    weights: ndarray  # (F, C)
    sums: ndarray
    moved: ndarray


@cache
def segment_learning_pass(should_update: Callable[..., bool], size: Callable[..., float]) -> Any:
    """Return the compiled loop over the units of a batch, as `learning_pass` does, for rivals that are the best paths.

    Its arguments are those of `learning_pass`, with `SegmentArrays` after the features and `SegmentTables` after the
    tables of the labels' scorer.
    """
    should_update, size = subkernel_no_alloc(should_update), subkernel_no_alloc(size)

    @kernel
    def learn(units, features, segments, weights, sums, moved, tables, scheme, rule, costs, numbers, step, losses):
        L, C, D, updates, wrong = weights.node.shape[1], len(segments.table) - 1, len(segments.ends), 0, 0
        T = longest_sequence(units.bounds)
        unary, edges = np.empty((T, L), weights.node.dtype), np.empty((1, L, L), weights.node.dtype)
        scores, searched = np.empty((T, D, C), weights.node.dtype), np.empty_like(unary)
        rival, best = np.empty(T, np.int64), np.empty(T, np.int64)
        workspace, more_workspace = empty_workspace(), empty_workspace()
        sizes = weights.node.size, weights.edge.size, weights.transition.size, L
        for u in range(len(losses)):
            start, stop = units.bounds[u], units.bounds[u + 1]
            length, gold = stop - start, units.gold[start:stop]
            losses[u] = 0.0
            if length == 0:
                continue
            score(start, stop, units, features, weights, scheme, unary, edges)
            _score_segments(start, length, segments, tables.weights, scores)
            gap = path_score(unary, edges, gold, length) + _sum_of_segments(gold, segments, scores)
            searched[:length] = unary[:length]
            if len(costs.table):
                add_costs(unary, costs.table, costs.rows[start:stop], searched)
            exists = _search(searched, edges[0], scores, length, segments.table, rival)
            gap -= path_score(searched, edges, rival, length) + _sum_of_segments(rival[:length], segments, scores)
            if not exists or count_differences(gold, rival) == 0:
                continue
            if not len(costs.table):
                wrong += count_differences(gold, rival)
            elif -gap >= rule.least_cost:
                _search(unary, edges[0], scores, length, segments.table, best)
                wrong += count_differences(gold, best)
            if not should_update(gap, rule.threshold):
                continue
            factor = units.weights[start] if len(units.weights) else 1.0
            losses[u] = -gap * factor
            if not np.isfinite(gap):
                return updates, wrong
            updates += 1
            keys, counts, workspace = collect_changes(start, stop, gold, rival, features, sizes, workspace)
            more_keys, more_counts, more_workspace = _collect(start, gold, rival, segments, more_workspace)
            norm = squared_norm(counts) + squared_norm(more_counts)
            scale = factor * size(losses[u], factor * factor * norm, *numbers)
            apply_changes(keys, counts, scale, step + u, sizes, weights, sums, moved)
            _move(more_keys, more_counts, scale, step + u, tables)
        return updates, wrong

    return learn


@subkernel_no_alloc
def _score_segments(start, length, segments, weights, scores):
    """Fill scores (T, D, C) with the sums of weights of all segments of the tokens from start on."""
    D, C = scores.shape[1], scores.shape[2]
    rows = scores.reshape(-1, C)
    for t in range(length):
        for d in range(min(D, length - t)):
            first, last = segments.ends[d, start + t], segments.ends[d, start + t + 1]
            in_two_sums(weights, segments.ids, first, last, rows, t * D + d)


@subkernel_no_alloc
def _next_segment(labels, t, segments):
    """Return the end of the segment of labels (T,) that begins at t."""
    stop = t + 1
    while stop < len(labels) and not segments.begins[labels[stop]]:
        stop += 1
    return stop


@subkernel_no_alloc
def _sum_of_segments(labels, segments, scores):
    """Return the sum of the scores (T, D, C) of the segments of labels (T,), in float64; -inf if one is too long."""
    total, t = 0.0, 0
    while t < len(labels):
        stop, kind = _next_segment(labels, t, segments), segments.kinds[labels[t]]
        if kind < scores.shape[2]:
            if stop - t > scores.shape[1]:
                return -np.inf
            total += scores[t, stop - t - 1, kind]
        t = stop
    return total


@subkernel
def _search(unary, edge, scores, length, table, labels):
    """Fill labels (T,) with the best path, in the order of `semi_markov_viterbi`; return True if there is one."""
    D, C = scores.shape[1], scores.shape[2]
    K = 2 * C + 1
    begin, end = np.empty(K, np.int64), np.empty(K, np.int64)
    for c in range(C):
        begin[c] = end[c] = table[c, 0]
        begin[C + 1 + c], end[C + 1 + c] = table[c, 1], table[c, 3]
    begin[C] = end[C] = table[C, 0]
    after, begun = np.zeros((length + 1, K)), np.full((length, K), -np.inf)
    size, following = np.ones((length, K), np.int64), np.zeros((length + 1, K), np.int64)
    for t in range(length - 1, -1, -1):
        begun[t, C] = unary[t, table[C, 0]] + after[t + 1, C]
        for c in range(C):
            first, middle, last = table[c, 1], table[c, 2], table[c, 3]
            begun[t, c] = unary[t, table[c, 0]] + scores[t, 0, c] + after[t + 1, c]
            run, before, highest = np.float64(unary[t, first]), first, -np.inf
            for d in range(1, min(D, length - t)):
                total = run + edge[before, last] + unary[t + d, last] + scores[t, d, c] + after[t + d + 1, C + 1 + c]
                if total > highest:
                    highest, size[t, C + 1 + c] = total, d + 1
                run, before = run + edge[before, middle] + unary[t + d, middle], middle
            begun[t, C + 1 + c] = highest
        for i in range(K):
            highest, chosen = -np.inf, 0
            for c in range(K):
                total = edge[end[i], begin[c]] + begun[t, c]
                if total > highest:
                    highest, chosen = total, c
            after[t, i], following[t, i] = highest, chosen
    kind, t = begun[0].argmax(), 0
    if begun[0, kind] == -np.inf:
        return False
    while t < length:
        stop, c = t + size[t, kind], kind if kind <= C else kind - C - 1
        for i in range(t, stop):
            labels[i] = table[c, 2]
        labels[stop - 1] = table[c, 3]
        labels[t] = table[c, 1 if kind > C else 0]
        t = stop
        if t < length:
            kind = following[t, kind]
    return True


@subkernel
def _collect(start, gold, rival, segments, workspace):
    """Return the changes of weights of segments as distinct keys (n,) int64 and counts (n,), and their workspace."""
    C, needed = len(segments.table) - 1, 0
    for labels in (gold, rival[: len(gold)]):
        t = 0
        while t < len(gold):
            stop = _next_segment(labels, t, segments)
            d, at = min(stop - t, len(segments.ends)) - 1, start + t
            needed += segments.ends[d, at + 1] - segments.ends[d, at]
            t = stop
    workspace, size = grown_workspace(needed, workspace)
    slots, keys, counts = workspace[0][:size], workspace[1], workspace[2]
    n, change = np.int64(0), 1.0
    for labels in (gold, rival[: len(gold)]):
        t = 0
        while t < len(gold):
            stop, kind = _next_segment(labels, t, segments), segments.kinds[labels[t]]
            if kind < C:
                d, at = stop - t - 1, start + t
                for place in range(segments.ends[d, at], segments.ends[d, at + 1]):
                    n = add_to_count(np.int64(segments.ids[place]) * C + kind, change, slots, keys, counts, n)
            t = stop
        change = -1.0
    return keys[:n], counts[:n], workspace


@subkernel_no_alloc
def _move(keys, counts, scale, step, tables):
    """Add scale times the changes to the weights, and scale * step times the changes to the sums of their averages."""
    weights, sums, moved = tables.weights.reshape(-1), tables.sums.reshape(-1), tables.moved.reshape(-1)
    for i in range(len(keys)):
        if counts[i] != 0.0:
            weights[keys[i]] += scale * counts[i]
            if len(sums):
                sums[keys[i]] += scale * step * counts[i]
            if len(moved):
                moved[keys[i]] = 1
