"""Searches and sums over the segmentations of one sequence, see `structperc.ops.semi_markov`."""

from typing import Any, NamedTuple

import numpy as np

from structperc.kernels.jit import subkernel, subkernel_no_alloc
from structperc.kernels.simd import (
    cast_like,
    exp,
    log,
    maximum,
    padded_array,
    store,
    store_masked,
    vector_functions,
    where_greater,
)

WIDTH = 8  # numbers of a vector: most models have few types, half a vector of sixteen would be padding
load, load_masked, load_broadcast, broadcast = vector_functions(WIDTH)


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
    rows = padded_array(3 * T + 1 + C, C, np.empty(0), -np.inf, WIDTH)
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
    """Numbers of one sequence, float64.

    Those of all T tokens are in rows of C: vectors are loaded across their ends, and stored masked. Rows that are read
    soon after they are written are padded to whole vectors, which processors forward. Numbers of the R = D + 1 tokens
    from t on are in row t % R and after it, in a ring.
    """

    own: Any  # (T, C) scores of tokens less the highest of each
    top: Any  # (T, C) highest score of all from t on, beginning with a segment of a type, by numbers of tokens
    weights: Any  # (T, C) sums of exp(score - top) over the numbers of tokens
    after: Any  # (T + 1, C) log-sums of all from t on, after a segment of a type
    pair: Any  # (C, C)
    back: Any  # (C, C) the same, transposed
    types: Any  # (C, C) weights of the types after each type, at one token
    sizes: Any  # (D, C) weights of the numbers of tokens of segments, at one token
    scores: Any  # (D or C, W) scores of the choices at a token
    here: Any  # (3, W) rows of top, weights and after of the token; those of after before the logarithm is added
    ended: Any  # (R, W) probabilities of the types of segments that end before a token
    covered: Any  # (R, W) probabilities of the types of tokens
    begins: Any  # (1, W) probabilities of the types of segments that begin at a token, divided by `weights`
    pairs: Any  # (C, W) expected numbers of pairs
    numbers: Any  # (D, W) expected numbers of segments


@subkernel
def _rows(n, C):
    """Return zeros (n, C), with memory behind the last row for a whole vector."""
    return np.zeros(n * C + WIDTH)[: n * C].reshape(n, C)


@subkernel
def sum_tables(T, D, pair):
    """Return tables for sequences of up to T tokens and segments of up to D."""
    C, R = len(pair), D + 1
    own, top, weights, after = _rows(T, C), _rows(T, C), _rows(T, C), _rows(T + 1, C)
    given, back, types, sizes = _rows(C, C), _rows(C, C), _rows(C, C), _rows(D, C)
    many = max(D, C)
    rows = padded_array(many + 3 + 2 * R + 1 + C + D, C, given, 0.0, WIDTH)
    scores, here, rows = rows[:many], rows[many : many + 3], rows[many + 3 :]
    ended, covered, rows = rows[:R], rows[R : 2 * R], rows[2 * R :]
    given[:] = pair
    _fill_pairs(pair, back)
    return Sums(
        own, top, weights, after, given, back, types, sizes, scores, here, ended, covered,
        rows[:1], rows[1 : C + 1], rows[C + 1 :],
    )  # fmt: skip


@subkernel_no_alloc
def sum_backwards(length, given, sums, kept):
    """Fill top, weights, after, begins of the first token, and kept; return the log-sum of all scores.

    If kept has a row for each token, (T, D, C), it becomes the weights of the numbers of tokens of segments. The sums
    are of weights in its precision, so that the probabilities of a choice add up to 1.
    """
    C = len(sums.pair)
    after, begins, sizes, types, here = sums.after, sums.begins, sums.sizes, sums.types, sums.here
    W = here.shape[1]
    for c in range(C):
        after[length, c] = 0.0
    for t in range(length - 1, -1, -1):
        n = min(given.shape[1], length - t)
        _weigh_sizes(t, n, given, sums)
        if len(kept) == len(sums.own):
            row = t * given.shape[1] * C
            for place in range(0, n * C, WIDTH):
                rounded = cast_like(load(sizes, place), kept)
                store_masked(kept, row + place, n * C - place, rounded)
                store(sizes, place, cast_like(rounded, sizes))
        for j in range(0, C, WIDTH):
            total = broadcast(0.0)
            for d in range(n):
                total += load(sizes, d * C + j)
            store(here, W + j, total)
            store_masked(sums.weights, t * C + j, C - j, total)
        if t > 0:
            _score_types(sums)
            _weigh(C, C, sums.scores, here, 2, types)
            for i in range(0, C, WIDTH):
                total = broadcast(0.0)
                for j in range(C):
                    total += load(types, j * C + i) * load_broadcast(here, W + j)
                added = where_greater(total, 0.0, log(total), 0.0)
                store_masked(after, t * C + i, C - i, load(here, 2 * W + i) + added)
    highest, total = -np.inf, 0.0
    for c in range(C):
        highest = max(highest, sums.top[0, c])
    if highest == -np.inf:
        kept[:] = 0.0
        return highest
    for c in range(C):
        total += exp(sums.top[0, c] - highest) * sums.weights[0, c]
    for c in range(C):
        begins[0, c] = exp(sums.top[0, c] - highest) / total
    return highest + np.log(total)


@subkernel_no_alloc(forceinline=True)
def _weigh_sizes(t, n, given, sums):
    """Fill sizes for the segment at t, and top with the highest score."""
    own, after, scores, (_, D, C), W = sums.own, sums.after, sums.scores, given.shape, sums.scores.shape[1]
    first = (t if len(given) > 1 else 0) * D * C
    for j in range(0, C, WIDTH):
        run, highest = broadcast(0.0), broadcast(-np.inf)
        for d in range(n):
            run += load(own, (t + d) * C + j)
            added = cast_like(load_masked(given, first + d * C + j, C - j), own)
            score = (run + added) + load(after, (t + d + 1) * C + j)
            highest = maximum(score, highest)
            store(scores, d * W + j, score)
        store(sums.here, j, highest)
        store_masked(sums.top, t * C + j, C - j, highest)
    _weigh(n, C, scores, sums.here, 0, sums.sizes)


@subkernel_no_alloc(forceinline=True)
def _score_types(sums):
    """Fill scores with those of the types of the segment at one token, without `weights`, and `after` here."""
    back, here, scores, C, W = sums.back, sums.here, sums.scores, len(sums.back), sums.scores.shape[1]
    for i in range(0, C, WIDTH):
        highest = broadcast(-np.inf)
        for j in range(C):
            score = load(back, j * C + i) + load_broadcast(here, j)
            highest = maximum(score, highest)
            store(scores, j * W + i, score)
        store(here, 2 * W + i, highest)


@subkernel_no_alloc(forceinline=True)
def _weigh(n, C, scores, levels, row, weights):
    """Fill weights (n, C) with exp(score - level), none above 1."""
    W = scores.shape[1]
    for d in range(n):
        for j in range(0, C, WIDTH):
            level = load(levels, row * W + j)
            level = where_greater(level, -np.inf, level, 0.0)
            store(weights, d * C + j, load(scores, d * W + j) - level)  # what is beyond its row comes later
    for place in range(0, n * C, WIDTH):
        store(weights, place, exp(load(weights, place)))


@subkernel_no_alloc
def multiply_forwards(length, given, sums, kept, tokens, pairs):
    """Fill kept, the segments (T, D, C), or their expected numbers (1, D, C); tokens (T, C) and pairs (C, C).

    Weights that `sum_backwards` has not kept are computed once more.
    """
    ended, covered, sizes, numbers = sums.ended, sums.covered, sums.sizes, sums.numbers
    (_, D, C), (R, W), dense = given.shape, ended.shape, len(kept) == len(sums.own)
    ended[:], covered[:], sums.pairs[:], numbers[:] = 0.0, 0.0, 0.0, 0.0
    for t in range(length):
        n, row, here = min(D, length - t), t * D * C, t % R
        if t > 0:
            _begin(t, here, sums)
        if not dense:
            _weigh_sizes(t, n, given, sums)
        for j in range(0, C, WIDTH):
            begin, covers = load(sums.begins, j), broadcast(0.0)
            for d in range(n - 1, -1, -1):
                if dense:
                    share = begin * cast_like(load_masked(kept, row + d * C + j, C - j), sizes)
                    store(numbers, d * W + j, share)
                else:
                    share = begin * load(sizes, d * C + j)
                    store(numbers, d * W + j, load(numbers, d * W + j) + share)
                covers += share
                last = here + d if here + d < R else here + d - R
                following = (last + 1 if last + 1 < R else 0) * W + j
                store(ended, following, load(ended, following) + share)
                store(covered, last * W + j, load(covered, last * W + j) + covers)
            store_masked(tokens, t * C + j, C - j, load(covered, here * W + j))
            store(covered, here * W + j, broadcast(0.0))
            for d in range(n if dense else 0):
                store_masked(kept, row + d * C + j, C - j, load(numbers, d * W + j))
    for i in range(C):
        for j in range(0, C, WIDTH):
            store_masked(pairs, i * C + j, C - j, load(sums.pairs, i * W + j))
    for d in range(0 if dense else D):
        for j in range(0, C, WIDTH):
            store_masked(kept, d * C + j, C - j, load(numbers, d * W + j))


@subkernel_no_alloc(forceinline=True)
def _begin(t, here, sums):
    """Fill begins, and add to the pairs; empty the row of ended."""
    pair, top, types, pairs, C, W = sums.pair, sums.top, sums.types, sums.pairs, len(sums.pair), sums.pairs.shape[1]
    for i in range(C):
        level = sums.after[t, i] if sums.after[t, i] > -np.inf else 0.0
        for j in range(0, C, WIDTH):
            store(types, i * C + j, (load(pair, i * C + j) + load(top, t * C + j)) - level)
    for place in range(0, C * C, WIDTH):
        store(types, place, exp(load(types, place)))
    for j in range(0, C, WIDTH):
        total, weights = broadcast(0.0), load(sums.weights, t * C + j)
        for i in range(C):
            share = load(types, i * C + j) * load_broadcast(sums.ended, here * W + i)
            store(pairs, i * W + j, load(pairs, i * W + j) + share * weights)
            total += share
        store(sums.begins, j, total)
    for j in range(0, C, WIDTH):
        store(sums.ended, here * W + j, broadcast(0.0))
