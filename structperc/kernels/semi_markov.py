"""Searches and sums over the segmentations of one sequence, see `structperc.ops.semi_markov`."""

from typing import Any, NamedTuple

import numpy as np

from structperc.kernels.jit import subkernel, subkernel_no_alloc
from structperc.kernels.simd import (
    WIDTH,
    broadcast,
    cast_like,
    exp,
    load,
    load_broadcast,
    load_masked,
    maximum,
    padded_array,
    reduce_sum,
    store,
    store_masked,
    where_greater,
)


@subkernel_no_alloc
def subtract_levels(token, length, own):
    """Fill own (T, C or more) with the scores less the highest of each token, and return the sum of the highest."""
    total = 0.0
    for t in range(length):
        highest = -np.inf
        for c in range(token.shape[1]):
            highest = max(highest, np.float64(token[t, c]))
        level = highest if highest > -np.inf else 0.0
        total += level
        for c in range(token.shape[1]):
            own[t, c] = token[t, c] - level
    return total


class Best(NamedTuple):
    """Best scores of one sequence, float64, with C padded to W, whole vectors."""

    own: Any  # (T, W) scores of tokens less the highest of each
    top: Any  # (T, W) of all from t on, beginning with a segment of a type
    after: Any  # (T + 1, W) of all from t on, after a segment of a type
    back: Any  # (C, W) scores of pairs [j, i]


@subkernel
def best_tables(T, pair):
    """Return tables for sequences of up to T tokens."""
    C = len(pair)
    rows = padded_array(3 * T + 1 + C, C, np.empty(0))
    tables = Best(rows[:T], rows[T : 2 * T], rows[2 * T : 3 * T + 1], rows[3 * T + 1 :])
    _fill_pairs(pair, tables.back)
    return tables


@subkernel_no_alloc
def _fill_pairs(pair, back):
    for i in range(len(pair)):
        for j in range(len(pair)):
            back[j, i] = pair[i, j]


@subkernel_no_alloc
def search_backwards(length, given, tables):
    """Fill top and after."""
    own, top, after, back = tables
    C, W = len(back), own.shape[1]
    after[length, :C] = 0.0
    for t in range(length - 1, -1, -1):
        first, n = (t if len(given) > 1 else 0) * given.shape[1] * C, min(given.shape[1], length - t)
        for j in range(0, C, WIDTH):
            run, highest = broadcast(0.0), broadcast(-np.inf)
            for d in range(n):
                run += load(own, (t + d) * W + j)
                added = cast_like(load_masked(given, first + d * C + j, C - j), own)
                highest = maximum((run + added) + load(after, (t + d + 1) * W + j), highest)
            store(top, t * W + j, highest)
        for i in range(0, C if t else 0, WIDTH):
            highest = broadcast(-np.inf)
            for j in range(C):
                highest = maximum(load(back, j * W + i) + load_broadcast(top, t * W + j), highest)
            store(after, t * W + i, highest)


@subkernel_no_alloc
def trace_best_segmentation(length, given, tables, labels):
    """Fill labels with the first best segmentation, and return whether there is one; scores are those of the search."""
    own, top, after, back = tables
    C, t, before = len(back), 0, -1
    while t < length:
        best, kind, size = -np.inf, -1, 0
        for c in range(C):
            score = top[t, c] if before < 0 else back[c, before] + top[t, c]
            if score > best:
                best, kind = score, c
        if kind < 0:
            return False
        run, best = 0.0, -np.inf
        for d in range(min(given.shape[1], length - t)):
            run += own[t + d, kind]
            score = (run + given[t if len(given) > 1 else 0, d, kind]) + after[t + d + 1, kind]
            if score > best:
                best, size = score, d + 1
        labels[t] = kind
        for d in range(1, size):
            labels[t + d] = C + kind
        t, before = t + size, kind
    return True


class Sums(NamedTuple):
    """Numbers of one sequence, float64, with C padded to W, whole vectors; probabilities are 0 in the padding."""

    own: Any  # (T, W) scores of tokens less the highest of each
    top: Any  # (T, W) highest score of all from t on, beginning with a segment of a type, by numbers of tokens
    weights: Any  # (T, W) sums of exp(score - top) over the numbers of tokens
    after: Any  # (T + 1, W) log-sums of all from t on, after a segment of a type
    ended: Any  # (T + 1, W) probabilities of the types of segments that end before a token
    tokens: Any  # (T, W) probabilities of the types of tokens
    begins: Any  # (1, W) probabilities of the types of segments that begin at a token, divided by `weights`
    back: Any  # (C, W) scores of pairs [j, i]
    pairs: Any  # (C, W) expected numbers of pairs [j, i]
    scores: Any  # (D or C, W) scores of the choices at a token
    sizes: Any  # (T D C + WIDTH,) weights of the numbers of tokens of segments, without padding: rows of C numbers
    types: Any  # (C C + WIDTH,) weights of the types after each type, at one token


@subkernel
def sum_tables(T, D, pair):
    """Return tables for sequences of up to T tokens and segments of up to D."""
    C = len(pair)
    rows, m = padded_array(6 * T + 3 + 2 * C + max(D, C), C, np.empty(0), 0.0), 6 * T + 3
    tables = Sums(
        rows[:T],
        rows[T : 2 * T],
        rows[2 * T : 3 * T],
        rows[3 * T : 4 * T + 1],
        rows[4 * T + 1 : 5 * T + 2],
        rows[5 * T + 2 : 6 * T + 2],
        rows[6 * T + 2 : m],
        rows[m : m + C],
        rows[m + C : m + 2 * C],
        rows[m + 2 * C :],
        np.zeros(T * D * C + WIDTH),
        np.zeros(C * C + WIDTH),
    )
    _fill_pairs(pair, tables.back)
    return tables


@subkernel_no_alloc
def sum_backwards(length, given, sums):
    """Fill top, weights, after, and begins of the first token; return the log-sum of all scores."""
    W, C = sums.own.shape[1], len(sums.back)
    after, begins, sizes, types, row = sums.after, sums.begins, sums.sizes, sums.types, given.shape[1] * C
    for c in range(C):
        after[length, c] = 0.0
    for t in range(length - 1, -1, -1):
        n = min(given.shape[1], length - t)
        _score_sizes(t, n, given, sums.own, sums.after, sums.top, sums.scores)
        _weigh(n, C, sums.scores, sums.top, t, sizes, t * row)
        for j in range(0, C, WIDTH):
            total = broadcast(0.0)
            for d in range(n):
                total += load(sizes, t * row + d * C + j)
            store_masked(sums.weights, t * W + j, C - j, total)
        if t > 0:
            _score_types(t, sums)
            _weigh(C, C, sums.scores, after, t, sums.types, 0)
            for i in range(0, C, WIDTH):
                total = broadcast(0.0)
                for j in range(C):
                    total += load(types, j * C + i) * load_broadcast(sums.weights, t * W + j)
                store_masked(begins, i, C - i, total)
            for i in range(C):
                if begins[0, i] > 0.0:
                    after[t, i] += np.log(begins[0, i])
    highest, total = -np.inf, 0.0
    for c in range(C):
        highest = max(highest, sums.top[0, c])
    if highest == -np.inf:
        return highest
    for c in range(C):
        total += exp(sums.top[0, c] - highest) * sums.weights[0, c]
    for c in range(C):
        begins[0, c] = exp(sums.top[0, c] - highest) / total
    return highest + np.log(total)


@subkernel_no_alloc(forceinline=True)
def _score_sizes(t, n, given, own, after, top, scores):
    """Fill scores with those of all tokens from t on, by number of tokens and type of the segment at t; and top."""
    (_, D, C), W = given.shape, own.shape[1]
    first = (t if len(given) > 1 else 0) * D * C
    for j in range(0, C, WIDTH):
        run, highest = broadcast(0.0), broadcast(-np.inf)
        for d in range(n):
            run += load(own, (t + d) * W + j)
            added = cast_like(load_masked(given, first + d * C + j, C - j), own)
            score = (run + added) + load(after, (t + d + 1) * W + j)
            highest = maximum(score, highest)
            store(scores, d * W + j, score)
        store(top, t * W + j, highest)


@subkernel_no_alloc(forceinline=True)
def _score_types(t, sums):
    """Fill scores with those of the types of the segment at t, without `weights`, and `after` with the highest."""
    back, top, scores, W = sums.back, sums.top, sums.scores, sums.own.shape[1]
    for i in range(0, len(back), WIDTH):
        highest = broadcast(-np.inf)
        for j in range(len(back)):
            score = load(back, j * W + i) + load_broadcast(top, t * W + j)
            highest = maximum(score, highest)
            store(scores, j * W + i, score)
        store(sums.after, t * W + i, highest)


@subkernel_no_alloc(forceinline=True)
def _weigh(n, C, scores, levels, t, packed, start):
    """Fill packed from an index on with exp(score - level) of n choices, none above 1; levels are in row t."""
    W = scores.shape[1]
    for j in range(0, C, WIDTH):
        level = load(levels, t * W + j)
        level = where_greater(level, -np.inf, level, 0.0)
        for d in range(n):
            store_masked(packed, start + d * C + j, C - j, load(scores, d * W + j) - level)
    stop = start + n * C
    for place in range(start, stop, WIDTH):
        store_masked(packed, place, stop - place, exp(load_masked(packed, place, stop - place)))


@subkernel_no_alloc
def multiply_forwards(length, sums, segments, tokens, pairs):
    """Fill segments (T, D, C), tokens (T, C) and pairs (C, C). The weights of types are computed once more."""
    ended, covered, begins = sums.ended, sums.tokens, sums.begins
    (_, D, C), W = segments.shape, sums.own.shape[1]
    ended[:], covered[:], sums.pairs[:] = 0.0, 0.0, 0.0
    for t in range(length):
        n = min(D, length - t)
        if t > 0:
            _begin(t, sums)
        for j in range(0, C, WIDTH):
            begin, covers = load(begins, j), broadcast(0.0)
            for d in range(n - 1, -1, -1):
                share = begin * load(sums.sizes, (t * D + d) * C + j)
                covers += share
                store_masked(segments, (t * D + d) * C + j, C - j, share)
                store(ended, (t + d + 1) * W + j, load(ended, (t + d + 1) * W + j) + share)
                store(covered, (t + d) * W + j, load(covered, (t + d) * W + j) + covers)
            store_masked(tokens, t * C + j, C - j, load(covered, t * W + j))
    for j in range(C):
        for i in range(C):
            pairs[i, j] = sums.pairs[j, i]


@subkernel_no_alloc(forceinline=True)
def _begin(t, sums):
    """Fill begins, and add to the pairs."""
    back, top, after, ended, pairs, W = sums.back, sums.top, sums.after, sums.ended, sums.pairs, sums.own.shape[1]
    C = len(back)
    for j in range(C):
        for i in range(0, C, WIDTH):
            store(sums.scores, j * W + i, load(back, j * W + i) + load_broadcast(top, t * W + j))
    _weigh(C, C, sums.scores, after, t, sums.types, 0)
    for j in range(C):
        total = broadcast(0.0)
        for i in range(0, C, WIDTH):
            share = load(ended, t * W + i) * load(sums.types, j * C + i)
            store(pairs, j * W + i, load(pairs, j * W + i) + share * load_broadcast(sums.weights, t * W + j))
            total += share
        sums.begins[0, j] = reduce_sum(total)
