"""Sums over the segmentations of one sequence, see `structperc.ops.segment_operators`.

Products of factors with scaling, or else logarithms of sums, as in `forward_backward`. A factor is exp(score - level).
The level of a token is the highest score of the segments that begin there, whose tokens are reduced by their levels: a
segmentation pays the level of each token once, and no factor is above 1. Sums after a token are scaled together with
those after the next D ones, which they are added to.

exp is 0 below e^-708, and what is lost so is nothing beside sums of 1e-140. A smaller sum must be of what is
impossible; where it is not, the logarithms of the sequence are summed. All sums are float64.
"""

from typing import Any, NamedTuple

import numpy as np

from structperc.kernels.best_path import subtract_levels
from structperc.kernels.best_segmentation import (
    WIDTH,
    broadcast,
    load,
    load_broadcast,
    load_masked,
)
from structperc.kernels.jit import subkernel, subkernel_no_alloc
from structperc.kernels.simd import (
    cast_like,
    exp,
    log,
    maximum,
    padded_array,
    reduce_max,
    reduce_sum,
    store,
    store_masked,
    where_greater,
)
from structperc.kernels.sum_product import HIGH, LOW, SMALLEST


class Sums(NamedTuple):
    """Numbers of one sequence, float64, with C padded to W, whole vectors.

    Numbers of the R = D + 1 tokens from t on are in row t % R and after it, in a ring.
    """

    pair: Any  # (C, W) scores of pairs, -inf in the padding
    back: Any  # (C, W) the same, transposed
    level: Any  # the highest of them
    steps: Any  # (C, W) exp(pair - level)
    steps_back: Any  # (C, W) the same, transposed
    real: Any  # (1, W) 1 for types, 0 for the padding
    own: Any  # (T, W) scores of tokens, then less their levels
    levels: Any  # (T,) levels of tokens
    scales: Any  # (T,) by which the sums after a token and the D following ones were multiplied
    top: Any  # (T, W) sums over all from t on, beginning with a segment of a type, or their logarithms
    after: Any  # (T + 1, W) sums over all from t on, after a segment of a type, or their logarithms
    sizes: Any  # (D, W) scores, factors or weights of the segments that begin at a token
    ended: Any  # (R, W) probabilities of the types of segments that end before a token
    covered: Any  # (R, W) probabilities of the types of tokens
    begins: Any  # (1, W) probabilities of the types of segments that begin at a token, by which weights are multiplied
    pairs: Any  # (C, W) expected numbers of pairs
    numbers: Any  # (D, W) expected numbers of segments


@subkernel
def sum_tables(T, D, pair):
    """Return tables for sequences of up to T tokens and segments of up to D."""
    C, R, tokens = len(pair), D + 1, np.empty((2, T))
    level = np.float64(pair.max()) if pair.max() > -np.inf else 0.0
    scores = padded_array(2 * C, C, tokens.dtype, -np.inf, WIDTH)
    rows = padded_array(3 * T + 1, C, tokens.dtype, 0.0, WIDTH)
    own, top, after = rows[:T], rows[T : 2 * T], rows[2 * T :]
    rows = padded_array(2 * R + 2 * D + 3 * C + 2, C, tokens.dtype, 0.0, WIDTH)
    ended, covered, rows = rows[:R], rows[R : 2 * R], rows[2 * R :]
    sizes, numbers, rows = rows[:D], rows[D : 2 * D], rows[2 * D :]
    steps, steps_back, pairs, rows = rows[:C], rows[C : 2 * C], rows[2 * C : 3 * C], rows[3 * C :]
    real, begins = rows[:1], rows[1:]
    real[0, :C] = 1.0
    for i in range(C):
        for j in range(C):
            scores[i, j] = scores[C + j, i] = pair[i, j]
            steps[i, j] = steps_back[j, i] = exp(scores[i, j] - level)
    return Sums(
        scores[:C], scores[C:], level, steps, steps_back, real, own, tokens[0], tokens[1], top, after, sizes, ended,
        covered, begins, pairs, numbers,
    )  # fmt: skip


class SegmentSums(NamedTuple):
    """Results for one sequence; what belongs to its padding is not changed."""

    segments: Any  # (T, D, C) probabilities of segments, or (1, D, C) their sums over the tokens; (0, D, C): none
    tokens: Any  # (T, C) probabilities of the types of tokens
    pairs: Any  # (C, C) expected numbers of pairs
    logs: Any  # (T + 1, C) log-sums over all from a token on, after a segment of a type; (0, C): none


@subkernel
def sum_segmentations(length, token, given, sums, results):
    """Return the log-sum of all scores of at least one token, and fill the results; log-sums only with segments.

    token is (T, C), or (0, C) for scores of 0; given (T or 1, D, C).
    """
    own, C = sums.own, token.shape[1]
    for t in range(length):
        for c in range(C):
            own[t, c] = token[t, c] if len(token) else 0.0
        own[t, C:] = -np.inf
    sums.ended[:], sums.covered[:], sums.pairs[:], sums.numbers[:] = 0.0, 0.0, 0.0, 0.0
    total = _sum_backwards(length, given, sums, results.segments)
    if not total > -np.inf:
        own[:length] = 0.0
        level = subtract_levels(token, length, own) if len(token) else 0.0
        total = _sum_logs(length, given, sums, results) + level
    elif len(results.segments):
        _multiply_forwards(length, given, sums, results)
        _write_logs(length, sums, results.logs)
    if len(results.segments):
        _write(sums, results)
    return total


@subkernel_no_alloc
def _sum_backwards(length, given, sums, kept):
    """Fill levels, scales, top, after, begins of the first token, and kept; return the log-sum of all scores.

    If kept has a row for each token, (T, D, C), it becomes the weights of the numbers of tokens of segments. They are
    rounded to its precision, and `top` is divided by their sum, so that probabilities of a choice add up to 1. The
    log-sum is NaN where a sum is too small.
    """
    own, levels, scales, top, after, W = sums.own, sums.levels, sums.scales, sums.top, sums.after, sums.own.shape[1]
    logs, total = 0.0, 0.0
    for j in range(0, W, WIDTH):
        store(after, length * W + j, load(sums.real, j))
    for t in range(length - 1, -1, -1):
        n = min(given.shape[1], length - t)
        level = _score_sizes(t, n, given, sums)
        for place in range(0, n * W, WIDTH):
            store(sums.sizes, place, exp(load(sums.sizes, place) - level))
        levels[t] = level + (sums.level if t > 0 else 0.0)
        for j in range(0, W, WIDTH):
            store(own, t * W + j, load(own, t * W + j) - levels[t])
        least = _sum_sizes(t, n, sums)
        if t > 0:
            least = _sum_types(t, sums, least)
        if -reduce_max(0.0 - least) < SMALLEST and _vanishes(t, n, given, sums):
            return np.nan
        sums_here = broadcast(0.0)
        for j in range(0, W, WIDTH):
            sums_here += load(after if t > 0 else top, t * W + j)
        total = reduce_sum(sums_here)
        if len(kept) == len(own):
            _keep(t, n, sums, kept)
        scales[t] = 1.0 if LOW < total < HIGH or total == 0.0 or t == 0 else 1.0 / total
        if scales[t] != 1.0:
            logs += np.log(total)
            if not _scale(after, t, n + 1, scales[t]):
                return np.nan
        logs += levels[t]
    for j in range(0, W, WIDTH):
        store(sums.begins, j, load(sums.real, j) / total)
    return logs + np.log(total)


@subkernel_no_alloc(forceinline=True)
def _score_sizes(t, n, given, sums):
    """Fill sizes with the scores of the segments at t, and return the highest; 0 if none is possible."""
    own, sizes, (_, D, C), W = sums.own, sums.sizes, given.shape, sums.own.shape[1]
    first, highest = (t if len(given) > 1 else 0) * D * C, broadcast(-np.inf)
    for j in range(0, W, WIDTH):
        run = broadcast(0.0)
        for d in range(n):
            run += load(own, (t + d) * W + j)
            score = run + cast_like(load_masked(given, first + d * C + j, C - j), own)
            highest = maximum(score, highest)
            store(sizes, d * W + j, score)
    level = reduce_max(highest)
    return level if level > -np.inf else 0.0


@subkernel_no_alloc(forceinline=True)
def _sum_sizes(t, n, sums):
    """Fill top; return the elementwise minimum of its sums, without the padding."""
    top, after, sizes, least, W = sums.top, sums.after, sums.sizes, broadcast(np.inf), sums.top.shape[1]
    for j in range(0, W, WIDTH):
        sum_ = broadcast(0.0)
        for d in range(n - 1, -1, -1):  # the latest sum comes last
            sum_ += load(sizes, d * W + j) * load(after, (t + d + 1) * W + j)
        store(top, t * W + j, sum_)
        least = where_greater(where_greater(load(sums.real, j), 0.0, least, 0.0), sum_, sum_, least)
    return least


@subkernel_no_alloc(forceinline=True)
def _sum_types(t, sums, least):
    """Fill after; return the elementwise minimum of its sums and of `least`."""
    top, after, back, W = sums.top, sums.after, sums.steps_back, sums.top.shape[1]
    for i in range(0, W, WIDTH):
        sum_ = broadcast(0.0)
        for j in range(len(back)):
            sum_ += load_broadcast(top, t * W + j) * load(back, j * W + i)
        store(after, t * W + i, sum_)
        least = where_greater(where_greater(load(sums.real, i), 0.0, least, 0.0), sum_, sum_, least)
    return least


@subkernel_no_alloc
def _vanishes(t, n, given, sums):
    """Return whether a sum at t is too small that is not impossible."""
    own, top, after, pair, first = sums.own, sums.top, sums.after, sums.pair, t if len(given) > 1 else 0
    for c in range(len(pair)):
        if top[t, c] < SMALLEST:
            run = 0.0
            for d in range(n):
                run += own[t + d, c]
                if run + given[first, d, c] > -np.inf and after[t + d + 1, c] > 0.0:
                    return True
        if t > 0 and after[t, c] < SMALLEST:
            for j in range(len(pair)):
                if pair[c, j] > -np.inf and top[t, j] > 0.0:
                    return True
    return False


@subkernel_no_alloc(forceinline=True)
def _keep(t, n, sums, kept):
    """Fill kept with the weights of the segments at t, and divide top by their sums."""
    (_, D, C), W = kept.shape, sums.top.shape[1]
    for j in range(0, C, WIDTH):
        sum_, total = load(sums.top, t * W + j), broadcast(0.0)
        inverse = where_greater(sum_, 0.0, 1.0 / sum_, 0.0)
        for d in range(n):
            weight = load(sums.sizes, d * W + j) * load(sums.after, (t + d + 1) * W + j) * inverse
            rounded = cast_like(weight, kept)
            store_masked(kept, (t * D + d) * C + j, C - j, rounded)
            total += cast_like(rounded, sums.top)
        store(sums.top, t * W + j, where_greater(total, 0.0, sum_ / total, 0.0))


@subkernel_no_alloc
def _scale(after, t, n, scale):
    """Multiply n rows of after from t on; return whether they are neither too small nor too large."""
    W, fine = after.shape[1], True
    for r in range(t, t + n):
        for c in range(W):
            after[r, c] *= scale
            fine &= after[r, c] == 0.0 or SMALLEST <= after[r, c] <= 1 / SMALLEST
    return fine


@subkernel_no_alloc
def _multiply_forwards(length, given, sums, results):
    """Fill all results but the log-sums; weights that `_sum_backwards` has not kept are computed once more."""
    kept, after, sizes, begins, (_, D, C), W = (
        results.segments,
        sums.after,
        sums.sizes,
        sums.begins,
        given.shape,
        sums.own.shape[1],
    )
    for t in range(length):
        n = min(D, length - t)
        if sums.scales[t] != 1.0:
            _scale(after, t, n + 1, 1.0 / sums.scales[t])
        if t > 0:
            _begin(t, sums)
        if len(kept) == len(sums.own):
            for j in range(0, C, WIDTH):
                store(begins, j, load(begins, j) * load(sums.top, t * W + j))
                for d in range(n):
                    store(sizes, d * W + j, cast_like(load_masked(kept, (t * D + d) * C + j, C - j), sizes))
        else:
            _score_sizes(t, n, given, sums)
            level = -sums.level if t > 0 else 0.0
            for j in range(0, W, WIDTH):
                for d in range(n):
                    weight = exp(load(sizes, d * W + j) - level)
                    store(sizes, d * W + j, weight * load(after, (t + d + 1) * W + j))
        _divide(t, n, sums, results)


@subkernel_no_alloc(forceinline=True)
def _begin(t, sums):
    """Fill begins, divided by `top`, and add to the pairs; empty the row of ended."""
    ended, pairs, (C, W) = sums.ended, sums.pairs, sums.pairs.shape
    here = t % len(ended) * W
    for i in range(0, W, WIDTH):
        sum_ = load(sums.after, t * W + i)
        store(ended, here + i, load(ended, here + i) * where_greater(sum_, 0.0, 1.0 / sum_, 0.0))
    for j in range(0, W, WIDTH):
        total, right = broadcast(0.0), load(sums.top, t * W + j)
        for i in range(C):
            share = load(sums.steps, i * W + j) * load_broadcast(ended, here + i)
            store(pairs, i * W + j, load(pairs, i * W + j) + share * right)
            total += share
        store(sums.begins, j, total)
    for j in range(0, W, WIDTH):
        store(ended, here + j, broadcast(0.0))


@subkernel_no_alloc(forceinline=True)
def _divide(t, n, sums, results):
    """Divide the probabilities of the types that begin at t by the weights of n numbers of tokens."""
    ended, covered, sizes, numbers, kept = sums.ended, sums.covered, sums.sizes, sums.numbers, results.segments
    (_, D, C), (R, W), dense, here = kept.shape, ended.shape, len(kept) == len(sums.own), t % len(ended)
    for j in range(0, C, WIDTH):
        begin, covers = load(sums.begins, j), broadcast(0.0)
        for d in range(n - 1, -1, -1):
            share = begin * load(sizes, d * W + j)
            covers += share
            last = here + d if here + d < R else here + d - R
            following = (last + 1 if last + 1 < R else 0) * W + j
            store(ended, following, load(ended, following) + share)
            store(covered, last * W + j, load(covered, last * W + j) + covers)
            store(numbers, d * W + j, share if dense else load(numbers, d * W + j) + share)
        store_masked(results.tokens, t * C + j, C - j, load(covered, here * W + j))
        store(covered, here * W + j, broadcast(0.0))
        for d in range(n if dense else 0):
            store_masked(kept, (t * D + d) * C + j, C - j, load(numbers, d * W + j))


@subkernel_no_alloc
def _write(sums, results):
    """Write the expected numbers of pairs, and of segments unless they are those of each token."""
    (rows, D, C), W = results.segments.shape, sums.own.shape[1]
    for i in range(C):
        for j in range(0, C, WIDTH):
            store_masked(results.pairs, i * C + j, C - j, load(sums.pairs, i * W + j))
    for d in range(0 if rows == len(sums.own) else D):
        for j in range(0, C, WIDTH):
            store_masked(results.segments, d * C + j, C - j, load(sums.numbers, d * W + j))


@subkernel_no_alloc
def _write_logs(length, sums, logs):
    """Fill logs with those of `after`, as it is after the pass forwards."""
    level = 0.0
    for t in range(length if len(logs) else -1, -1, -1):
        level += sums.levels[t] if t < length else 0.0
        for c in range(logs.shape[1]):
            logs[t, c] = np.log(sums.after[t, c]) + level
        level -= np.log(sums.scales[t]) if t < length else 0.0


@subkernel_no_alloc
def _sum_logs(length, given, sums, results):
    """Return the log-sum of all scores and fill all results, by logarithms of sums."""
    begins, top, after, (_, D, C) = sums.begins, sums.top, sums.after, given.shape
    after[length], highest, total = 0.0, -np.inf, 0.0
    for t in range(length - 1, -1, -1):
        _weigh_sizes(t, min(D, length - t), given, sums)
        if t > 0:
            _sum_types_in_logs(t, sums)
    for c in range(C):
        highest = max(highest, top[0, c])
    level = highest if highest > -np.inf else 0.0
    for c in range(C):
        begins[0, c] = exp(top[0, c] - level)
        total += begins[0, c]
    if len(results.segments):
        for c in range(C if total > 0.0 else 0):
            begins[0, c] /= total
        for t in range(length):
            n = min(D, length - t)
            if t > 0:
                _begin_in_logs(t, sums)
            _weigh_sizes(t, n, given, sums)
            _divide(t, n, sums, results)
        for t in range(length + 1 if len(results.logs) else 0):
            for c in range(C):
                results.logs[t, c] = after[t, c]
    return level + np.log(total)


@subkernel_no_alloc
def _weigh_sizes(t, n, given, sums):
    """Fill sizes with probabilities, and top with the logarithms of sums."""
    sizes, after, W = sums.sizes, sums.after, sums.own.shape[1]
    _score_sizes(t, n, given, sums)
    for j in range(0, W, WIDTH):
        highest, total = broadcast(-np.inf), broadcast(0.0)
        for d in range(n):
            score = load(sizes, d * W + j) + load(after, (t + d + 1) * W + j)
            highest = maximum(score, highest)
            store(sizes, d * W + j, score)
        level = where_greater(highest, -np.inf, highest, 0.0)
        for d in range(n):
            weight = exp(load(sizes, d * W + j) - level)
            total += weight
            store(sizes, d * W + j, weight)
        share = where_greater(total, 0.0, 1.0 / total, 0.0)
        for d in range(n):
            store(sizes, d * W + j, load(sizes, d * W + j) * share)
        store(sums.top, t * W + j, where_greater(total, 0.0, level + log(total), -np.inf))


@subkernel_no_alloc
def _sum_types_in_logs(t, sums):
    """Fill after."""
    top, back, (C, W) = sums.top, sums.back, sums.back.shape
    for i in range(0, W, WIDTH):
        highest, total = broadcast(-np.inf), broadcast(0.0)
        for j in range(C):
            highest = maximum(load(back, j * W + i) + load_broadcast(top, t * W + j), highest)
        level = where_greater(highest, -np.inf, highest, 0.0)
        for j in range(C):
            total += exp((load(back, j * W + i) + load_broadcast(top, t * W + j)) - level)
        store(sums.after, t * W + i, where_greater(total, 0.0, level + log(total), -np.inf))


@subkernel_no_alloc
def _begin_in_logs(t, sums):
    """Fill begins, and add to the pairs; empty the row of ended. Probabilities of the next type add up to 1."""
    ended, pairs, begins, steps, (C, W) = sums.ended, sums.pairs, sums.begins, sums.sizes, sums.pairs.shape
    here = t % len(ended)
    begins[0] = 0.0
    for i in range(C):
        highest, total = broadcast(-np.inf), broadcast(0.0)
        for j in range(0, W, WIDTH):
            highest = maximum(load(sums.pair, i * W + j) + load(sums.top, t * W + j), highest)
        level = reduce_max(highest) if reduce_max(highest) > -np.inf else 0.0
        for j in range(0, W, WIDTH):
            weight = exp((load(sums.pair, i * W + j) + load(sums.top, t * W + j)) - level)
            total += weight
            store(steps, j, weight)
        share = ended[here, i] / reduce_sum(total) if reduce_sum(total) > 0.0 else 0.0
        for j in range(0, W, WIDTH):
            own = load(steps, j) * share
            store(pairs, i * W + j, load(pairs, i * W + j) + own)
            store(begins, j, load(begins, j) + own)
    ended[here] = 0.0
