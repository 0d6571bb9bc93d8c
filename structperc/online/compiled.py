"""Compiled learning, sequence by sequence: score, find the rival, collect the changes, move the weights."""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numba.extending import overload
from numpy import ndarray

from structperc.kernels.best_path import EdgeBlocks, edge_blocks, fill_edge_blocks, suffix_scores, trace_best_path
from structperc.kernels.jit import kernel, subkernel, subkernel_no_alloc
from structperc.kernels.labelled_segments import score_segments, segment_end
from structperc.kernels.scores import score
from structperc.kernels.simd import padded_array
from structperc.kernels.slices import longest_sequence
from structperc.optim import where

FREE = -1  # slot of a hash table


@overload(where)
def _where(condition, a, b):
    return lambda condition, a, b: a if condition else b


# -- rivals ---------------------------------------------------------------------------------------------------


class PathKernels(NamedTuple):
    """Searches over one kind of scores; their memory has unary (T, L), searched (T, L) = unary + costs, and edges."""

    memory: Any  # (T, segments, weights) -> memory for up to T tokens
    best: Any  # (unary, gold, segments, memory, labels) -> True if there is a path; its labels, the first of equal ones
    best_wrong: Any  # the same for the best path other than gold (T,)


class ChainMemory(NamedTuple):
    """Scores of a sequence of up to T tokens; the last four are filled by its search."""

    unary: ndarray  # (T, L)
    searched: ndarray  # (T, L)
    edges: ndarray  # (T or 1, L, L)
    blocks: EdgeBlocks
    suffix: ndarray  # (T, W)
    best: ndarray  # (T, W)
    leaving: ndarray  # (T,)


@subkernel
def chain_memory(T, segments, weights):
    """Allocate the memory."""
    L, dtype = weights.node.shape[1], weights.node.dtype
    unary, edges = np.empty((2, T, L), dtype), np.empty((T if len(weights.edge) else 1, L, L), dtype)
    ahead = padded_array(T, L, dtype), padded_array(T, L, dtype)
    blocks, leaving = edge_blocks(edges, unary.dtype), np.empty(T, dtype)
    return ChainMemory(unary[0], unary[1], edges, blocks, ahead[0], ahead[1], leaving)


@subkernel_no_alloc
def path_score(unary, labels, length, segments, memory):
    """Return the score of labels (T,) in float64; -inf if a segment is too long."""
    total, edges = 0.0, memory.edges
    for t in range(length):
        total += unary[t, labels[t]]
        if t:
            total += edges[0 if len(edges) == 1 else t, labels[t - 1], labels[t]]
    if segments is not None:
        t, D = 0, len(segments.ends)
        while t < length:
            stop, kind = segment_end(labels[:length], t, segments), segments.kinds[labels[t]]
            if kind < memory.rows.shape[1]:
                if stop - t > D:
                    return -np.inf
                total += memory.rows[t * D + stop - t - 1, kind]
            t = stop
    return total


@subkernel_no_alloc
def best_path(unary, gold, segments, memory, labels):
    """Fill labels (T,) with the best path, the first of equal ones in lexicographic order; return True if it exists."""
    _, _, edges, blocks, suffix, best, _ = memory
    fill_edge_blocks(edges, blocks)
    suffix_scores(unary, edges, blocks, len(gold), suffix, best)
    return trace_best_path(unary, edges, len(gold), suffix, best, labels) > -np.inf


@subkernel_no_alloc
def best_wrong_path(unary, gold, segments, memory, labels):
    """Fill labels (T,) with the best path other than gold (T,) in the same way.

    `leaving` becomes the best score of suffixes that begin with the gold label and differ from gold later, shifted as
    in `suffix_scores`.
    """
    (_, _, edges, blocks, suffix, best, leaving), (length, L) = memory, (len(gold), unary.shape[1])
    fill_edge_blocks(edges, blocks)
    suffix_scores(unary, edges, blocks, length, suffix, best)
    leaving[length - 1] = -np.inf
    for t in range(length - 2, -1, -1):
        step, after = edges[0 if len(edges) == 1 else t + 1, gold[t]], suffix[t + 1]
        ahead = step[gold[t + 1]] + leaving[t + 1]
        for j in range(L):
            if j != gold[t + 1]:
                ahead = max(ahead, step[j] + after[j])
        level = unary[t, 0]
        for j in range(1, L):
            level = max(level, unary[t, j])
        leaving[t] = (unary[t, gold[t]] - (level if level > -np.inf else unary.dtype.type(0))) + ahead
    with_gold, label = True, 0
    for t in range(length):
        step = edges[0 if len(edges) == 1 else t, label]
        chosen, highest = -1, suffix.dtype.type(-np.inf)
        for j in range(L):
            ahead = leaving[t] if with_gold and j == gold[t] else suffix[t, j]
            if t:
                ahead += step[j]
            if ahead > highest:
                chosen, highest = j, ahead
        if chosen < 0:
            return False
        with_gold = with_gold and chosen == gold[t]
        label = labels[t] = chosen
    return not with_gold


CHAIN = PathKernels(chain_memory, best_path, best_wrong_path)


# -- changes of weights ---------------------------------------------------------------------------------------


@subkernel
def collect_changes(start, stop, gold, rival, alone, features, segments, sizes, table):
    """Return Phi(gold) - Phi(rival) as distinct keys (n,) int64 and counts (n,) float64, and the table they are in.

    gold and rival are (T,), labels of the tokens start, ..., stop - 1; alone is (T,) bool, True at tokens whose pair
    with the token before has no features. A key is the index of a weight in the node table, the edge table, the
    transitions and the table of segments, one after the other; sizes are those of the first three, and L. Keys are in
    the order of their first use, so that those of a row are neighbours. The table is a hash table with open addressing:
    slots (2C,) for up to C keys (C,) with their counts (C,). It is replaced if it is too small.
    """
    needed, size = _count_entries(start, gold, rival, features, segments), 64
    while size < 2 * needed:
        size *= 2
    if size > len(table[0]):
        table = np.empty(size, np.int32), np.empty(size // 2, np.int64), np.empty(size // 2)
    slots, keys, counts = table[0][:size], table[1], table[2]
    slots[:] = FREE
    n = _add_labels(start, gold, rival, alone, features, sizes, slots, keys, counts)
    if segments is not None:
        n = _add_segments(start, gold, 1.0, segments, sizes, slots, keys, counts, n)
        n = _add_segments(start, rival[: len(gold)], -1.0, segments, sizes, slots, keys, counts, n)
    return keys[:n], counts[:n], table


@subkernel_no_alloc
def _count_entries(start, gold, rival, features, segments):
    """Return how many changes there are at most: two for each feature of tokens and pairs that differ."""
    total = 0
    for t in range(len(gold)):
        token = start + t
        if gold[t] != rival[t]:
            total += features.node_ends[token + 1] - features.node_ends[token]
        if t and (gold[t] != rival[t] or gold[t - 1] != rival[t - 1]):
            total += features.edge_ends[token + 1] - features.edge_ends[token] + 1
    total *= 2
    if segments is not None:
        D = len(segments.ends)
        for labels in (gold, rival[: len(gold)]):
            t = 0
            while t < len(gold):
                end, token = segment_end(labels, t, segments), start + t
                d = min(end - t, D) - 1
                total += segments.ends[d, token + 1] - segments.ends[d, token]
                t = end
    return total


@subkernel_no_alloc
def _add_labels(start, gold, rival, alone, features, sizes, slots, keys, counts):
    """Add the changes of weights of labels to counts that are empty; return the number of keys."""
    L, n = sizes[3], np.int64(0)
    for t in range(len(gold)):
        token, g, r = start + t, gold[t], rival[t]
        if g != r:
            for place in range(features.node_ends[token], features.node_ends[token + 1]):
                row = np.int64(features.node_ids[place]) * L
                value = np.float64(features.node_weights[place]) if len(features.node_weights) else 1.0
                n = _add_to_count(row + g, value, slots, keys, counts, n)
                n = _add_to_count(row + r, -value, slots, keys, counts, n)
        if alone[t] or (g == r and gold[t - 1] == rival[t - 1]):
            continue
        g, r = gold[t - 1] * L + g, rival[t - 1] * L + r
        if sizes[1]:
            for place in range(features.edge_ends[token], features.edge_ends[token + 1]):
                row = sizes[0] + np.int64(features.edge_ids[place]) * L * L
                value = np.float64(features.edge_weights[place]) if len(features.edge_weights) else 1.0
                n = _add_to_count(row + g, value, slots, keys, counts, n)
                n = _add_to_count(row + r, -value, slots, keys, counts, n)
        if sizes[2]:
            n = _add_to_count(sizes[0] + sizes[1] + g, 1.0, slots, keys, counts, n)
            n = _add_to_count(sizes[0] + sizes[1] + r, -1.0, slots, keys, counts, n)
    return n


@subkernel_no_alloc
def _add_segments(start, labels, change, segments, sizes, slots, keys, counts, n):
    """Add a change for each feature of the segments of labels (T,) to the counts of n keys; return their number."""
    first, C, t = sizes[0] + sizes[1] + sizes[2], len(segments.table) - 1, 0
    while t < len(labels):
        end, kind = segment_end(labels, t, segments), segments.kinds[labels[t]]
        if kind < C:
            d, token = end - t - 1, start + t
            for place in range(segments.ends[d, token], segments.ends[d, token + 1]):
                n = _add_to_count(first + np.int64(segments.ids[place]) * C + kind, change, slots, keys, counts, n)
        t = end
    return n


@subkernel_no_alloc
def _add_to_count(key, change, slots, keys, counts, n):
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
def apply_changes(keys, counts, scale, step, changed):
    """Add scale times the changes to the weights, and scale * step times the changes to the sums of their averages.

    Sums and marks of moved weights are updated if they are stored.
    """
    first = 0
    for k in range(len(changed.weights)):
        weights, sums, moved = changed.weights[k], changed.sums[k], changed.moved[k]
        for i in range(len(keys) if len(weights) else 0):
            place = keys[i] - first
            if 0 <= place < len(weights) and counts[i] != 0.0:
                weights[place] += scale * counts[i]
                if len(sums):
                    sums[place] += scale * step * counts[i]
                if len(moved):
                    moved[place] = 1
        first += len(weights)


# -- passes over a batch --------------------------------------------------------------------------------------


@cache
def learning_pass(
    should_update: Callable[..., bool], size: Callable[..., float], kernels: PathKernels, exclude_gold: bool
) -> Any:
    """Return the compiled loop over the units of a batch, for an update rule and a step-size rule.

    Its arguments are units, features, segments (None for scores of labels only), weights, changed (`FlatWeights` of
    them), scheme, rule, costs, numbers, step and losses. A weight of a unit is a factor of its loss
    and of its changes. `step` is the number of previous steps. It fills the losses (U,) and returns
    the numbers of updates and of wrong labels of the best paths. It stops after a loss that is not finite.
    """
    should_update, size = subkernel_no_alloc(should_update), subkernel_no_alloc(size)
    allocate, best, best_wrong = kernels
    search = best_wrong if exclude_gold else best

    @kernel
    def learn(units, features, segments, weights, changed, scheme, rule, costs, numbers, step, losses):
        T, updates, wrong = longest_sequence(units.bounds), 0, 0
        memory, costly = allocate(T, segments, weights), len(costs.table) > 0
        unary, searched = memory.unary, memory.searched if costly else memory.unary
        rival, other, alone = np.empty(T, np.int64), np.empty(T, np.int64), np.zeros(T, np.bool_)
        alone[:1], table = True, (np.empty(0, np.int32), np.empty(0, np.int64), np.empty(0))
        for u in range(len(losses)):
            start, stop = units.bounds[u], units.bounds[u + 1]
            length, gold = stop - start, units.gold[start:stop]
            losses[u] = 0.0
            if length == 0:
                continue
            score(start, stop, (units.first, units.last), features, weights, scheme, False, unary, memory.edges)
            if segments is not None:
                score_segments(start, length, segments, weights.segment, False, memory.rows)
            gap = path_score(unary, gold, length, segments, memory)
            for t in range(length if costly else 0):
                for j in range(unary.shape[1]):
                    searched[t, j] = unary[t, j] + costs.table[costs.rows[start + t], j]
            if not search(searched, gold, segments, memory, rival) or count_differences(gold, rival) == 0:
                continue
            gap -= path_score(searched, rival, length, segments, memory)
            if not costly and (gap < 0.0 or not rule.exclude_gold):
                wrong += count_differences(gold, rival)
            elif -gap >= rule.least_cost:  # gold is the best path without costs unless the rival leads by as much
                best(unary, gold, segments, memory, other)
                wrong += count_differences(gold, other)
            if not should_update(gap, rule.threshold):
                continue
            factor = units.weights[start] if len(units.weights) else 1.0
            losses[u] = -gap * factor
            if not np.isfinite(gap):
                return updates, wrong
            updates += 1
            keys, counts, table = collect_changes(
                start, stop, gold, rival, alone, features, segments, changed.sizes, table
            )
            scale = factor * size(losses[u], factor * factor * squared_norm(counts), *numbers)
            apply_changes(keys, counts, scale, step + u, changed)
        return updates, wrong

    return learn


@cache
def local_update(size: Callable[..., float]) -> Any:
    """Return the compiled update of the local weights of one sequence with a given rival.

    The arguments are units (one sequence), features, segments (None for scores of labels only), changed, rival
    (T,), alone (T,), the loss, the squared norm of the change of other weights, numbers and step. The result is the
    step size. A weight of the sequence is a factor of the loss and of the changes.
    """
    size = subkernel_no_alloc(size)

    @kernel
    def update(units, features, segments, changed, rival, alone, loss, norm, numbers, step):
        sizes, gold, table = changed.sizes, units.gold, (np.empty(0, np.int32), np.empty(0, np.int64), np.empty(0))
        keys, counts, _ = collect_changes(0, len(gold), gold, rival, alone, features, segments, sizes, table)
        factor = units.weights[0] if len(units.weights) else 1.0
        scale = factor * size(factor * loss, factor * factor * (norm + squared_norm(counts)), *numbers)
        apply_changes(keys, counts, scale, step, changed)
        return scale

    return update


@subkernel_no_alloc
def count_differences(gold, rival):
    """Return the number of tokens at which gold (T,) and the rival have different labels."""
    total = 0
    for t in range(len(gold)):
        total += gold[t] != rival[t]
    return total
