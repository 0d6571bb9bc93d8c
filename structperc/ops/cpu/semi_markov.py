"""Searches for segments and sums over segmentations, sequence by sequence; samples as in the reference.

Memory for one sequence is O(T C (D + C)). Sums are in double precision.
"""

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from structperc.errors import InvalidScoreError
from structperc.kernels.forward_backward import log_sum
from structperc.kernels.jit import kernel, subkernel
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
from structperc.kernels.viterbi import any_invalid
from structperc.ops.cpu.checks import check_lengths, length_out_of_range
from structperc.ops.cpu.kbest import keep_best
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
    (B, T, C), D = token.shape, segment.shape[2]
    labels, scores = lengths.new_empty(B, k, T, dtype=torch.int64), token.new_empty(B, k)
    valid, work = torch.empty(B, k, dtype=torch.bool), 8 * T * C * (D + C + k)
    if run_in_threads(_list, B, work, token, segment, pair, lengths, labels, scores, valid):
        _check(token, segment, pair, lengths)
    return labels, scores, valid


def semi_markov_best(token: Tensor, segment: Tensor, pair: Tensor, lengths: Tensor) -> Tensor:
    """Implement `structperc.ops.semi_markov_best`."""
    (B, T, C), D = token.shape, segment.shape[2]
    best = token.new_empty(B, T, D, C)
    if run_in_threads(_search_with_each, B, 16 * T * C * (D + C), token, segment, pair, lengths, best):
        check_lengths(lengths, T)
    return best


def semi_markov_sample(token: Tensor, segment: Tensor, pair: Tensor, lengths: Tensor, noise: Tensor) -> Tensor:
    """Implement `structperc.ops.semi_markov_sample`."""
    _check(token, segment, pair, lengths)
    return reference.semi_markov_sample(token, segment, pair, lengths, noise)


def semi_markov_sums(
    token: Tensor, segment: Tensor, pair: Tensor, lengths: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Implement `structperc.ops.semi_markov_sums`."""
    (B, T, C), D = token.shape, segment.shape[2]
    totals, segments, tokens = token.new_empty(B), token.new_empty(B, T, D, C), token.new_empty(B, T, C)
    pairs, work = token.new_empty(B, C, C), 16 * T * C * (D + C)
    if run_in_threads(_both_passes, B, work, token, segment, pair, lengths, totals, segments, tokens, pairs):
        check_lengths(lengths, T)
    return totals, segments, tokens, pairs


def _check(token: Tensor, segment: Tensor, pair: Tensor, lengths: Tensor) -> None:
    check_lengths(lengths, token.shape[1])
    invalid = reference.prepare(token, segment, pair, lengths).invalid.nonzero()
    if len(invalid):
        where = f"sequence {int(invalid[0])} of {len(lengths)}"
        raise InvalidScoreError(
            f"scores: +inf or NaN in {where}; scores must be finite, or -inf for what is impossible"
        )


@subkernel
def _has_invalid(b, token, segment, pair, length):
    """Return whether +inf or NaN is among the scores of sequence b."""
    (_, T, C), (_, starts, D, _) = token.shape, segment.shape
    if any_invalid(token, b * T * C, (b * T + length) * C) or (length > 1 and any_invalid(pair, 0, C * C)):
        return True
    first, row = (b if len(segment) > 1 else 0) * starts * D * C, D * C
    if starts < length:
        return any_invalid(segment, first, first + min(D, length) * C)
    whole = max(length - D + 1, 0)  # tokens at which segments of all lengths fit
    for t in range(whole, length):
        if any_invalid(segment, first + t * row, first + t * row + (length - t) * C):
            return True
    return any_invalid(segment, first, first + whole * row)


@subkernel
def _mark_invalid(length, given, found):
    """Make all entries of found (T, D, C) NaN whose segments are not impossible by themselves."""
    _, D, C = found.shape
    for t in range(length):
        for d in range(min(D, length - t)):
            for c in range(C):
                if given[t if len(given) > 1 else 0, d, c] != -np.inf:
                    found[t, d, c] = np.nan


@subkernel
def _levels(token, length, own):
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
def _best_of(T, pair):
    """Return tables for sequences of up to T tokens."""
    C, other = len(pair), np.empty(0)
    own, top, after = padded_array(T, C, other), padded_array(T, C, other), padded_array(T + 1, C, other)
    back = padded_array(C, C, other)
    back[:, :C] = pair.T
    return Best(own, top, after, back)


@kernel
def _search(start, stop, token, segment, pair, lengths, scores, labels):
    T = token.shape[1]
    tables = _best_of(T, pair)
    for b in range(start, stop):
        length, given = lengths[b], segment[0 if len(segment) == 1 else b]
        if length_out_of_range(length, T) or _has_invalid(b, token, segment, pair, length):
            return True
        labels[b], scores[b] = 0, 0.0
        if length == 0:
            continue
        _levels(token[b], length, tables.own)
        _search_backwards(length, given, tables)
        if _trace(length, given, pair, tables, labels[b]):
            scores[b] = _score(token[b], given, pair, length, labels[b])
        else:
            scores[b] = -np.inf
    return False


@subkernel
def _search_backwards(length, given, tables):
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


@subkernel
def _trace(length, given, pair, tables, labels):
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


@subkernel
def _score(token, given, pair, length, labels):
    """Return the score of a possible segmentation."""
    C, start, tokens, segments, pairs = token.shape[1], 0, 0.0, 0.0, 0.0
    for t in range(length):
        kind = labels[t] % C
        tokens += token[t, kind]
        if labels[t] < C:
            start = t
            if t > 0:
                pairs += pair[labels[t - 1] % C, kind]
        if t + 1 == length or labels[t + 1] < C:
            segments += given[start if len(given) > 1 else 0, t - start, kind]
    return tokens + segments + pairs


@kernel
def _search_with_each(start, stop, token, segment, pair, lengths, best):
    (_, T, C), D = token.shape, segment.shape[2]
    tables, ended = _best_of(T, pair), np.empty((T + 1, C))
    for b in range(start, stop):
        length, given = lengths[b], segment[0 if len(segment) == 1 else b]
        if length_out_of_range(length, T):
            return True
        best[b], ended[:] = -np.inf, -np.inf
        if _has_invalid(b, token, segment, pair, length):
            _mark_invalid(length, given, best[b])
            continue
        level = _levels(token[b], length, tables.own)
        _search_backwards(length, given, tables)
        for t in range(length):
            for c in range(C):
                before = 0.0 if t == 0 else -np.inf
                for i in range(C if t else 0):
                    before = max(before, ended[t, i] + pair[i, c])
                run = 0.0
                for d in range(min(D, length - t)):
                    run += tables.own[t + d, c]
                    whole = run + given[t if len(given) > 1 else 0, d, c]
                    ended[t + d + 1, c] = max(ended[t + d + 1, c], before + whole)
                    best[b, t, d, c] = (before + (whole + tables.after[t + d + 1, c])) + level
    return False


class Lists(NamedTuple):
    """Prefixes of one sequence, in lexicographic order at each token."""

    origin: Any  # (T, k (C + 1)) the prefix that each one extends
    label: Any  # (T, k (C + 1))
    start: Any  # (2, k) first token of the open segment of each prefix, of the last token and of this one in turn
    losses: Any  # (2, k (C + 1)) how much worse the best completion is than the best segmentation
    copies: Any  # (k (C + 1),)


@kernel
def _list(start, stop, token, segment, pair, lengths, labels, scores, valid):
    (_, T, C), D, k = token.shape, segment.shape[2], labels.shape[1]
    tables, many = _best_of(T, pair), k * (C + 1)
    whole, at_least = np.empty((T, D, C)), np.empty((T, D + 1, C))
    lists = Lists(
        np.empty((T, many), np.int64),
        np.empty((T, many), np.int64),
        np.empty((2, k), np.int64),
        np.empty((2, many)),
        np.empty(many),
    )
    for b in range(start, stop):
        length, given = lengths[b], segment[0 if len(segment) == 1 else b]
        if length_out_of_range(length, T) or _has_invalid(b, token, segment, pair, length):
            return True
        labels[b], scores[b], valid[b] = 0, -np.inf, False
        _levels(token[b], length, tables.own)
        _search_backwards(length, given, tables)
        _fill_sizes(length, given, tables, whole, at_least)
        n = _extend_all(length, k, tables, whole, at_least, lists)
        _write(n, length, token[b], given, pair, lists, labels[b], scores[b], valid[b])
    return False


@subkernel
def _fill_sizes(length, given, tables, whole, at_least):
    """Fill whole (T, D, C), scores of segments, and at_least (T, D + 1, C), the best of all from t on by least size."""
    (_, D, C), own, after = whole.shape, tables.own, tables.after
    for t in range(length):
        n, at = min(D, length - t), t if len(given) > 1 else 0
        at_least[t, n] = -np.inf
        for c in range(C):
            run = 0.0
            for d in range(n):
                run += own[t + d, c]
                whole[t, d, c] = run + given[at, d, c]
            for d in range(n - 1, -1, -1):
                at_least[t, d, c] = max(whole[t, d, c] + after[t + d + 1, c], at_least[t, d + 1, c])


@subkernel
def _extend_all(length, k, tables, whole, at_least, lists):
    """Extend prefixes token by token, keep those of the k smallest losses, and return their number."""
    C, (origins, new, starts, losses, copies) = whole.shape[2], lists
    n, top, back = 1, tables.top, tables.back
    losses[1, 0] = 0.0
    for t in range(length):
        old, m, here = losses[1 - t % 2], 0, losses[t % 2]
        for p in range(n):
            first = starts[1 - t % 2, p] if t else 0
            before = new[t - 1, p] % C if t else 0
            size = t - first
            best = at_least[first, size - 1, before] if t else top[0, :C].max()
            for j in range(C + 1):
                if t == 0:
                    score = top[0, j] if j < C else -np.inf
                elif j < C:
                    score = whole[first, size - 1, before] + (back[j, before] + top[t, j])
                else:
                    score = at_least[first, size, before]
                if score > -np.inf:
                    here[m] = old[p] + max(best - score, 0.0)
                    origins[t, m], new[t, m] = p, j if j < C else C + before
                    m += 1
        n, _ = keep_best(m, k, np.inf, here, copies, origins[t], new[t])
        for p in range(n):
            starts[t % 2, p] = t if new[t, p] < C else starts[1 - t % 2, origins[t, p]]
    return n


@subkernel
def _write(n, length, token, given, pair, lists, labels, scores, valid):
    """Write n segmentations, the best first, equal scores in lexicographic order."""
    found = np.empty((n, len(token)), np.int64)
    totals = np.empty(n, scores.dtype)  # compared in the precision of the lattice
    for p in range(n):
        slot = p
        for t in range(length - 1, -1, -1):
            found[p, t] = lists.label[t, slot]
            slot = lists.origin[t, slot]
        totals[p] = _score(token, given, pair, length, found[p])
    order = np.argsort(-totals, kind="mergesort")
    for r in range(n):
        labels[r, :length], scores[r], valid[r] = found[order[r], :length], totals[order[r]], True


class Choices(NamedTuple):
    """Memory for the conditional probabilities of one sequence, float64, with C padded to W, whole vectors."""

    own: Any  # (T, W) scores of tokens less the highest of each
    sizes: Any  # (T * D, W) weights of the numbers of tokens of a segment, given first token and type, at most 1
    types: Any  # (T * C, W) weights [j, i] of type j of the segment that begins at a token, given type i before it
    top: Any  # (T, W) what the logarithms of `sizes` were reduced by
    size_sums: Any  # (T, W) sums of weights
    size_scales: Any  # (T, W) 1 / sum, 0 where nothing is possible
    type_scales: Any  # (T, W)
    after: Any  # (T + 1, W) log-sums of all from t on, after a segment of a type
    back: Any  # (C, W) scores of pairs [j, i]


class Flows(NamedTuple):
    """Probabilities of one sequence, float64, with C padded to W."""

    begins: Any  # (1, W) of the types of segments that begin at a token
    ended: Any  # (T + 1, W) of the types of segments that end before a token
    tokens: Any  # (T, W) of the types of tokens
    pairs: Any  # (C, W) expected numbers of pairs [j, i]


@kernel
def _both_passes(start, stop, token, segment, pair, lengths, totals, segments, tokens, pairs):
    """Sum from right to left; the choices that this gives are probabilities, multiplied from left to right."""
    (_, T, C), D = token.shape, segment.shape[2]
    other = np.empty(0)
    choices = Choices(
        padded_array(T, C, other),
        padded_array(T * D, C, other),
        padded_array(T * C, C, other),
        padded_array(T, C, other),
        padded_array(T, C, other, 0.0),
        padded_array(T, C, other, 0.0),
        padded_array(T, C, other, 0.0),
        padded_array(T + 1, C, other),
        padded_array(C, C, other),
    )
    flows = Flows(
        padded_array(1, C, other, 0.0),
        padded_array(T + 1, C, other, 0.0),
        padded_array(T, C, other, 0.0),
        padded_array(C, C, other, 0.0),
    )
    choices.back[:, :C] = pair.T
    for b in range(start, stop):
        length, given = lengths[b], segment[0 if len(segment) == 1 else b]
        if length_out_of_range(length, T):
            return True
        totals[b], segments[b], tokens[b], pairs[b] = 0, 0, 0, 0
        if length == 0:
            continue
        if _has_invalid(b, token, segment, pair, length):
            totals[b], tokens[b, :length], pairs[b] = np.nan, np.nan, np.nan
            _mark_invalid(length, given, segments[b])
            continue
        level = _levels(token[b], length, choices.own)
        choices.after[length, :C] = 0.0
        for t in range(length - 1, -1, -1):
            _weigh_sizes(t, min(D, length - t), given, choices)
            if t > 0:
                _weigh_types(t, C, choices)
        total = _first_types(C, choices, flows.begins)
        totals[b] = total + level
        if total > -np.inf:
            _multiply_forwards(length, choices, flows, segments[b], tokens[b])
            pairs[b] = flows.pairs[:, :C].T
    return False


@subkernel(forceinline=True)
def _weigh_sizes(t, n, given, choices):
    """Fill row t of sizes, top, size_sums and size_scales; no exponent is above 0, and positive sums are at least 1."""
    own, sizes, after = choices.own, choices.sizes, choices.after
    (_, D, C), W = given.shape, own.shape[1]
    first, place = (t if len(given) > 1 else 0) * D * C, t * D * W
    for j in range(0, C, WIDTH):
        run, highest = broadcast(0.0), broadcast(-np.inf)
        for d in range(n):
            run += load(own, (t + d) * W + j)
            score = (
                run + cast_like(load_masked(given, first + d * C + j, C - j), own) + load(after, (t + d + 1) * W + j)
            )
            highest = maximum(score, highest)
            store(sizes, place + d * W + j, score)
        level, total = where_greater(highest, -np.inf, highest, 0.0), broadcast(0.0)
        for d in range(n):
            weight = exp(load(sizes, place + d * W + j) - level)
            store(sizes, place + d * W + j, weight)
            total += weight
        store(choices.top, t * W + j, highest)
        store(choices.size_sums, t * W + j, total)
    for c in range(C):
        total = choices.size_sums[t, c]
        choices.size_scales[t, c] = 1.0 / total if total > 0.0 else 0.0


@subkernel(forceinline=True)
def _weigh_types(t, C, choices):
    """Fill row t of types, type_scales and after."""
    top, types, back, after, W = choices.top, choices.types, choices.back, choices.after, choices.own.shape[1]
    for i in range(0, C, WIDTH):
        highest = broadcast(-np.inf)
        for j in range(C):
            highest = maximum(load(back, j * W + i) + load_broadcast(top, t * W + j), highest)
        level, total = where_greater(highest, -np.inf, highest, 0.0), broadcast(0.0)
        for j in range(C):
            weight = exp(load(back, j * W + i) + load_broadcast(top, t * W + j) - level)
            weight *= load_broadcast(choices.size_sums, t * W + j)
            store(types, (t * C + j) * W + i, weight)
            total += weight
        store(after, t * W + i, highest)
        store(choices.type_scales, t * W + i, total)
    for i in range(C):
        total = choices.type_scales[t, i]
        if total > 0.0:
            after[t, i] += np.log(total)
            choices.type_scales[t, i] = 1.0 / total


@subkernel
def _first_types(C, choices, begins):
    """Fill begins with the probabilities of the types of the first segment, and return the log-sum of all scores."""
    for c in range(C):
        begins[0, c] = choices.top[0, c]
        if begins[0, c] > -np.inf:
            begins[0, c] += np.log(choices.size_sums[0, c])
    total = log_sum(begins[0, :C])
    for c in range(C):
        begins[0, c] = exp(begins[0, c] - total) if total > -np.inf else 0.0
    return total


@subkernel
def _multiply_forwards(length, choices, flows, segments, tokens):
    """Fill segments (T, D, C), tokens (T, C) and the pairs of `flows` from the choices and the first types."""
    (_, D, C), W, (begins, ended, covered, pairs) = segments.shape, choices.own.shape[1], flows
    ended[:], covered[:], pairs[:] = 0.0, 0.0, 0.0
    for t in range(length):
        if t > 0:
            _begin(t, C, choices, flows)
        for j in range(0, C, WIDTH):
            begin, covers = load(begins, j) * load(choices.size_scales, t * W + j), broadcast(0.0)
            for d in range(min(D, length - t) - 1, -1, -1):
                share = begin * load(choices.sizes, (t * D + d) * W + j)
                covers += share
                store_masked(segments, (t * D + d) * C + j, C - j, share)
                store(ended, (t + d + 1) * W + j, load(ended, (t + d + 1) * W + j) + share)
                store(covered, (t + d) * W + j, load(covered, (t + d) * W + j) + covers)
            store_masked(tokens, t * C + j, C - j, load(covered, t * W + j))


@subkernel(forceinline=True)
def _begin(t, C, choices, flows):
    """Fill begins with the probabilities that a segment of a type begins at a token, and add to the pairs."""
    begins, ended, _, pairs = flows
    W = begins.shape[1]
    for j in range(C):
        total = broadcast(0.0)
        for i in range(0, C, WIDTH):
            share = load(ended, t * W + i) * load(choices.type_scales, t * W + i)
            share *= load(choices.types, (t * C + j) * W + i)
            store(pairs, j * W + i, load(pairs, j * W + i) + share)
            total += share
        begins[0, j] = reduce_sum(total)
