"""Searches for segments and sums over segmentations, sequence by sequence; the k best and samples as in the reference.

Memory is O(T C) besides the scores and results. Sums are in double precision.
"""

import numpy as np
import torch
from torch import Tensor

from structperc.errors import InvalidScoreError
from structperc.kernels.jit import kernel, subkernel
from structperc.ops.cpu.checks import check_lengths, length_out_of_range
from structperc.ops.cpu.threads import run_in_threads
from structperc.ops.reference import semi_markov as reference


def semi_markov_viterbi(token: Tensor, segment: Tensor, pair: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """Implement `structperc.ops.semi_markov_viterbi`."""
    (B, T, C), D = token.shape, segment.shape[2]
    scores, labels = token.new_empty(B), lengths.new_empty(B, T, dtype=torch.int64)
    work = 8 * T * C * (D + C)
    if run_in_threads(_search, B, work, token, segment, pair, lengths, scores, labels):
        _check(token, segment, pair, lengths)
    return scores, labels


def semi_markov_kbest(
    token: Tensor, segment: Tensor, pair: Tensor, lengths: Tensor, k: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Implement `structperc.ops.semi_markov_kbest`."""
    check_lengths(lengths, token.shape[1])
    labels, scores, valid = reference.semi_markov_kbest(token, segment, pair, lengths, k)
    if scores.isnan().any():
        _check(token, segment, pair, lengths)
    return labels, scores, valid


def semi_markov_best(token: Tensor, segment: Tensor, pair: Tensor, lengths: Tensor) -> Tensor:
    """Implement `structperc.ops.semi_markov_best`."""
    check_lengths(lengths, token.shape[1])
    return reference.semi_markov_best(token, segment, pair, lengths)


def semi_markov_sample(token: Tensor, segment: Tensor, pair: Tensor, lengths: Tensor, noise: Tensor) -> Tensor:
    """Implement `structperc.ops.semi_markov_sample`."""
    _check(token, segment, pair, lengths)
    return reference.semi_markov_sample(token, segment, pair, lengths, noise)


def semi_markov_sums(token: Tensor, segment: Tensor, pair: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Implement `structperc.ops.semi_markov_sums`."""
    (B, T, C), D = token.shape, segment.shape[2]
    totals, segments, pairs = token.new_zeros(B), token.new_zeros(B, T, D, C), token.new_zeros(B, C, C)
    work = 64 * T * C * (D + C)
    if run_in_threads(_both_passes, B, work, token, segment, pair, lengths, totals, segments, pairs):
        check_lengths(lengths, T)
    return totals, segments, pairs


def _check(token: Tensor, segment: Tensor, pair: Tensor, lengths: Tensor) -> None:
    check_lengths(lengths, token.shape[1])
    invalid = reference.prepare(token, segment, pair, lengths).invalid.nonzero()
    if len(invalid):
        where = f"sequence {int(invalid[0])} of {len(lengths)}"
        raise InvalidScoreError(
            f"scores: +inf or NaN in {where}; scores must be finite, or -inf for what is impossible"
        )


@subkernel
def _has_invalid(token, segment, pair, length):
    T, D, C = len(segment), segment.shape[1], token.shape[1]
    for t in range(length):
        for c in range(C):
            if not token[t, c] < np.inf:
                return True
            for d in range(min(D, length - t)):
                if not segment[t if T > 1 else 0, d, c] < np.inf:
                    return True
    if length > 1:
        for value in pair.flat:
            if not value < np.inf:
                return True
    return False


@subkernel
def _levels(token, length, own):
    """Fill own (T, C) with the scores less the highest of each token, and return the sum of the highest."""
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


@kernel
def _search(start, stop, token, segment, pair, lengths, scores, labels):
    _, T, C = token.shape
    D = segment.shape[2]
    own, after, begun = np.empty((T, C)), np.empty((T + 1, C)), np.empty((T + 1, C))
    size, following = np.empty((T, C), np.int64), np.empty((T + 1, C), np.int64)
    for b in range(start, stop):
        length, given = lengths[b], segment[0 if len(segment) == 1 else b]
        if length_out_of_range(length, T) or _has_invalid(token[b], given, pair, length):
            return True
        _levels(token[b], length, own)
        labels[b] = 0
        scores[b] = 0.0
        if length == 0:
            continue
        after[length] = 0.0
        for t in range(length - 1, -1, -1):
            at = t if len(given) > 1 else 0
            for c in range(C):
                run, best, chosen = 0.0, -np.inf, 0
                for d in range(min(D, length - t)):
                    run += own[t + d, c]
                    score = (run + given[at, d, c]) + after[t + d + 1, c]
                    if score > best:
                        best, chosen = score, d + 1
                begun[t, c], size[t, c] = best, chosen
            for before in range(C):
                best, chosen = -np.inf, 0
                for c in range(C):
                    score = pair[before, c] + begun[t, c]
                    if score > best:
                        best, chosen = score, c
                after[t, before], following[t, before] = best, chosen
        c = begun[0].argmax()
        if begun[0, c] == -np.inf:
            scores[b] = -np.inf
            continue
        t, total, steps = 0, 0.0, 0.0
        while t < length:
            d = size[t, c]
            for i in range(t, t + d):
                labels[b, i] = C + c
                total += token[b, i, c]
            labels[b, t] = c
            steps += given[t if len(given) > 1 else 0, d - 1, c]
            t += d
            if t < length:
                steps += pair[c, following[t, c]]
                c = following[t, c]
        scores[b] = total + steps
    return False


@kernel
def _both_passes(start, stop, token, segment, pair, lengths, totals, segments, pairs):
    _, T, C = token.shape
    D = segment.shape[2]
    own, terms = np.empty((T, C)), np.empty(max(D, C))
    after, begun = np.empty((T + 1, C)), np.empty((T + 1, C))
    before, ended = np.empty((T + 1, C)), np.empty((T + 1, C))
    for b in range(start, stop):
        length, given = lengths[b], segment[0 if len(segment) == 1 else b]
        if length_out_of_range(length, T):
            return True
        if length == 0:
            continue
        if _has_invalid(token[b], given, pair, length):
            totals[b], pairs[b] = np.nan, np.nan
            for t in range(length):
                for d in range(min(D, length - t)):
                    for c in range(C):
                        if given[t if len(given) > 1 else 0, d, c] != -np.inf:
                            segments[b, t, d, c] = np.nan
            continue
        level = _levels(token[b], length, own)
        after[length] = 0.0
        for t in range(length - 1, -1, -1):
            at = t if len(given) > 1 else 0
            for c in range(C):
                run, n = 0.0, min(D, length - t)
                for d in range(n):
                    run += own[t + d, c]
                    terms[d] = (run + given[at, d, c]) + after[t + d + 1, c]
                begun[t, c] = _log_sum(terms, n)
            for i in range(C):
                for c in range(C):
                    terms[c] = pair[i, c] + begun[t, c]
                after[t, i] = _log_sum(terms, C)
        for c in range(C):
            terms[c] = begun[0, c]
        total = _log_sum(terms, C)
        totals[b] = total + level
        if total == -np.inf:
            continue
        before[0] = 0.0
        for t in range(length):
            at = t if len(given) > 1 else 0
            if t > 0:
                for c in range(C):
                    ended[t, c] = _log_sum_of_ending(own, given, before, t, c, terms)
                for c in range(C):
                    for i in range(C):
                        terms[i] = ended[t, i] + pair[i, c]
                    before[t, c] = _log_sum(terms, C)
                    for i in range(C):
                        joined = terms[i] + begun[t, c]
                        if joined > -np.inf:
                            pairs[b, i, c] += np.exp(min(joined - total, 0.0))
            for c in range(C):
                run = before[t, c]
                if run == -np.inf:
                    continue
                whole = 0.0
                for d in range(min(D, length - t)):
                    whole += own[t + d, c]
                    score = run + ((whole + given[at, d, c]) + after[t + d + 1, c])
                    if score > -np.inf:
                        segments[b, t, d, c] = np.exp(min(score - total, 0.0))
    return False


@subkernel
def _log_sum_of_ending(own, given, before, t, c, terms):
    """Return the log-sum over all segments of type c that end before token t, with all before them."""
    n = min(given.shape[1], t)
    for d in range(n):
        first, run = t - d - 1, 0.0
        for i in range(first, t):
            run += own[i, c]
        terms[d] = before[first, c] + (run + given[first if len(given) > 1 else 0, d, c])
    return _log_sum(terms, n)


@subkernel
def _log_sum(terms, n):
    highest = -np.inf
    for i in range(n):
        highest = max(highest, terms[i])
    if highest == -np.inf:
        return -np.inf
    total = 0.0
    for i in range(n):
        total += np.exp(terms[i] - highest)
    return highest + np.log(total)
