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
from structperc.ops.cpu.compiled import arrays, kernel, over_sequences
from structperc.ops.cpu.exponential import exp
from structperc.ops.cpu.log_sums import expect_by_logs, largest

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
    over_sequences(_expect, 4 * B * T * L * L, *arrays(unary, edge, lengths, totals, nodes, pairs))
    if first_infinite(unary, edge, lengths) >= 0:  # of a training that has diverged, as it is soon told
        totals.fill_(torch.nan)
    return totals, nodes, pairs if with_pairs else pairs.view(0)


@kernel
def _expect(first, step, unary, edge, lengths, totals, nodes, pairs):  # type: ignore[no-untyped-def]
    _, T, L = unary.shape
    own, before, arriving, levels = np.empty((T, L)), np.empty((T, L)), np.empty((T, L)), np.empty(T)
    steps, summed = np.empty(edge.shape[1:]), np.empty((L, L))
    for b in range(first, len(unary), step):
        length = lengths[b]
        if length == 0:
            continue
        edges, into = edge[0 if len(edge) == 1 else b], pairs[0 if len(pairs) == 1 else b]
        small = _exponentials(unary[b], edges, length, own, steps, levels)
        total = _forwards(own, steps, length, before, arriving) if small else np.nan
        if total == -np.inf:
            totals[b] = total
        elif total == total and _backwards(own, steps, length, before, arriving, nodes[b], into, summed):
            totals[b] = total + levels[:length].sum()
        else:
            nodes[b], into[:] = 0, 0
            totals[b] = expect_by_logs(unary[b], edges, length, nodes[b], into)


@kernel
def _exponentials(unary, edge, length, own, steps, levels):  # type: ignore[no-untyped-def]
    """Fill own (T, L), steps (T or 1, L, L) with exp(score - highest), levels (T,) with the highest scores, or say no.

    Into the level of a token goes that of the edges into it.
    """
    _, L = unary.shape
    stationary = len(edge) == 1
    for t in range(length):
        levels[t] = 0.0
        highest = largest(unary[t])
        if highest > -np.inf:
            levels[t] = highest
        if not _exponential(unary[t], levels[t], own[t]):
            return False
    level = 0.0
    for t in range(1, length):
        if t == 1 or not stationary:
            at = 0 if stationary else t
            level = -np.inf
            for i in range(L):
                level = max(level, float(largest(edge[at, i])))
            if level == -np.inf:
                level = 0.0
            for i in range(L):
                if not _exponential(edge[at, i], level, steps[at, i]):
                    return False
        levels[t] += level
    return True


@kernel(fastmath={"nnan", "nsz"})
def _exponential(scores, level, found):  # type: ignore[no-untyped-def]
    """Fill found (L,) with exp(scores - level) and say whether possible ones are within the spread."""
    beyond = 0  # counted in bits, as a compiler does several at once
    for j in range(len(scores)):
        score = float(scores[j]) - level
        found[j] = exp(score)
        beyond |= int((score < SPREAD) & (score > -np.inf))
    return beyond == 0


@kernel(fastmath=SUMS)
def _forwards(own, steps, length, before, arriving):  # type: ignore[no-untyped-def]
    """Fill arriving, before (T, L): sums over the labellings up to each label, without and with its own factor.

    The latter are scaled to 1 in all. -> the logarithm of the scales; -inf where nothing is possible, NaN where a sum
    is too small.
    """
    _, L = own.shape
    total = 0.0
    for t in range(length):
        if t == 0:
            for j in range(L):
                arriving[0, j] = 1.0
        else:
            _product(before[t - 1], steps[0 if len(steps) == 1 else t], arriving[t])
        scale = 0.0
        for j in range(L):
            before[t, j] = arriving[t, j] * own[t, j]
            scale += before[t, j]
        if scale == 0.0:
            return -np.inf
        if not _scaled(before[t], scale):
            return np.nan
        total += np.log(scale)
    return total


@kernel(fastmath=SUMS)
def _backwards(own, steps, length, before, arriving, nodes, pairs, summed):  # type: ignore[no-untyped-def]
    """Fill nodes (T, L) and pairs (T or 1 or 0, L, L) with probabilities; no where a sum is too small.

    p(i, j) = before(i) step(i, j) / arriving(j) * p(j): the label before given this one, times this one. With one
    matrix for all tokens it comes in after the sum over them, `summed`. What follows each label replaces `own`.
    """
    _, L = own.shape
    stationary, each = len(steps) == 1, len(pairs) > 0
    after, summed[:] = np.ones(L), 0.0
    for t in range(length - 1, -1, -1):
        total = 0.0
        for j in range(L):
            total += before[t, j] * after[j]
        for j in range(L):
            nodes[t, j] = before[t, j] * after[j] / total
        if t == 0:
            break
        step = steps[0 if stationary else t]
        if each:
            for j in range(L):
                arriving[t, j] = nodes[t, j] / arriving[t, j] if arriving[t, j] > 0 else 0.0
            for i in range(L):
                left = before[t - 1, i]
                if stationary:
                    for j in range(L):
                        summed[i, j] += left * arriving[t, j]
                else:
                    for j in range(L):
                        pairs[t, i, j] = left * step[i, j] * arriving[t, j]
        for j in range(L):
            own[t, j] *= after[j]
        scale = 0.0
        for i in range(L):
            following = 0.0
            for j in range(L):
                following += step[i, j] * own[t, j]
            after[i] = following
            scale += following
        if not _scaled(after, scale):
            return False
    if each and stationary and length > 1:
        for i in range(L):
            for j in range(L):
                pairs[0, i, j] = summed[i, j] * steps[0, i, j]
    return True


@kernel(fastmath=SUMS)
def _product(row, matrix, found):  # type: ignore[no-untyped-def]
    """Fill found (L,) with row (L,) times matrix (L, L)."""
    L = len(row)
    for j in range(L):
        found[j] = 0.0
    for i in range(L):
        factor = row[i]
        for j in range(L):
            found[j] += factor * matrix[i, j]


@kernel(fastmath={"nsz"})
def _scaled(sums, scale):  # type: ignore[no-untyped-def]
    """Divide sums (L,) by their scale and say whether those that are positive are large enough."""
    factor, beyond = 1.0 / scale, 0
    for j in range(len(sums)):
        sums[j] *= factor
        beyond |= int((sums[j] > 0.0) & (sums[j] < SMALLEST))
    return beyond == 0
