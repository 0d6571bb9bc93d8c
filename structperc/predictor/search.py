"""Compiled search for the best labels of many sequences under linear scores, and their probabilities."""

from typing import NamedTuple

import numpy as np

from structperc.data.forbidden_spans import StateArrays
from structperc.data.labels import AllowedTransitions, Segmentation
from structperc.kernels.array_types import FeatureArrays, WeightTables
from structperc.kernels.best_path import any_invalid, edge_blocks, suffix_scores, trace_best_path
from structperc.kernels.jit import kernel, subkernel
from structperc.kernels.scores import score
from structperc.kernels.simd import padded_array
from structperc.kernels.slices import longest_sequence
from structperc.kernels.sum_product import forward_backward_with_sums, log_sum


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
    for s in range(len(bounds) - 1):
        start, length = bounds[s], bounds[s + 1] - bounds[s]
        if length == 0:
            continue
        _score(start, length, inputs, unary, edges)
        for t in range(length):
            for j in range(L):
                unary[t, j] += bias[states[j]]
            if any_invalid(unary, t * L, (t + 1) * L):
                return start + t
            if t and each > 1 and any_invalid(edges, t * L * L, (t + 1) * L * L):
                return start + t
        suffix_scores(unary, edges, edge_blocks(edges, unary), length, suffix, best)
        trace_best_path(unary, edges, length, suffix, best, labels[start : start + length])
    return -1


@kernel
def label_probabilities(inputs, temperature, labels, tokens, segments, logs, threshold):
    """Write the probabilities of labels (n,) to tokens (n,) float64, and those of their segments to segments (n,).

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
    nodes, before, after = np.empty((T, L)), np.empty((T, L)), np.empty((T, L))
    for s in range(len(bounds) - 1):
        start, length = bounds[s], bounds[s + 1] - bounds[s]
        if length == 0:
            continue
        _score(start, length, inputs, unary, edges)
        unary[:length] /= temperature
        edges[: min(each, length)] /= temperature
        own, steps = labels[start : start + length], edges[: min(each, length)]
        forward_backward_with_sums(unary[:length], steps, length, nodes[:length], before, after)
        for t in range(length):
            tokens[start + t] = _label_probability(nodes[t], own[t], states)
        first, last = sequences.first[start : start + length], sequences.last[start : start + length]
        _segment_probabilities(own, first, last, steps, nodes, before, after, segmentation, segments[start:])
        _step_probabilities(own, steps, nodes, after, logs[start:])
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
    if len(follows) == 0:
        _score_labels(start, length, inputs, unary, edges)
        offset = start - inputs.sequences.bounds[0]
        for t in range(length if len(possible) else 0):
            for j in range(unary.shape[1]):
                if not possible[offset + t, j]:
                    unary[t, j] = -np.inf
        return
    L = inputs.weights.node.shape[1]
    nodes, pairs = np.empty((length, L), unary.dtype), np.zeros((length, L, L), unary.dtype)
    _score_labels(start, length, inputs, nodes, pairs)
    for t in range(length):
        for j in range(len(labels)):
            unary[t, j] = nodes[t, labels[j]] if possible[t, j] else -np.inf
            for i in range(len(labels) if t else 0):
                edges[t, i, j] = pairs[t, labels[i], labels[j]] if follows[t, i, j] else -np.inf


@subkernel
def _score_labels(start, length, inputs, unary, edges):
    """Write the scores of the labels of the tokens from start on to unary and edges."""
    sentences = inputs.sequences.first, inputs.sequences.last
    score(start, start + length, sentences, inputs.features, inputs.weights, inputs.scheme, True, unary, edges)
    for t in range(1, length if inputs.independent else 0):
        if inputs.sequences.first[start + t]:
            edges[t] = 0


@subkernel
def _label_probability(nodes, state, labels):
    """Return the sum of the probabilities (L,) of all states with the label of a state."""
    total = 0.0
    for j in range(len(nodes)):
        if labels[j] == labels[state]:
            total += nodes[j]
    return total


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
                        p *= _step(at, labels[u], u, edges, after)
                        at = labels[u]
                    total += p * _exit(at, t, last, edges, after, segmentation)
        found[start : t + 1] = min(total, 1.0)


@subkernel
def _step_probabilities(labels, edges, nodes, after, logs):
    """Write the log-probability of each label given the one before it to logs (T,)."""
    logs[0] = np.log(nodes[0, labels[0]])
    for t in range(1, len(labels)):
        logs[t] = np.log(_step(labels[t - 1], labels[t], t, edges, after))


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
                    for j in range(L if mass[i] > 0 else 0):
                        if types[j] == kind and not opening[i, j]:
                            further[j] += mass[i] * _step(i, j, t, edges, after)
                mass[:] = further


@subkernel
def _entry(label, t, first, edges, nodes, before, segmentation):
    """Return the probability that a segment begins at token t with this label."""
    if first[t]:
        return nodes[t, label]
    shares = np.empty(nodes.shape[1])
    for i in range(len(shares)):
        shares[i] = before[t - 1, i] + edges[min(t, len(edges) - 1), i, label]
    return nodes[t, label] * (1.0 - _share_of(shares, ~segmentation.opening[:, label]))


@subkernel
def _exit(label, t, last, edges, after, segmentation):
    """Return the probability that the segment ends at token t, given its label."""
    if last[t]:
        return 1.0
    return 1.0 - _next_share(label, t + 1, (segmentation.types >= 0) & ~segmentation.opening[label], edges, after)


@subkernel
def _step(previous, label, t, edges, after):
    """Return the probability of a label at token t, given the previous one."""
    chosen = np.zeros(after.shape[1], np.bool_)
    chosen[label] = True
    return _next_share(previous, t, chosen, edges, after)


@subkernel
def _next_share(previous, t, chosen, edges, after):
    """Return the probability of the chosen (L,) labels at token t, given the previous label."""
    shares = np.empty(len(chosen))
    for j in range(len(chosen)):
        shares[j] = edges[min(t, len(edges) - 1), previous, j] + after[t, j]
    return _share_of(shares, chosen)


@subkernel
def _share_of(logarithms, chosen):
    """Return the sum of exp(logarithms) (L,) over chosen (L,) bool divided by the sum over all, from 0 to 1."""
    total, share = log_sum(logarithms), 0.0
    for j in range(len(logarithms)):
        if chosen[j] and total > -np.inf:
            share += np.exp(logarithms[j] - total)
    return min(share, 1.0)
