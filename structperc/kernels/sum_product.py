"""Forward-backward: products of probabilities with scaling (Rabiner 1989, section V.A), or else logarithms of sums.

A scaled step is a matrix product without exponentials but those of the scores. Products may underflow where logarithms
do not, and then lose paths: one that is hopeless up to some token may be the only one that leads on from there. So they
are used only where nothing positive can have vanished. All factors are at most 1 and exactly 0 where impossible.
Positive ones are at least e^-150 by a first check (scores of tokens and of pairs), the sums that they are multiplied
with at least 1e-140 by a second one. A product of one sum and two factors then is at least 1e-140 * e^-300 > 1e-271,
far above the smallest float64 of full precision, 2e-308: the first sum to fall below 1e-140 is itself still right,
positive, and seen. What sums to 0 is impossible. Where a check fails, the logarithms of the sequence are summed, with
L^2 exponentials a token. All sums are float64.

Rows of L labels are padded with zeros to W, a whole number of `simd` vectors. Scores of a token, or of the edges into
it, are reduced by the highest of them, their level.
"""

from typing import NamedTuple

import numpy as np
from numpy import ndarray

from structperc.kernels.best_path import has_invalid_scores, max_level, subtract_levels
from structperc.kernels.jit import FAST_COMPARISONS, subkernel, subkernel_no_alloc
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
    reduce_max,
    reduce_sum,
    store,
    store_masked,
    where_greater,
)

SPREAD = 150.0  # nats from the highest to the lowest possible score of a token, or of the edges into it
SMALLEST = 1e-140  # of the positive sums
LOW, HIGH = 1e-10, 1e10  # sums over a token's labels are scaled to 1 when they leave this range


class Workspace(NamedTuple):
    """Memory for sequences of up to T tokens, M matrices of edges (1 or T) each; float64."""

    own: ndarray  # (T, W) factors of tokens, replaced by the sums from each label on
    before: ndarray  # (T + 1, W) sums up to each label
    after: ndarray  # (1, W) sums after the labels of one token
    scales: ndarray  # (T,) by which the sums of each token were multiplied
    steps: ndarray  # (M * L + 1, W) factors of edges
    back: ndarray  # (L + 1, W) their transpose where M = 1, else (0, W)


@subkernel
def workspace(T, M, L):
    """Return a workspace; rows beyond those of T, M and L are read as zeros."""
    scales = np.empty(T)
    return Workspace(
        padded_array(T, L, scales.dtype, 0.0),
        padded_array(T + 1, L, scales.dtype, 0.0),
        padded_array(1, L, scales.dtype, 0.0),
        scales,
        padded_array(M * L + 1, L, scales.dtype, 0.0),
        padded_array(L + 1 if M == 1 else 0, L, scales.dtype, 0.0),
    )


@subkernel_no_alloc
def edge_factors(edge, length, space):
    """Fill steps and back with the exponentials of edge (M, L, L) less its levels; returns are those of `_factors`."""
    steps, back, L = space.steps, space.back, edge.shape[1]
    result = _factors(edge.reshape(-1, L), L, len(back) == 0, 1 if len(back) else length, steps)
    for i in range(L if len(back) else 0):
        for j in range(L):
            back[j, i] = steps[i, j]
    return result


@subkernel_no_alloc
def _factors(scores, rows, first, last, found):
    """Fill found (N, W) with the exponentials of scores (N, L) less their levels, one level for so many rows.

    Return the sum of the levels from the first on to the last, which is excluded, and whether no factor is too small.
    """
    (_, L), W, levels, deepest = scores.shape, found.shape[1], 0.0, broadcast(0.0)
    for e in range(first, last):
        level = max_level(scores, e * rows, e * rows + rows)
        levels += level
        for r in range(e * rows, e * rows + rows):
            for i in range(0, L, WIDTH):
                score = cast_like(load_masked(scores, r * L + i, L - i), found) - level
                store(found, r * W + i, exp(score))
                deepest = maximum(where_greater(score, -np.inf, 0.0 - score, 0.0), deepest)
    return levels, reduce_max(deepest) <= SPREAD


@subkernel
def forward_backward(unary, edges, length, space, level, small, nodes, pairs, before, after):
    """Fill nodes (T, L) and pairs (T or 1 or 0, L, L) with the probabilities of a sequence of at least one token.

    unary is (T, L), edges (T or 1, L, L); level and small come from `edge_factors`. Returns log Z, -inf where nothing
    is possible, and whether products were used: then the workspace has the sums up to each label in `before` and those
    from it on in `own`, each up to a factor of its token, and nodes and pairs of the padding are not written. All are
    NaN where a score is +inf or NaN. before and after (T or 0, L) become log-sums over the paths up to each label and
    from it on, itself included, each up to a term of its token; they have no meaning where nothing is possible.
    """
    L, M = unary.shape[1], len(edges)
    levels, fine = _factors(unary, 1, 0, length, space.own)
    total = np.nan
    if small and fine and levels + level < np.inf:
        total = _forwards(space, M, L, length)
    if total > -np.inf and _backwards(space, L, length, nodes, pairs):
        for t in range(length if len(before) else 0):
            for j in range(L):
                before[t, j], after[t, j] = np.log(space.before[t, j]), np.log(space.own[t, j])
        return total + levels + level * (length - 1 if M == 1 else 1), True
    nodes[:], pairs[:] = 0, 0
    if total == -np.inf and not len(before):
        return total, False
    if has_invalid_scores(unary, edges, length, True):
        nodes[:length] = np.nan
        if length > 1:
            pairs[min(M - 1, 1) : length] = np.nan
        return np.nan, False
    return _log_forward_backward(unary, edges, length, nodes, pairs, before, after), False


@subkernel_no_alloc(forceinline=True)
def _product(row, start, matrix, place, L):
    """Return a row (L,), from index start on, times WIDTH columns of a matrix (L, W), from index `place` on.

    Two sums take turns, since each waits for its last term. With an odd L the last term is 0 times the next row.
    """
    even, odd, W = broadcast(0.0), broadcast(0.0), matrix.shape[1]
    for i in range(0, L, 2):
        even += load_broadcast(row, start + i) * load(matrix, place + i * W)
        odd += load_broadcast(row, start + i + 1) * load(matrix, place + i * W + W)
    return even + odd


@subkernel_no_alloc
def _forwards(space, M, L, length):
    """Fill before (T, W) with the sums over all paths up to each label, times all scales up to there, and scales.

    Returns the logarithm of the sum over all paths; -inf where nothing is possible, NaN where a sum is too small or a
    score is +inf or NaN.
    """
    own, before, scales, steps = space.own, space.before, space.scales, space.steps
    logs, total, least, W = 0.0, 0.0, broadcast(np.inf), own.shape[1]
    for t in range(length):
        sums, matrix = broadcast(0.0), 0 if M == 1 else t * L * W
        for j in range(0, W, WIDTH):
            sum_ = load(own, t * W + j)
            if t > 0:
                sum_ *= _product(before, (t - 1) * W, steps, matrix + j, L)
            store(before, t * W + j, sum_)
            sums += sum_
        total = reduce_sum(sums)
        if total == 0.0:
            break
        scales[t] = 1.0 if LOW < total < HIGH else 1.0 / total
        if scales[t] != 1.0:
            logs += np.log(total)
            total = 1.0
        least = _scaled(before, t, scales[t], least)
    if -reduce_max(0.0 - least) < SMALLEST:
        return np.nan
    return -np.inf if total == 0.0 else logs + np.log(total)


@subkernel_no_alloc(forceinline=True)
def _scaled(sums, t, scale, least):
    """Multiply sums[t] (W,) by a scale; return the elementwise minimum of its positive sums and of `least`."""
    W = sums.shape[1]
    for place in range(t * W, t * W + W, WIDTH):
        sum_ = load(sums, place)
        if scale != 1.0:
            sum_ *= scale
            store(sums, place, sum_)
        positive = where_greater(sum_, 0.0, sum_, np.inf)
        least = where_greater(least, positive, positive, least)
    return least


@subkernel_no_alloc
def _backwards(space, L, length, nodes, pairs):
    """Fill nodes (T, L) and pairs (T or 1 or 0, L, L) with probabilities; return whether no sum was too small.

    p(j) = before(j) after(j) over the sum of such products; p(i, j) = before(i) step(i, j) own(j) after(j) over the
    same sum, times the scale of the forward sums.
    """
    own, before, after, scales, steps, back = space
    least, W = broadcast(np.inf), own.shape[1]
    for j in range(L):  # the padding is 0
        after[0, j] = 1.0
    for t in range(length - 1, -1, -1):
        sums = broadcast(0.0)
        for j in range(0, W, WIDTH):
            sums += load(before, t * W + j) * load(after, j)
            store(own, t * W + j, load(own, t * W + j) * load(after, j))
        share = 1.0 / reduce_sum(sums)
        for j in range(0, W, WIDTH):
            store_masked(nodes, t * L + j, L - j, load(before, t * W + j) * load(after, j) * share)
        if t == 0:
            break
        if len(back):
            total = _sum_one_matrix(own, t, back, L, after)
            for j in range(0, W, WIDTH):  # the share first, so that nothing overflows
                store(own, t * W + j, load(own, t * W + j) * share * scales[t])
        else:
            total = _sum_each_matrix(own, t, steps, L, after, before, share, scales[t], pairs)
        least = _scaled(after, 0, 1.0 if LOW < total < HIGH else 1.0 / total, least)
    if len(back) and len(pairs):
        if length > 1:
            _fill_pairs(before, own, steps, length, pairs)
        else:
            pairs[:] = 0.0  # steps may be NaN
    return -reduce_max(0.0 - least) >= SMALLEST


@subkernel_no_alloc(forceinline=True)
def _sum_one_matrix(own, t, back, L, after):
    """Fill after (1, W) with the sums over what follows the labels of token t - 1; return their sum."""
    sums, W = broadcast(0.0), own.shape[1]
    for j in range(0, W, WIDTH):
        sum_ = _product(own, t * W, back, j, L)
        store(after, j, sum_)
        sums += sum_
    return reduce_sum(sums)


@subkernel_no_alloc(forceinline=True)
def _sum_each_matrix(own, t, steps, L, after, before, share, scale, pairs):
    """Do the same with edges of each token, and fill its pairs (T, L, L) unless there are none."""
    total, W = 0.0, own.shape[1]
    for i in range(t * L, t * L + L):
        sums, left = broadcast(0.0), before[t - 1, i - t * L] * scale
        for j in range(0, W, WIDTH):
            pair = load(steps, i * W + j) * load(own, t * W + j)
            sums += pair
            if len(pairs):
                store_masked(pairs, i * L + j, L - j, pair * share * left)
        after[0, i - t * L] = reduce_sum(sums)
        total += after[0, i - t * L]
    return total


@subkernel_no_alloc
def _fill_pairs(before, own, steps, length, pairs):
    """Fill pairs (1, L, L) with the sums over tokens of before(i) step(i, j) own(j), four labels i at a time."""
    L, W = pairs.shape[1], own.shape[1]
    for i in range(0, L, 4):
        for j in range(0, L, WIDTH):
            a = b = c = d = broadcast(0.0)
            for t in range(1, length):
                left, right = (t - 1) * W + i, load(own, t * W + j)
                a += load_broadcast(before, left) * right
                b += load_broadcast(before, left + 1) * right
                c += load_broadcast(before, left + 2) * right
                d += load_broadcast(before, left + 3) * right
            for k, sums in enumerate((a, b, c, d)):
                if i + k < L:
                    store_masked(pairs, (i + k) * L + j, L - j, sums * load(steps, (i + k) * W + j))


@subkernel
def _log_forward_backward(unary, edge, length, nodes, pairs, sums_to, sums_from):
    """Add probabilities to nodes (T, L) and pairs (T or 1 or 0, L, L), both zero before, and return log Z.

    The log-sums (T or 0, L) are those of `forward_backward`.
    """
    T, L = unary.shape
    own, after, before = np.empty((T, L)), np.zeros((T, L)), np.zeros((T, L))
    level = subtract_levels(unary, length, own)
    _prefix_log_sums(own, edge, length, before)
    suffix_log_sums(own, edge, length, after)
    scores = np.empty((L, L))
    total = 0.0
    for t in range(length):
        if t > 0:
            step = edge[0 if len(edge) == 1 else t]
            if len(pairs):
                for i in range(L):
                    for j in range(L):
                        left = before[t - 1, i] + own[t - 1, i]
                        scores[i, j] = left + step[i, j] + (own[t, j] + after[t, j])
                _add_shares(scores, pairs[0 if len(pairs) == 1 else t])
        for j in range(L):
            scores[0, j] = before[t, j] + own[t, j] + after[t, j]
        if t == 0:
            total = log_sum(scores[0])
        _add_shares(scores[:1], nodes[t : t + 1])
        for j in range(L if len(sums_to) else 0):
            sums_to[t, j], sums_from[t, j] = before[t, j] + own[t, j], after[t, j] + own[t, j]
    return total + level


@subkernel
def suffix_log_sums(own, edge, length, after):
    """Fill after (T, L) with the log-sums over all paths after each label; 0 at the last token."""
    _, L = own.shape
    terms = np.empty(L)
    for j in range(L):
        after[length - 1, j] = 0.0
    for t in range(length - 1, 0, -1):
        step = edge[0 if len(edge) == 1 else t]
        for i in range(L):
            for j in range(L):
                terms[j] = step[i, j] + (own[t, j] + after[t, j])
            after[t - 1, i] = log_sum(terms)


@subkernel
def _prefix_log_sums(own, edge, length, before):
    """Fill before (T, L) with the log-sums over all paths before each label; 0 at the first token."""
    _, L = own.shape
    terms = np.empty(L)
    for j in range(L):
        before[0, j] = 0.0
    for t in range(1, length):
        step = edge[0 if len(edge) == 1 else t]
        for j in range(L):
            for i in range(L):
                terms[i] = (before[t - 1, i] + own[t - 1, i]) + step[i, j]
            before[t, j] = log_sum(terms)


@subkernel_no_alloc(fastmath=FAST_COMPARISONS)
def max_score(scores):
    """Return the highest of scores (L,)."""
    highest = scores[0]
    for j in range(1, len(scores)):
        highest = scores[j] if scores[j] > highest else highest
    return highest


@subkernel_no_alloc(fastmath=FAST_COMPARISONS)
def log_sum(scores):
    """Return the log of the sum of exp(scores), -inf if all scores are."""
    highest = max_score(scores)
    if highest == -np.inf:
        return highest
    total = 0.0
    for j in range(len(scores)):
        total += exp(scores[j] - highest)
    return np.log(total) + highest


@subkernel
def _add_shares(scores, found):
    """Add the softmax of all scores (M, L) to found (M, L); nothing if all are -inf. The scores are overwritten."""
    highest = scores.max()
    if highest == -np.inf:
        return
    total = 0.0
    for i in range(scores.shape[0]):
        for j in range(scores.shape[1]):
            scores[i, j] = exp(scores[i, j] - highest)
            total += scores[i, j]
    for i in range(scores.shape[0]):
        for j in range(scores.shape[1]):
            found[i, j] += scores[i, j] / total
