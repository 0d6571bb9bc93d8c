"""Compiled search for the best labels of many sequences with features of segments, and their probabilities."""

from typing import Any, NamedTuple

import numpy as np

from structperc.data.labels import AllowedTransitions
from structperc.kernels.array_types import FeatureArrays, SegmentArrays, WeightTables
from structperc.kernels.best_path import any_invalid
from structperc.kernels.best_segmentation import best_tables, search_backwards, trace_best_segmentation
from structperc.kernels.jit import kernel, subkernel, subkernel_no_alloc
from structperc.kernels.labelled_segments import (
    score_pairs,
    score_segments,
    score_whole_segments,
    segment_end,
    segment_kind,
    write_labels,
)
from structperc.kernels.scores import score
from structperc.kernels.semi_markov_sums import SegmentSums, sum_segmentations, sum_tables
from structperc.kernels.slices import longest_sequence
from structperc.predictor.search import SequenceBounds


class SegmentInputs(NamedTuple):
    """Sequences of n tokens, and what their scores depend on."""

    sequences: SequenceBounds
    features: FeatureArrays
    weights: WeightTables
    scheme: AllowedTransitions
    possible: np.ndarray  # (n, L) bool, labels that may be predicted; empty for all
    segments: SegmentArrays
    table: np.ndarray  # (F, C) weights of the features of segments


class _Buffers(NamedTuple):
    """Scores of one sequence of up to T tokens, and of its segments of K kinds, see `kernels.labelled_segments`."""

    unary: Any  # (T, L)
    edges: Any  # (1, L, L)
    rows: Any  # (T D, C) of segments by their features
    whole: Any  # (T, D, K) of whole segments, those of their labels included


@kernel
def best_labels(inputs, bias, labels):
    """Write the best label sequence of each sequence to labels (n,), initially 0.

    Scores are those of `SegmentLinear` over `SparseLinear` and of the constraints of the scheme; a sequence without a
    possible label sequence keeps its zeros. The bias (L,) is added to the scores of labels. Returns the first token
    with a score of +inf, where the search ends, or -1.
    """
    bounds, table = inputs.sequences.bounds, inputs.segments.table
    T = longest_sequence(bounds)
    buffers, found = _buffers(T, inputs), np.empty(T, np.int64)
    (_, D, K), whole = buffers.whole.shape, buffers.whole
    tables = best_tables(T, K)
    tables.own[:] = 0.0  # scores of tokens are part of those of segments
    score_pairs(buffers.edges[0], table, tables.back.T)
    for s in range(len(bounds) - 1):
        start, length = bounds[s], bounds[s + 1] - bounds[s]
        if length == 0:
            continue
        _score(start, length, inputs, bias, buffers)
        for t in range(length):
            if any_invalid(whole[t].reshape(-1), np.int64(0), min(D, length - t) * K):
                return start + t
        search_backwards(length, whole, tables)
        if trace_best_segmentation(0, -1, length, whole, tables, found):
            write_labels(found, table, K, labels[start : start + length])
    return -1


@kernel
def label_probabilities(inputs, temperature, labels, tokens, confidences, logs, threshold):
    """Write the probabilities of labels (n,) to tokens (n,) float64, and those of their segments to confidences (n,).

    The probability of exactly this segment is written at each of its tokens, NaN outside segments; to logs (n,) the
    log-probability of each segment given those before it, at its first token, and 0 at others. Scores are those of
    `best_labels`, none of them +inf, divided by the temperature, without a bias. Returns all segments
    (first token, token after the last, type, probability) with a probability above the threshold.
    """
    found = [(0, 0, 0, 0.0) for _ in range(0)]
    bounds, dtype = inputs.sequences.bounds, inputs.weights.node.dtype
    T, L, none = longest_sequence(bounds), inputs.weights.node.shape[1], np.zeros(inputs.weights.node.shape[1], dtype)
    buffers = _buffers(T, inputs)
    _, D, K = buffers.whole.shape
    pair = np.empty((K, K), dtype)
    score_pairs(buffers.edges[0], inputs.segments.table, pair)
    pair /= temperature
    sums, shares, log_sums, nodes = sum_tables(T, D, pair), np.empty((T, D, K)), np.empty((T + 1, K)), np.empty((T, L))
    results, no_tokens = SegmentSums(shares, np.empty((T, K)), np.empty((K, K)), log_sums), np.empty((0, K))
    for s in range(len(bounds) - 1):
        start, length = bounds[s], bounds[s + 1] - bounds[s]
        if length == 0:
            continue
        _score(start, length, inputs, none, buffers)
        whole, own = buffers.whole[:length], labels[start : start + length]
        whole /= temperature
        shares[:] = 0.0
        total = sum_segmentations(length, no_tokens, buffers.whole, sums, results)
        _sum_labels(length, shares, inputs.segments.table, nodes)
        for t in range(length):
            tokens[start + t] = min(nodes[t, own[t]], 1.0)
        _segment_probabilities(own, inputs.segments, whole, pair, total, results, confidences[start:], logs[start:])
        for t in range(length if threshold < 1 else 0):
            for d in range(min(D, length - t)):
                for c in range(K // 2):
                    p = shares[t, d, segment_kind(c, d + 1, K // 2)]
                    if p > threshold:
                        found.append((start + t, start + t + d + 1, c, min(p, 1.0)))
    return found


@subkernel
def _buffers(T, inputs):
    """Allocate the scores, and fill those of edges, which all sequences share; what is no segment stays -inf."""
    L, D, C = inputs.weights.node.shape[1], len(inputs.segments.ends), len(inputs.segments.table) - 1
    dtype = inputs.weights.node.dtype
    unary, edges, rows = np.empty((T, L), dtype), np.empty((1, L, L), dtype), np.empty((T * D, C), dtype)
    sentences = inputs.sequences.first, inputs.sequences.last
    score(0, 0, sentences, inputs.features, inputs.weights, inputs.scheme, True, unary, edges)  # of no token
    return _Buffers(unary, edges, rows, np.full((T, D, 2 * C + 1), -np.inf, dtype))


@subkernel_no_alloc
def _score(start, length, inputs, bias, buffers):
    """Fill buffers with the scores of the tokens from start on."""
    unary, edges, rows, segments = buffers.unary, buffers.edges, buffers.rows, inputs.segments
    sentences = inputs.sequences.first, inputs.sequences.last
    score(start, start + length, sentences, inputs.features, inputs.weights, inputs.scheme, True, unary, edges)
    for t in range(length):
        for j in range(unary.shape[1]):
            if len(inputs.possible) and not inputs.possible[start + t, j]:
                unary[t, j] = -np.inf
            unary[t, j] += bias[j]
    score_segments(start, length, segments, inputs.table, True, rows)
    score_whole_segments(length, unary, edges[0], rows, segments.table, buffers.whole)


@subkernel_no_alloc
def _sum_labels(length, shares, labels, nodes):
    """Fill nodes (T, L) with the sums of the probabilities (T, D, K) of the segments in which tokens have a label."""
    D, C = shares.shape[1], len(labels) - 1
    nodes[:length] = 0.0
    for t in range(length):
        nodes[t, labels[C, 0]] += shares[t, 0, C]
        for c in range(C):
            nodes[t, labels[c, 0]] += shares[t, 0, c]
            for d in range(1, min(D, length - t)):
                p = shares[t, d, C + 1 + c]
                nodes[t, labels[c, 1]] += p
                for i in range(1, d):
                    nodes[t + i, labels[c, 2]] += p
                nodes[t + d, labels[c, 3]] += p


@subkernel_no_alloc
def _segment_probabilities(labels, segments, whole, pair, total, sums, confidences, logs):
    """Write the probability of the segment of each of T tokens to confidences (T,), NaN outside segments.

    Also write the log-probability of each segment given those before it to logs (T,), at its first token.
    """
    (_, D, C), t, before = (len(whole), whole.shape[1], len(segments.table) - 1), 0, -1
    logs[: len(labels)] = 0.0
    while t < len(labels):
        stop, c = segment_end(labels, t, segments), segments.kinds[labels[t]]
        kind, last, share, own = segment_kind(c, stop - t, C), stop - t - 1, 0.0, -np.inf
        step = pair[before, kind] - sums.logs[t, before] if before >= 0 else -total
        if last < D:
            share, own = sums.segments[t, last, kind], whole[t, last, kind] + sums.logs[stop, kind]
        confidences[t:stop] = min(share, 1.0) if c < C else np.nan
        logs[t] = own + step if own > -np.inf else -np.inf
        t, before = stop, kind
