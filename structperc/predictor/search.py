"""Compiled search for the best labels of many sequences under linear scores, and their probabilities."""

from typing import NamedTuple

import numpy as np

from structperc.kernels.forward_backward import forward_backward_with_sums, log_sum
from structperc.kernels.jit import kernel, subkernel
from structperc.kernels.scores import score_in_order
from structperc.kernels.simd import padded_array
from structperc.kernels.slices import longest_sequence
from structperc.kernels.viterbi import any_invalid, edge_blocks, suffix_scores, trace_best_path


class SequenceBounds(NamedTuple):
    """Sequences of n tokens: sequence s is the tokens bounds[s], ..., bounds[s + 1] - 1."""

    bounds: np.ndarray  # (S + 1,) int64
    first: np.ndarray  # (n,) bool, first token of a sentence
    last: np.ndarray  # (n,) bool, last token of a sentence


@kernel
def best_labels(sequences, features, weights, scheme, independent, labels):
    """Write the best label sequence of each sequence to labels (n,), initially 0.

    Of labels with equal scores the lowest one wins.
    Scores are those of `SparseLinear` and of the constraints of the scheme; a sequence without a legal label sequence
    keeps its zeros. If sentences are independent, pairs of labels across their boundaries score 0.
    -> the first token with a score of +inf, where the search ends, or -1.
    """
    bounds = sequences.bounds
    unary, edges = _lattice(bounds, weights, independent)
    (T, L), each = unary.shape, len(edges)
    suffix, best = padded_array(T, L, unary), padded_array(T, L, unary)
    for s in range(len(bounds) - 1):
        start, length = bounds[s], bounds[s + 1] - bounds[s]
        if length == 0:
            continue
        _score(start, length, sequences, features, weights, scheme, independent, unary, edges)
        for t in range(length):
            if any_invalid(unary, t * L, (t + 1) * L):
                return start + t
            if t and each > 1 and any_invalid(edges, t * L * L, (t + 1) * L * L):
                return start + t
        suffix_scores(unary, edges, edge_blocks(edges, unary), length, suffix, best)
        trace_best_path(unary, edges, length, suffix, best, labels[start : start + length])
    return -1


@kernel
def label_probabilities(sequences, features, weights, scheme, independent, segmentation, labels, tokens, segments):
    """Write the probabilities of labels (n,) to tokens (n,) float64, and those of their segments to segments (n,).

    The probability of exactly this segment, `metrics.segment_confidence`, is written at each of its tokens, NaN outside
    segments. Scores are those of `best_labels`, none of them +inf.
    """
    bounds = sequences.bounds
    unary, edges = _lattice(bounds, weights, independent)
    (T, L), each = unary.shape, len(edges)
    nodes, before, after = np.empty((T, L)), np.empty((T, L)), np.empty((T, L))
    for s in range(len(bounds) - 1):
        start, length = bounds[s], bounds[s + 1] - bounds[s]
        if length == 0:
            continue
        _score(start, length, sequences, features, weights, scheme, independent, unary, edges)
        own, steps = labels[start : start + length], edges[: min(each, length)]
        forward_backward_with_sums(unary[:length], steps, length, nodes[:length], before, after)
        for t in range(length):
            tokens[start + t] = nodes[t, own[t]]
        first, last = sequences.first[start : start + length], sequences.last[start : start + length]
        _segment_probabilities(own, first, last, steps, nodes, before, after, segmentation, segments[start:])


@subkernel
def _lattice(bounds, weights, independent):
    """Allocate the scores of a sequence: unary (T, L), edges (T or 1, L, L), 0 for the first token."""
    T, L = longest_sequence(bounds), weights.node.shape[1]
    each = T if len(weights.edge) or independent else 1
    return np.empty((T, L), weights.node.dtype), np.zeros((each, L, L), weights.node.dtype)


@subkernel
def _score(start, length, sequences, features, weights, scheme, independent, unary, edges):
    """Write the scores of the tokens from start on to unary and edges."""
    score_in_order(start, start + length, sequences, features, weights, scheme, unary, edges)
    for t in range(1, length if independent else 0):
        if sequences.first[start + t]:
            edges[t] = 0


@subkernel
def _segment_probabilities(labels, first, last, edges, nodes, before, after, segmentation, found):
    """Write the probability of the segment of each of T tokens to found (T,).

    It is p(first label) times the conditional probabilities of the next labels and of neighbours outside the segment.
    """
    types, opening, L, at = segmentation.types, segmentation.opening, nodes.shape[1], 0
    shares = np.empty(L)
    for t in range(len(labels)):
        label = labels[t]
        if types[label] < 0:
            found[t] = np.nan
            continue
        if first[t] or opening[labels[t - 1], label]:
            at, found[t] = t, nodes[t, label]
            if not first[t]:
                for i in range(L):
                    shares[i] = before[t - 1, i] + edges[min(t, len(edges) - 1), i, label]
                found[at] *= 1.0 - _share_of(shares, ~opening[:, label])
        if not last[t]:
            for j in range(L):
                shares[j] = edges[min(t + 1, len(edges) - 1), label, j] + after[t + 1, j]
            continuing, following = (types >= 0) & ~opening[label], labels[t + 1]
            if continuing[following]:
                continuing[:] = False
                continuing[following] = True
                found[at] *= _share_of(shares, continuing)
                continue
            found[at] *= 1.0 - _share_of(shares, continuing)
        found[at : t + 1] = found[at]


@subkernel
def _share_of(logarithms, chosen):
    """Return the sum of exp(logarithms) (L,) over chosen (L,) bool divided by the sum over all, from 0 to 1."""
    total, share = log_sum(logarithms), 0.0
    for j in range(len(logarithms)):
        if chosen[j] and total > -np.inf:
            share += np.exp(logarithms[j] - total)
    return min(share, 1.0)
