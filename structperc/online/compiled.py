"""Compiled learning, sequence by sequence: score, find the rival, collect the changes, move the weights."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numba.extending import overload

from structperc.kernels.best_path import edge_blocks, suffix_scores, trace_best_path
from structperc.kernels.jit import kernel, subkernel, subkernel_no_alloc
from structperc.kernels.scores import score
from structperc.kernels.simd import padded_array
from structperc.kernels.slices import longest_sequence
from structperc.optim import where

FREE = -1  # slot of a hash table


@overload(where)
def _where(condition, a, b):
    return lambda condition, a, b: a if condition else b


# -- rivals ---------------------------------------------------------------------------------------------------


@kernel
def find_rival(unary, edges, length, gold, exclude_gold, workspace, labels):
    """Fill labels (T,) with the best path, or with the best wrong path if `exclude_gold`; return True if it exists.

    Of equal paths the first in lexicographic order is taken. gold is (T,); the scores are unary (T, L) and edges
    (T or 1, L, L); the workspace has two arrays of `padded_array`, and one (T,).
    """
    suffix, best, leaving = workspace
    suffix_scores(unary, edges, edge_blocks(edges, unary), length, suffix, best)
    if not exclude_gold:
        return trace_best_path(unary, edges, length, suffix, best, labels) > -np.inf
    _scores_leaving_gold(unary, edges, length, gold, suffix, leaving)
    return _follow_other(edges, length, gold, suffix, leaving, labels)


@subkernel_no_alloc
def _scores_leaving_gold(unary, edges, length, gold, suffix, leaving):
    """Fill leaving (T,) with the best score of suffixes that begin with the gold label and differ from gold later.

    Scores are shifted as in `suffix_scores`.
    """
    L = unary.shape[1]
    leaving[length - 1] = -np.inf
    for t in range(length - 2, -1, -1):
        step, after = edges[0 if len(edges) == 1 else t + 1, gold[t]], suffix[t + 1]
        best = step[gold[t + 1]] + leaving[t + 1]
        for j in range(L):
            if j != gold[t + 1]:
                best = max(best, step[j] + after[j])
        level = unary[t, 0]
        for j in range(1, L):
            level = max(level, unary[t, j])
        if level == -np.inf:
            level = unary.dtype.type(0)
        leaving[t] = (unary[t, gold[t]] - level) + best


@subkernel_no_alloc
def _follow_other(edges, length, gold, suffix, leaving, labels):
    """Fill labels (T,) with the best wrong path, the lowest label among equals; return True if it exists."""
    with_gold, label = True, 0
    for t in range(length):
        step = edges[0 if len(edges) == 1 else t, label]
        best, highest = -1, suffix.dtype.type(-np.inf)
        for j in range(edges.shape[1]):
            ahead = leaving[t] if with_gold and j == gold[t] else suffix[t, j]
            if t:
                ahead += step[j]
            if ahead > highest:
                best, highest = j, ahead
        if best < 0:
            return False
        with_gold = with_gold and best == gold[t]
        label = labels[t] = best
    return not with_gold


@subkernel_no_alloc
def path_score(unary, edges, labels, length):
    """Return the score of labels (T,) in float64."""
    total = 0.0
    for t in range(length):
        total += unary[t, labels[t]]
        if t:
            total += edges[0 if len(edges) == 1 else t, labels[t - 1], labels[t]]
    return total


# -- changes of weights ---------------------------------------------------------------------------------------


@subkernel
def empty_workspace():
    """Return an empty hash table with open addressing: slots (2C,) for up to C keys (C,) with their counts (C,)."""
    return np.empty(0, np.int32), np.empty(0, np.int64), np.empty(0)


@subkernel
def grown_workspace(needed, workspace):
    """Return a workspace for as many keys, and the number of its slots that are used, which are free now."""
    size = 64
    while size < 2 * needed:
        size *= 2
    if size > len(workspace[0]):
        workspace = np.empty(size, np.int32), np.empty(size // 2, np.int64), np.empty(size // 2)
    workspace[0][:size] = FREE
    return workspace, size


@kernel
def collect_changes(start, stop, gold, rival, alone, features, sizes, workspace):
    """Return Phi(gold) - Phi(rival) as distinct keys (n,) int64 and counts (n,) float64, and their workspace.

    gold and rival are (T,), labels of the tokens start, ..., stop - 1; alone is (T,) bool, True at tokens whose pair
    with the token before has no features. A key is the index of a weight in the node table, the edge table, the
    transitions and the table of segments, one after the other; sizes are those of the first three, and L. Keys are in
    the order of their first use, so that those of a row are neighbours. The workspace of `empty_workspace` grows if it
    is too small.
    """
    workspace, size = grown_workspace(count_entries(start, stop, gold, rival, features), workspace)
    slots, keys, counts = workspace[0][:size], workspace[1], workspace[2]
    n = add_changes(start, stop, gold, rival, alone, features, sizes, slots, keys, counts)
    return keys[:n], counts[:n], workspace


@subkernel_no_alloc
def add_changes(start, stop, gold, rival, alone, features, sizes, slots, keys, counts):
    """Add the changes of weights of labels to counts that are empty; return the number of keys."""
    L = sizes[3]
    n = np.int64(0)
    for t in range(stop - start):
        token, g, r = start + t, gold[t], rival[t]
        if g != r:
            for place in range(features.node_ends[token], features.node_ends[token + 1]):
                row, value = np.int64(features.node_ids[place]) * L, _value(features.node_weights, place)
                n = add_to_count(row + g, value, slots, keys, counts, n)
                n = add_to_count(row + r, -value, slots, keys, counts, n)
        if alone[t] or (g == r and gold[t - 1] == rival[t - 1]):
            continue
        g, r = gold[t - 1] * L + g, rival[t - 1] * L + r
        if sizes[1]:
            for place in range(features.edge_ends[token], features.edge_ends[token + 1]):
                row, value = (
                    sizes[0] + np.int64(features.edge_ids[place]) * L * L,
                    _value(features.edge_weights, place),
                )
                n = add_to_count(row + g, value, slots, keys, counts, n)
                n = add_to_count(row + r, -value, slots, keys, counts, n)
        if sizes[2]:
            n = add_to_count(sizes[0] + sizes[1] + g, 1.0, slots, keys, counts, n)
            n = add_to_count(sizes[0] + sizes[1] + r, -1.0, slots, keys, counts, n)
    return n


@subkernel_no_alloc
def _value(weights, place):
    """Return the value of a feature occurrence, given its index."""
    return np.float64(weights[place]) if len(weights) else 1.0


@subkernel_no_alloc
def count_entries(start, stop, gold, rival, features):
    """Return how many changes `add_changes` adds at most: two for each feature of tokens and pairs that differ."""
    total = 0
    for t in range(stop - start):
        token = start + t
        if gold[t] != rival[t]:
            total += features.node_ends[token + 1] - features.node_ends[token]
        if t and (gold[t] != rival[t] or gold[t - 1] != rival[t - 1]):
            total += features.edge_ends[token + 1] - features.edge_ends[token] + 1
    return 2 * total


@subkernel_no_alloc
def add_to_count(key, change, slots, keys, counts, n):
    """Add a change to the count of a key; append the key to n others if it is new. Return the number of keys."""
    mask = len(slots) - 1
    slot = ((key * 0x9E3779B97F4A7C1) >> 20) & mask
    while slots[slot] != FREE and keys[slots[slot]] != key:
        slot = (slot + 1) & mask
    if slots[slot] == FREE:
        slots[slot], keys[n], counts[n] = n, key, change
        return n + 1
    counts[slots[slot]] += change
    return n


@subkernel_no_alloc
def squared_norm(counts):
    """Return the sum of the squares of all changes."""
    total = 0.0
    for i in range(len(counts)):
        total += counts[i] * counts[i]
    return total


@subkernel_no_alloc
def apply_changes(keys, counts, scale, step, sizes, weights, sums, moved):
    """Add scale times the changes to the weights, and scale * step times the changes to the sums of their averages.

    Sums and marks of moved weights are updated if their tables have rows.
    """
    _add(keys, counts, scale, sizes, weights)
    if len(sums.node):
        _add(keys, counts, scale * step, sizes, sums)
    if len(moved.node):
        _mark(keys, counts, sizes, moved)


@subkernel_no_alloc
def _add(keys, counts, scale, sizes, tables):
    """Add scale times the changes to the tables."""
    node, edge, transition = tables.node.reshape(-1), tables.edge.reshape(-1), tables.transition.reshape(-1)
    segment, first = tables.segment.reshape(-1), sizes[0] + sizes[1] + sizes[2]
    for i in range(len(keys)):
        key = keys[i]
        if counts[i] == 0.0:
            continue
        if key < sizes[0]:
            node[key] += scale * counts[i]
        elif key < sizes[0] + sizes[1]:
            edge[key - sizes[0]] += scale * counts[i]
        elif key < first:
            transition[key - sizes[0] - sizes[1]] += scale * counts[i]
        else:
            segment[key - first] += scale * counts[i]


@subkernel_no_alloc
def _mark(keys, counts, sizes, tables):
    """Set the tables to 1 wherever there is a change."""
    node, edge, transition = tables.node.reshape(-1), tables.edge.reshape(-1), tables.transition.reshape(-1)
    segment, first = tables.segment.reshape(-1), sizes[0] + sizes[1] + sizes[2]
    for i in range(len(keys)):
        key = keys[i]
        if counts[i] == 0.0:
            continue
        if key < sizes[0]:
            node[key] = 1
        elif key < sizes[0] + sizes[1]:
            edge[key - sizes[0]] = 1
        elif key < first:
            transition[key - sizes[0] - sizes[1]] = 1
        else:
            segment[key - first] = 1


# -- passes over a batch --------------------------------------------------------------------------------------


@cache
def learning_pass(should_update: Callable[..., bool], size: Callable[..., float]) -> Any:
    """Return the compiled loop over the units of a batch, for an update rule and a step-size rule.

    Its arguments are units, features, weights, sums, moved, scheme, rule, costs, numbers, step and losses. A weight of
    a unit is a factor of its loss and of its changes. `step` is the number of previous steps; sums and moved have no
    rows if they are not stored. It fills the losses (U,) and returns the numbers of updates and of wrong labels of the
    best paths. It stops after a loss that is not finite.
    """
    should_update, size = subkernel_no_alloc(should_update), subkernel_no_alloc(size)

    @kernel
    def learn(units, features, weights, sums, moved, scheme, rule, costs, numbers, step, losses):
        L, updates, wrong = weights.node.shape[1], 0, 0
        T = longest_sequence(units.bounds)
        each = T if len(weights.edge) else 1
        unary, edges = np.empty((T, L), weights.node.dtype), np.empty((each, L, L), weights.node.dtype)
        ahead = padded_array(T, L, unary), padded_array(T, L, unary), np.empty(T, weights.node.dtype)
        costly = len(costs.table) > 0
        searched = np.empty_like(unary) if costly else unary
        rival, best, alone = np.empty(T, np.int64), np.empty(T, np.int64), np.arange(T) == 0
        workspace = empty_workspace()
        sizes = weights.node.size, weights.edge.size, weights.transition.size, L
        for u in range(len(losses)):
            start, stop = units.bounds[u], units.bounds[u + 1]
            length, gold = stop - start, units.gold[start:stop]
            losses[u] = 0.0
            if length == 0:
                continue
            score(start, stop, units, features, weights, scheme, unary, edges)
            gap = path_score(unary, edges, gold, length)
            if costly:
                add_costs(unary, costs.table, costs.rows[start:stop], searched)
            exists = find_rival(searched, edges, length, gold, rule.exclude_gold, ahead, rival)
            gap -= path_score(searched, edges, rival, length)
            if not exists or count_differences(gold, rival) == 0:
                continue
            wrong += _count_errors(unary, edges, gold, rival, gap, rule, costly, ahead, best)
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


@cache
def local_update(size: Callable[..., float], collect: Any) -> Any:
    """Return the compiled update of the local weights of one sequence with a given rival.

    `collect` is `collect_changes`, or that of `compiled_segments`. The arguments are units (one sequence), features
    (those of `collect`), weights, sums, moved, rival (T,), alone (T,), the loss, the squared norm of the change of
    other weights, numbers and step. The result is the step size. A weight of the sequence is a factor of the loss and
    of the changes.
    """
    size = subkernel_no_alloc(size)

    @kernel
    def update(units, features, weights, sums, moved, rival, alone, loss, norm, numbers, step):
        sizes = weights.node.size, weights.edge.size, weights.transition.size, weights.node.shape[1]
        gold = units.gold
        keys, counts, _ = collect(0, len(gold), gold, rival, alone, features, sizes, empty_workspace())
        factor = units.weights[0] if len(units.weights) else 1.0
        scale = factor * size(factor * loss, factor * factor * (norm + squared_norm(counts)), *numbers)
        apply_changes(keys, counts, scale, step, sizes, weights, sums, moved)
        return scale

    return update


@subkernel_no_alloc
def add_costs(unary, table, rows, total):
    """Fill total (T, L) with unary (T, L) plus the rows (T,) of a table of costs (m, L)."""
    for t in range(len(rows)):
        for j in range(unary.shape[1]):
            total[t, j] = unary[t, j] + table[rows[t], j]


@kernel
def _count_errors(unary, edges, gold, rival, gap, rule, costly, workspace, best):
    """Return the number of wrong labels of the best path without cost, given gold (T,), rival (T,) and gap.

    With costs that path is computed, in best (T,), unless the rival leads gold by less than the least cost: a path that
    leads gold in score leads it by at least that cost more in score plus cost.
    """
    if costly:
        if -gap < rule.least_cost:
            return 0
        exclude_gold = rule.least_cost < 0  # False, but no literal, for which `find_rival` would be compiled once more
        find_rival(unary, edges, len(gold), gold, exclude_gold, workspace, best)
        return count_differences(gold, best)
    if rule.exclude_gold and not _precedes(gap, gold, rival):
        return 0
    return count_differences(gold, rival)


@subkernel_no_alloc
def count_differences(gold, rival):
    """Return the number of tokens at which gold (T,) and the rival have different labels."""
    total = 0
    for t in range(len(gold)):
        total += gold[t] != rival[t]
    return total


@subkernel_no_alloc
def _precedes(gap, gold, rival):
    """Return True if the rival precedes gold (T,) in a k-best list: by its score, or for equal scores by its labels."""
    if gap != 0.0:
        return gap < 0.0
    for t in range(len(gold)):
        if rival[t] != gold[t]:
            return rival[t] < gold[t]
    return False
