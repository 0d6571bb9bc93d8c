"""Forward-backward, compiled: products of probabilities, scaled where they grow or fall (Rabiner 1989, section V.A).

A step is a matrix product and needs no exponential but those of the scores. Such products may underflow where
logarithms do not, and then lose labellings: one that is hopeless up to some token may be the only one that leads on
from there. So they are used only where nothing positive can have vanished. All factors are at most 1 and exactly 0
where impossible. Positive ones are at least e^-150 by a first check (scores of tokens and of pairs), the sums that they
are multiplied with at least 1e-140 by a second one. A product of one sum and two factors then is at least
1e-140 * e^-300 > 1e-271, far above the smallest float64 of full precision, 2e-308: the first sum to fall below 1e-140
is itself still right, positive, and seen. What sums to 0 is impossible. Where a check fails, the sequence is summed by
its logarithms (`log_sums`), at the price of L^2 exponentials a token. All sums are float64.

Rows of L labels are filled up with zeros to W, as many as whole `lanes` have.
"""

import numpy as np

from structperc.kernels.compiled import kernel, kernel_part
from structperc.kernels.factors import factors_of_edges, factors_of_tokens
from structperc.kernels.lanes import (
    WIDTH,
    largest,
    load,
    load_one,
    padded,
    spread,
    store,
    store_some,
    sum_of,
    where_above,
)
from structperc.kernels.log_sums import arrivals, completions, expect_by_logs, levelled
from structperc.kernels.onward import any_invalid

SMALLEST = 1e-140  # of the positive sums
LOW, HIGH = 1e-10, 1e10  # sums over a token's labels are scaled to 1 when they leave this range


@kernel_part
def expect(unary, edges, length, own, steps, back, level, small, before, after, scales, nodes, pairs):  # type: ignore[no-untyped-def]
    """Fill nodes (T, L) and pairs (T or 1 or 0, L, L) of a sequence with probabilities.

    unary is (T, L), edges (T or 1, L, L), length at least 1; steps, back, level and small are those of
    `factors_of_edges`. What follows the last token is not written where products serve, 0 where logarithms do.
    -> the log-partition, -inf where nothing is possible, and whether products serve: then `before` has the sums up to
    each label and `own` those from it on, each up to a factor of its token. All are NaN where a score is +inf or NaN.
    """
    L, M = unary.shape[1], len(edges)
    levels, fine = factors_of_tokens(unary, length, own)
    total = np.nan
    if small and fine and levels + level < np.inf:
        total = _forwards(own, steps, M, L, length, before, scales)
    if total > -np.inf and _backwards(own, steps, back, L, length, before, after, scales, nodes, pairs):
        return total + levels + level * (length - 1 if M == 1 else 1), True
    nodes[:], pairs[:] = 0, 0
    if total == -np.inf:
        return total, False
    if _invalid(unary, edges, length):
        nodes[:length] = np.nan
        if length > 1:
            pairs[min(M - 1, 1) : length] = np.nan
        return np.nan, False
    return expect_by_logs(unary, edges, length, nodes, pairs), False


@kernel_part
def _invalid(unary, edges, length):  # type: ignore[no-untyped-def]
    """Whether a score of the sequence, or an edge into one of its tokens, is +inf or NaN."""
    L = unary.shape[1]
    first, last = (0, 1) if len(edges) == 1 else (1, length)
    return any_invalid(unary, 0, length * L) or (length > 1 and any_invalid(edges, first * L * L, last * L * L))


@kernel_part
def expect_with_sums(unary, edges, length, nodes, before, after):  # type: ignore[no-untyped-def]
    """Fill nodes (T, L) float64 with the probabilities of labels, before and after (T, L) with logarithms of sums.

    Those are over what leads up to each label, itself included, and over what leads on from it, itself included, each
    up to a term of its token. unary is (T, L), edges (T or 1, L, L), length at least 1.
    -> the log-partition, -inf where nothing is possible; then the sums have no meaning.
    """
    L, M = unary.shape[1], len(edges)
    scales = np.empty(length)
    own, up_to, last = padded(length, L, scales, 0.0), padded(length + 1, L, scales, 0.0), padded(1, L, scales, 0.0)
    steps, back = padded(M * L + 1, L, scales, 0.0), padded(L + 1 if M == 1 else 0, L, scales, 0.0)
    level, small = factors_of_edges(edges, length, steps, back)
    no_pairs = np.empty((0, L, L))
    total, by_products = expect(
        unary, edges, length, own, steps, back, level, small, up_to, last, scales, nodes, no_pairs
    )
    if by_products:
        for t in range(length):
            for j in range(L):
                before[t, j], after[t, j] = np.log(up_to[t, j]), np.log(own[t, j])
        return total
    scores = np.empty((length, L))
    levelled(unary, length, scores)
    arrivals(scores, edges, length, before)
    completions(scores, edges, length, after)
    for t in range(length):
        for j in range(L):
            before[t, j] += scores[t, j]
            after[t, j] += scores[t, j]
    return total


@kernel_part(forceinline=True)
def _product(row, start, matrix, place, L):  # type: ignore[no-untyped-def]
    """A row (L,) from place start on times columns of a matrix (L, W), those of the lanes at its first row's place.

    Two sums take turns, as each waits for its last term. With an odd L the last term is 0 times the row that follows.
    """
    even, odd, W = spread(0.0), spread(0.0), matrix.shape[1]
    for i in range(0, L, 2):
        even += load_one(row, start + i) * load(matrix, place + i * W)
        odd += load_one(row, start + i + 1) * load(matrix, place + i * W + W)
    return even + odd


@kernel_part
def _forwards(own, steps, M, L, length, before, scales):  # type: ignore[no-untyped-def]
    """Fill before (T, W): sums over the labellings up to each label, times all factors up to there of scales (T,).

    -> the logarithm of the sum over all labellings; -inf where nothing is possible, NaN where a sum is too small or a
    score is +inf or NaN.
    """
    logs, total, least, W = 0.0, 0.0, spread(np.inf), own.shape[1]
    for t in range(length):
        sums, matrix = spread(0.0), 0 if M == 1 else t * L * W
        for j in range(0, W, WIDTH):
            sum_ = load(own, t * W + j)
            if t > 0:
                sum_ *= _product(before, (t - 1) * W, steps, matrix + j, L)
            store(before, t * W + j, sum_)
            sums += sum_
        total = sum_of(sums)
        if total == 0.0:
            break
        scales[t] = 1.0 if LOW < total < HIGH else 1.0 / total
        if scales[t] != 1.0:
            logs += np.log(total)
            total = 1.0
        least = _scaled(before, t, scales[t], least)
    if -largest(0.0 - least) < SMALLEST:
        return np.nan
    return -np.inf if total == 0.0 else logs + np.log(total)


@kernel_part(forceinline=True)
def _scaled(sums, t, scale, least):  # type: ignore[no-untyped-def]
    """Multiply sums[t] (W,) by the scale; -> the least positive sum seen in each lane, those of `least` included."""
    W = sums.shape[1]
    for place in range(t * W, t * W + W, WIDTH):
        sum_ = load(sums, place)
        if scale != 1.0:
            sum_ *= scale
            store(sums, place, sum_)
        positive = where_above(sum_, 0.0, sum_, np.inf)
        least = where_above(least, positive, positive, least)
    return least


@kernel_part
def _backwards(own, steps, back, L, length, before, after, scales, nodes, pairs):  # type: ignore[no-untyped-def]
    """Fill nodes (T, L) and pairs (T or 1 or 0, L, L) with probabilities; no where a sum is too small.

    p(j) = before(j) after(j) over the sum of such products; p(i, j) = before(i) step(i, j) own(j) after(j) over the
    same sum times what the forward sums were scaled by. What follows each label replaces `own`.
    """
    least, W = spread(np.inf), own.shape[1]
    for j in range(L):  # beyond it is 0
        after[0, j] = 1.0
    for t in range(length - 1, -1, -1):
        sums = spread(0.0)
        for j in range(0, W, WIDTH):
            sums += load(before, t * W + j) * load(after, j)
            store(own, t * W + j, load(own, t * W + j) * load(after, j))
        share = 1.0 / sum_of(sums)
        for j in range(0, W, WIDTH):
            store_some(nodes, t * L + j, L - j, load(before, t * W + j) * load(after, j) * share)
        if t == 0:
            break
        if len(back):
            total = _follow_one_matrix(own, t, back, L, after)
            for j in range(0, W, WIDTH):  # the share first: so nothing overflows
                store(own, t * W + j, load(own, t * W + j) * share * scales[t])
        else:
            total = _follow(own, t, steps, L, after, before, share, scales[t], pairs)
        least = _scaled(after, 0, 1.0 if LOW < total < HIGH else 1.0 / total, least)
    if len(back) and len(pairs):
        if length > 1:
            _fill_pairs(before, own, steps, length, pairs)
        else:
            pairs[:] = 0.0  # and steps, which may be NaN, are not read
    return -largest(0.0 - least) >= SMALLEST


@kernel_part(forceinline=True)
def _follow_one_matrix(own, t, back, L, after):  # type: ignore[no-untyped-def]
    """Fill after (1, W) with the sums over what follows labels of token t - 1; -> their sum. back is transposed."""
    sums, W = spread(0.0), own.shape[1]
    for j in range(0, W, WIDTH):
        sum_ = _product(own, t * W, back, j, L)
        store(after, j, sum_)
        sums += sum_
    return sum_of(sums)


@kernel(forceinline=True)
def _follow(own, t, steps, L, after, before, share, scale, pairs):  # type: ignore[no-untyped-def]
    """The same with edges of each token, and fill its pairs (T, L, L) unless there are none."""
    total, W = 0.0, own.shape[1]
    for i in range(t * L, t * L + L):
        sums, left = spread(0.0), before[t - 1, i - t * L] * scale
        for j in range(0, W, WIDTH):
            pair = load(steps, i * W + j) * load(own, t * W + j)
            sums += pair
            if len(pairs):
                store_some(pairs, i * L + j, L - j, pair * share * left)
        after[0, i - t * L] = sum_of(sums)
        total += after[0, i - t * L]
    return total


@kernel_part
def _fill_pairs(before, own, steps, length, pairs):  # type: ignore[no-untyped-def]
    """Fill pairs (1, L, L) with sums over tokens of before(i) step(i, j) own(j), four labels i at a time."""
    L, W = pairs.shape[1], own.shape[1]
    for i in range(0, L, 4):
        for j in range(0, L, WIDTH):
            a = b = c = d = spread(0.0)
            for t in range(1, length):
                left, right = (t - 1) * W + i, load(own, t * W + j)
                a += load_one(before, left) * right
                b += load_one(before, left + 1) * right
                c += load_one(before, left + 2) * right
                d += load_one(before, left + 3) * right
            for k, sums in enumerate((a, b, c, d)):
                if i + k < L:
                    store_some(pairs, (i + k) * L + j, L - j, sums * load(steps, (i + k) * W + j))
