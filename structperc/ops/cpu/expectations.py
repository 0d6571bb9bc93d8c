"""Forward-backward, compiled: products of probabilities scaled token by token (Rabiner 1989, sections III.A and V.A).

A step is a matrix product and needs no exponential but those of the scores. Such products may underflow where
logarithms do not, and then lose labellings: one that is hopeless up to some token may be the only one that leads on
from there. So they are used only where nothing positive can have vanished. All factors are at most 1 and exactly 0
where impossible. Positive ones are at least e^-150 by a first check (scores of tokens and of pairs), the sums that they
are multiplied with at least 1e-150 by a second one. A product of one sum and two factors then is at least
1e-150 * e^-300 > 1e-281, far above the smallest float64 of full precision, 2e-308: the first sum to fall below 1e-150
is itself still right, positive, and seen. What sums to 0 is impossible. Where a check fails, the sequence is summed by
its logarithms (`log_sums`), at the price of L^2 exponentials a token. All sums are float64.
"""

import numpy as np
import torch
from torch import Tensor

from structperc.ops.cpu.checks import check_lengths, first_infinite
from structperc.ops.cpu.compiled import ORDERED, arrays, kernel, over_sequences
from structperc.ops.cpu.exponential import exp
from structperc.ops.cpu.log_sums import expect_by_logs

SPREAD = -150.0  # nats from the highest to the lowest possible score of a token, or of the edges into it
SMALLEST = 1e-150  # of the sums, scaled
SUMS = {"reassoc", "contract", "nsz"}  # sums of products may be taken in any order


def expectations(unary: Tensor, edge: Tensor, lengths: Tensor, with_pairs: bool) -> tuple[Tensor, Tensor, Tensor]:
    """The contract is that of `structperc.ops.expectations`."""
    check_lengths(lengths, unary.shape[1])
    B, T, L = unary.shape
    each = 1 if edge.shape[1] == 1 else T
    totals, nodes = unary.new_zeros(B), unary.new_zeros(B, T, L)
    pairs = unary.new_zeros(B if with_pairs else 1, each if with_pairs else 0, L, L)
    over_sequences(_expect, B, 4 * T * L * L, *arrays(unary, edge, lengths, totals, nodes, pairs))
    if first_infinite(unary, edge, lengths) >= 0:  # of a training that has diverged, as it is soon told
        totals.fill_(torch.nan)
    return totals, nodes, pairs if with_pairs else pairs.view(0)


@kernel
def _expect(first, step, unary, edge, lengths, totals, nodes, pairs):  # type: ignore[no-untyped-def]
    _, T, L = unary.shape
    own, before, scales, levels = np.empty((T, L)), np.empty((T, L)), np.empty(T), np.empty(T)
    steps, summed = np.empty(edge.shape[1:]), np.empty((L, L))
    for b in range(first, len(unary), step):
        length = lengths[b]
        if length == 0:
            continue
        edges, into = edge[0 if len(edge) == 1 else b], pairs[0 if len(pairs) == 1 else b]
        small = _exponentials(unary[b], edges, length, own, steps, levels)
        total = _forwards(own, steps, length, before, scales) if small else np.nan
        if total == -np.inf:
            totals[b] = total
        elif total == total and _backwards(own, steps, length, before, scales, nodes[b], into, summed):
            totals[b] = total + levels[:length].sum()
        else:
            nodes[b], into[:] = 0, 0
            totals[b] = expect_by_logs(unary[b], edges, length, nodes[b], into)


@kernel(fastmath=ORDERED)
def _exponentials(unary, edge, length, own, steps, levels):  # type: ignore[no-untyped-def]
    """Fill own (T, L), steps (T or 1, L, L) with exp(score - highest), levels (T,) with the highest scores, or say no.

    Into the level of a token goes that of the edges into it.
    """
    L = unary.shape[1]
    stationary, beyond = len(edge) == 1, 0  # counted in bits, as a compiler does several at once
    for t in range(length):
        highest = unary[t, 0]
        for j in range(1, L):
            highest = unary[t, j] if unary[t, j] > highest else highest
        levels[t] = highest if highest > -np.inf else 0.0
        for j in range(L):
            score = float(unary[t, j]) - levels[t]
            own[t, j] = exp(score)
            beyond |= int((score < SPREAD) & (score > -np.inf))
    level = 0.0
    for t in range(1, length):
        if t == 1 or not stationary:
            e = 0 if stationary else t
            highest = edge[e, 0, 0]
            for i in range(L):
                for j in range(L):
                    highest = edge[e, i, j] if edge[e, i, j] > highest else highest
            level = highest if highest > -np.inf else 0.0
            for i in range(L):
                for j in range(L):
                    score = float(edge[e, i, j]) - level
                    steps[e, i, j] = exp(score)
                    beyond |= int((score < SPREAD) & (score > -np.inf))
        levels[t] += level
    return beyond == 0


@kernel(fastmath=SUMS)
def _forwards(own, steps, length, before, scales):  # type: ignore[no-untyped-def]
    """Fill before (T, L): sums over the labellings up to each label, scaled to 1 in all, and scales (T,).

    -> the logarithm of the scales; -inf where nothing is possible, NaN where a sum is too small. Labels before are
    taken four at a time, so that sums are read and written a quarter as often.
    """
    L = own.shape[1]
    total, product = 0.0, 1.0
    for t in range(length):
        e = 0 if len(steps) == 1 else t
        for j in range(L):
            before[t, j] = 0.0 if t else 1.0
        for i in range(0, L - 3 if t else 0, 4):
            a, b, c, d = before[t - 1, i], before[t - 1, i + 1], before[t - 1, i + 2], before[t - 1, i + 3]
            for j in range(L):
                pair = a * steps[e, i, j] + b * steps[e, i + 1, j]
                before[t, j] += pair + (c * steps[e, i + 2, j] + d * steps[e, i + 3, j])
        for i in range(L - L % 4 if t else L, L):
            for j in range(L):
                before[t, j] += before[t - 1, i] * steps[e, i, j]
        scale = 0.0
        for j in range(L):
            before[t, j] *= own[t, j]
            scale += before[t, j]
        if scale == 0.0:
            return -np.inf
        if not _scaled(before, t, scale):
            return np.nan
        scales[t] = scale
        product *= scale
        if product < SMALLEST or product > 1 / SMALLEST:  # a logarithm now and then: it costs as much as a row
            total, product = total + np.log(product), 1.0
    return total + np.log(product)


@kernel(fastmath=SUMS)
def _backwards(own, steps, length, before, scales, nodes, pairs, summed):  # type: ignore[no-untyped-def]
    """Fill nodes (T, L) and pairs (T or 1 or 0, L, L) with probabilities; no where a sum is too small.

    p(i, j) = before(i) step(i, j) own(j) after(j) over the sum of such products: the scale of the forward sums times
    the sum of all before(j) after(j). With one matrix for all tokens it comes in after the sum over them, `summed`.
    What follows each label replaces `own`.
    """
    L = own.shape[1]
    stationary, each = len(steps) == 1, len(pairs) > 0
    after, summed[:] = np.ones((1, L)), 0.0
    for t in range(length - 1, -1, -1):
        e, total = 0 if stationary else t, 0.0
        for j in range(L):
            total += before[t, j] * after[0, j]
        share = 1.0 / total
        for j in range(L):
            nodes[t, j] = before[t, j] * after[0, j] * share
        if t == 0:
            break
        for j in range(L):
            own[t, j] *= after[0, j] * share  # at most 1 / before(j): no factor of a pair overflows
        if each:
            for i in range(L):
                left = before[t - 1, i] / scales[t]
                if stationary:
                    for j in range(L):
                        summed[i, j] += left * own[t, j]
                else:
                    for j in range(L):
                        pairs[t, i, j] = left * steps[e, i, j] * own[t, j]
        scale = 0.0
        for i in range(L):
            following = 0.0
            for j in range(L):
                following += steps[e, i, j] * own[t, j]
            after[0, i] = following
            scale += following
        if not _scaled(after, 0, scale):
            return False
    if each and stationary and length > 1:
        for i in range(L):
            for j in range(L):
                pairs[0, i, j] = summed[i, j] * steps[0, i, j]
    return True


@kernel(fastmath={"nsz"}, forceinline=True)
def _scaled(sums, t, scale):  # type: ignore[no-untyped-def]
    """Divide sums[t] (L,) by their scale and say whether those that are positive are large enough."""
    factor, beyond = 1.0 / scale, 0
    for j in range(sums.shape[1]):
        sums[t, j] *= factor
        beyond |= int((sums[t, j] > 0.0) & (sums[t, j] < SMALLEST))
    return beyond == 0
