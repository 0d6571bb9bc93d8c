"""Compiled search for the best labels of many sequences under linear scores, and their probabilities."""

from typing import NamedTuple

import numpy as np

from structperc.data.forbidden_spans import StateArrays
from structperc.data.labels import AllowedTransitions, Segmentation
from structperc.kernels.array_types import FeatureArrays, WeightTables
from structperc.kernels.best_path import any_invalid, edge_blocks, fill_edge_blocks, suffix_scores, trace_best_path
from structperc.kernels.jit import kernel, subkernel, subkernel_no_alloc
from structperc.kernels.scores import score
from structperc.kernels.simd import padded_array
from structperc.kernels.slices import longest_sequence
from structperc.kernels.sum_product import edge_factors, forward_backward, log_sum, workspace


class SequenceBounds(NamedTuple):
    """Sequences of n tokens: sequence s is the tokens bounds[s], ..., bounds[s + 1] - 1."""

    bounds: np.ndarray  # (S + 1,) int64
    first: np.ndarray  # (n,) bool, first token of a sentence
    last: np.ndarray  # (n,) bool, last token of a sentence


class SearchInputs(NamedTuple):
    """Sequences of n tokens, and what the scores of their L labels, or M states, depend on."""

    sequences: SequenceBounds
    features: FeatureArrays
    weights: WeightTables
    scheme: AllowedTransitions
    independent: bool  # pairs of labels across the boundaries of sentences score 0
    states: StateArrays  # without rows of pairs, labels that may be predicted, or no rows for all; otherwise the states
    #                      of the only sequence, see `data.forbidden_spans`
    segmentation: Segmentation  # of the labels or states


@kernel
def best_labels(inputs, bias, labels):
    """Write the best label sequence of each sequence to labels (n,), initially 0.

    Of labels with equal scores the lowest one wins. Scores are those of `SparseLinear` and of the constraints of the
    scheme; a sequence without a legal label sequence keeps its zeros. With states, the best sequence of states is
    written. The bias (L,) is added to the scores of labels. Returns the first token with a score of +inf, where the
    search ends, or -1.
    """
    bounds, states = inputs.sequences.bounds, inputs.states.labels
    unary, edges = _lattice(inputs)
    (T, L), each = unary.shape, len(edges)
    suffix, best = padded_array(T, L, unary.dtype), padded_array(T, L, unary.dtype)
    blocks = edge_blocks(edges, unary.dtype)
    for s in range(len(bounds) - 1):
        start, length = bounds[s], bounds[s + 1] - bounds[s]
        if length == 0:
            continue
        _score(start, length, inputs, unary, edges)
        for t in range(length):
            for j in range(L):
                unary[t, j] += bias[states[j]]
            if any_invalid(unary[t], np.int64(0), L):
                return start + t
            if t and each > 1 and any_invalid(edges[t].reshape(-1), np.int64(0), L * L):
                return start + t
        fill_edge_blocks(edges, blocks)
        suffix_scores(unary, edges, blocks, length, suffix, best)
        trace_best_path(unary, edges, length, suffix, best, labels[start : start + length])
    return -1


@kernel
def label_probabilities(inputs, temperature, labels, tokens, segments, logs, threshold):
    """Write the probabilities of labels (n,) to tokens (n,) float64, 0 before, and of their segments to segments (n,).

    The probability of exactly this segment, see `chain.confidence`, is written at each of its tokens, NaN outside
    segments; to logs (n,) the log-probability of each label given the one before it. Scores are those of `best_labels`,
    none of them +inf, divided by the temperature, without biases; labels and segmentation are those of the states, if
    there are any. Returns all segments (first token, token after the last, type, probability) with a probability above
    the threshold.
    """
    found = [(0, 0, 0, 0.0) for _ in range(0)]
    sequences, states, segmentation = inputs.sequences, inputs.states.labels, inputs.segmentation
    bounds, (unary, edges) = sequences.bounds, _lattice(inputs)
    (T, L), each = unary.shape, len(edges)
    nodes, before, after, space = np.empty((T, L)), np.empty((T, L)), np.empty((T, L)), workspace(T, each, L)
    for s in range(len(bounds) - 1):
        start, length = bounds[s], bounds[s + 1] - bounds[s]
        if length == 0:
            continue
        _score(start, length, inputs, unary, edges)
        unary[:length] /= temperature
        edges[: min(each, length)] /= temperature
        own, steps = labels[start : start + length], edges[: min(each, length)]
        level, small = edge_factors(steps, length, space)
        forward_backward(unary, steps, length, space, level, small, nodes, steps[:0], before, after)
        for t in range(length):
            for j in range(L):  # all states with the label
                tokens[start + t] += nodes[t, j] if states[j] == states[own[t]] else 0.0
            share = min(_following(own[t - 1], t, steps, after)[own[t]], 1.0) if t else nodes[0, own[0]]
            logs[start + t] = np.log(share)
        first, last = sequences.first[start : start + length], sequences.last[start : start + length]
        _segment_probabilities(own, first, last, steps, nodes, before, after, segmentation, segments[start:])
        if threshold < 1:
            _probable_segments(start, first, last, steps, nodes, before, after, segmentation, threshold, found)
    return found


@subkernel
def _lattice(inputs):
    """Allocate the scores of a sequence: unary (T, L), edges (T or 1, L, L), 0 for the first token.

    With states, L is their number.
    """
    T, L, weights = longest_sequence(inputs.sequences.bounds), len(inputs.states.labels), inputs.weights
    each = T if len(weights.edge) or inputs.independent or len(inputs.states.follows) else 1
    return np.empty((T, L), weights.node.dtype), np.zeros((each, L, L), weights.node.dtype)


@subkernel
def _score(start, length, inputs, unary, edges):
    """Write the scores of the tokens from start on to unary and edges, -inf for what is not possible."""
    labels, possible, follows = inputs.states
    nodes, pairs, L, stateful = unary, edges, inputs.weights.node.shape[1], len(follows) > 0
    if stateful:
        nodes, pairs = np.empty((length, L), unary.dtype), np.zeros((length, L, L), unary.dtype)
    sentences = inputs.sequences.first, inputs.sequences.last
    score(start, start + length, sentences, inputs.features, inputs.weights, inputs.scheme, True, nodes, pairs)
    for t in range(1, length if inputs.independent else 0):
        if inputs.sequences.first[start + t]:
            pairs[t] = 0
    offset = start - inputs.sequences.bounds[0]
    for t in range(length if len(possible) and not stateful else 0):
        for j in range(L):
            if not possible[offset + t, j]:
                unary[t, j] = -np.inf
    for t in range(length if stateful else 0):
        for j in range(len(labels)):
            unary[t, j] = nodes[t, labels[j]] if possible[t, j] else -np.inf
            for i in range(len(labels) if t else 0):
                edges[t, i, j] = pairs[t, labels[i], labels[j]] if follows[t, i, j] else -np.inf


@subkernel
def _segment_probabilities(labels, first, last, edges, nodes, before, after, segmentation, found):
    """Write the probability of the segment of each of T tokens to found (T,).

    In IOB1, a segment begins with B after a segment of its type, and otherwise with I: all first labels count.
    """
    types, opening, start = segmentation.types, segmentation.opening, 0
    for t in range(len(labels)):
        label = labels[t]
        if types[label] < 0:
            found[t] = np.nan
            continue
        if first[t] or opening[labels[t - 1], label]:
            start = t
        if not last[t] and types[labels[t + 1]] >= 0 and not opening[label, labels[t + 1]]:
            continue
        total = 0.0
        for initial in range(nodes.shape[1]):
            if types[initial] == types[label]:
                p = _entry(initial, start, first, edges, nodes, before, segmentation)
                if p > 0:
                    at = initial
                    for u in range(start + 1, t + 1):
                        p *= min(_following(at, u, edges, after)[labels[u]], 1.0)
                        at = labels[u]
                    total += p * _exit(at, t, last, edges, after, segmentation)
        found[start : t + 1] = min(total, 1.0)


@subkernel
def _probable_segments(offset, first, last, edges, nodes, before, after, segmentation, threshold, found):
    """Append the segments with a probability above the threshold to found; `offset` is added to their tokens."""
    types, opening, L = segmentation.types, segmentation.opening, nodes.shape[1]
    mass, further = np.empty(L), np.empty(L)
    for start in range(len(first)):
        for kind in range(types.max() + 1):
            mass[:] = 0.0
            for j in range(L):
                if types[j] == kind and nodes[start, j] > 0:
                    mass[j] = _entry(j, start, first, edges, nodes, before, segmentation)
            t = start
            while mass.sum() > threshold:
                p = 0.0
                for j in range(L):
                    if mass[j] > 0:
                        p += mass[j] * _exit(j, t, last, edges, after, segmentation)
                if p > threshold:
                    found.append((offset + start, offset + t + 1, kind, min(p, 1.0)))
                if last[t]:
                    break
                t += 1
                further[:] = 0.0
                for i in range(L):
                    if mass[i] > 0:
                        following = _following(i, t, edges, after)
                        for j in range(L):
                            if types[j] == kind and not opening[i, j]:
                                further[j] += mass[i] * min(following[j], 1.0)
                mass[:] = further


@subkernel
def _entry(label, t, first, edges, nodes, before, segmentation):
    """Return the probability that a segment begins at token t with this label."""
    if first[t]:
        return nodes[t, label]
    shares = np.empty(nodes.shape[1])
    for i in range(len(shares)):
        shares[i] = before[t - 1, i] + edges[min(t, len(edges) - 1), i, label]
    _exponentiate(shares)
    share = 0.0
    for i in range(len(shares)):
        share += 0.0 if segmentation.opening[i, label] else shares[i]
    return nodes[t, label] * (1.0 - min(share, 1.0))


@subkernel
def _exit(label, t, last, edges, after, segmentation):
    """Return the probability that the segment ends at token t, given its label."""
    if last[t]:
        return 1.0
    following, share = _following(label, t + 1, edges, after), 0.0
    for j in range(len(following)):
        if segmentation.types[j] >= 0 and not segmentation.opening[label, j]:
            share += following[j]
    return 1.0 - min(share, 1.0)


@subkernel
def _following(previous, t, edges, after):
    """Return the probabilities (L,) of the labels at token t, given the previous label."""
    shares = np.empty(after.shape[1])
    for j in range(len(shares)):
        shares[j] = edges[min(t, len(edges) - 1), previous, j] + after[t, j]
    _exponentiate(shares)
    return shares


@subkernel_no_alloc
def _exponentiate(scores):
    """Replace scores (L,) by exp(score) over the sum of all; 0 where all are -inf."""
    total = log_sum(scores)
    for j in range(len(scores)):
        scores[j] = np.exp(scores[j] - total) if total > -np.inf else 0.0
