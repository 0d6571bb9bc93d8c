"""Searches for segments and sums over segmentations, sequence by sequence; samples as in the reference.

Besides scores and results, memory for one sequence is O(T C + C^2) for the best segmentation, and
O(T (C + k) + D^2 C + k C) for the k best. Sums keep a weight of each segment: O(T D C + C^2). All sums are in double
precision.
"""

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from structperc.errors import InvalidScoreError
from structperc.kernels.jit import kernel, subkernel, subkernel_no_alloc
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
from structperc.ops.cpu.checks import check_lengths, length_out_of_range
from structperc.ops.cpu.kbest import keep_best
from structperc.ops.cpu.threads import run_in_threads
from structperc.ops.reference import semi_markov as reference


def semi_markov_viterbi(token: Tensor, segment: Tensor, pair: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """Implement `structperc.ops.semi_markov_viterbi`."""
    (B, T, C), D = token.shape, segment.shape[2]
    scores, labels = token.new_zeros(B), lengths.new_zeros(B, T, dtype=torch.int64)
    _check(token, segment, pair, lengths)
    _run(_search, 8 * T * C * (D + C), token, segment, pair, lengths, scores, labels)
    return scores, labels


def semi_markov_kbest(
    token: Tensor, segment: Tensor, pair: Tensor, lengths: Tensor, k: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Implement `structperc.ops.semi_markov_kbest`."""
    (B, T, C), D = token.shape, segment.shape[2]
    labels, scores = lengths.new_zeros(B, k, T, dtype=torch.int64), token.new_full((B, k), -torch.inf)
    valid = torch.zeros(B, k, dtype=torch.bool)
    _check(token, segment, pair, lengths)
    _run(_list, 8 * T * C * (D + C + k), token, segment, pair, lengths, labels, scores, valid)
    scores, order = scores.sort(dim=1, descending=True, stable=True)
    return labels.gather(1, order.unsqueeze(2).expand(-1, -1, T)), scores, valid


def semi_markov_best(token: Tensor, segment: Tensor, pair: Tensor, lengths: Tensor) -> Tensor:
    """Implement `structperc.ops.semi_markov_best`."""
    (B, T, C), D = token.shape, segment.shape[2]
    if _first_invalid(token, segment, pair, lengths) is not None:
        return reference.semi_markov_best(token, segment, pair, lengths)
    best = token.new_full((B, T, D, C), -torch.inf)
    _run(_search_with_each, 16 * T * C * (D + C), token, segment, pair, lengths, best)
    return best


def semi_markov_sample(token: Tensor, segment: Tensor, pair: Tensor, lengths: Tensor, noise: Tensor) -> Tensor:
    """Implement `structperc.ops.semi_markov_sample`."""
    check_lengths(lengths, token.shape[1])
    _check(token, segment, pair, lengths)
    return reference.semi_markov_sample(token, segment, pair, lengths, noise)


def semi_markov_sums(
    token: Tensor, segment: Tensor, pair: Tensor, lengths: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Implement `structperc.ops.semi_markov_sums`."""
    (B, T, C), D = token.shape, segment.shape[2]
    if _first_invalid(token, segment, pair, lengths) is not None:
        return reference.semi_markov_sums(token, segment, pair, lengths)
    totals, segments, tokens = token.new_zeros(B), token.new_zeros(B, T, D, C), token.new_zeros(B, T, C)
    pairs, work = token.new_zeros(B, C, C), 16 * T * C * (D + C)
    _run(_both_passes, work, token, segment, pair, lengths, totals, segments, tokens, pairs)
    return totals, segments, tokens, pairs


def _run(kernel: Any, work: int, token: Tensor, segment: Tensor, pair: Tensor, lengths: Tensor, *results: Any) -> None:
    if run_in_threads(kernel, len(token), work, token, segment, pair, lengths, *results):
        check_lengths(lengths, token.shape[1])


def _check(token: Tensor, segment: Tensor, pair: Tensor, lengths: Tensor) -> None:
    invalid = _first_invalid(token, segment, pair, lengths)
    if invalid is not None:
        where = f"sequence {invalid} of {len(lengths)}"
        raise InvalidScoreError(
            f"scores: +inf or NaN in {where}; scores must be finite, or -inf for what is impossible"
        )


def _first_invalid(token: Tensor, segment: Tensor, pair: Tensor, lengths: Tensor) -> int | None:
    """Return the first sequence with a score of +inf or NaN; None if there is none."""
    arrays = [x.numpy(force=True) for x in (token, segment, pair)]
    if all(x.max(initial=-np.inf) < np.inf for x in arrays):  # with the padding: fast
        return None
    check_lengths(lengths, token.shape[1])
    invalid = reference.prepare(token, segment, pair, lengths).invalid.nonzero()
    return int(invalid[0]) if len(invalid) else None


@subkernel_no_alloc
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


@kernel
def _search(start, stop, token, segment, pair, lengths, scores, labels):
    T = token.shape[1]
    tables = _best_of(T, pair)
    for b in range(start, stop):
        length, given = lengths[b], segment[0 if len(segment) == 1 else b]
        if length_out_of_range(length, T):
            return True
        if length > 0:
            _levels(token[b], length, tables.own)
            _search_backwards(length, given, tables)
            possible = _trace(length, given, tables, labels[b])
            scores[b] = _score(token[b], given, pair, length, labels[b]) if possible else -np.inf
    return False


@subkernel_no_alloc
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


@subkernel_no_alloc
def _trace(length, given, tables, labels):
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


@subkernel_no_alloc
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
    T, C = token.shape[1], token.shape[2]
    tables, ended = _best_of(T, pair), np.empty((T + 1, C))
    for b in range(start, stop):
        length, given = lengths[b], segment[0 if len(segment) == 1 else b]
        if length_out_of_range(length, T):
            return True
        level = _levels(token[b], length, tables.own)
        _search_backwards(length, given, tables)
        _search_forwards(length, level, given, tables, ended, best[b])
    return False


@subkernel_no_alloc
def _search_forwards(length, level, given, tables, ended, best):
    """Fill ended (T + 1, C), the best score of all before t by the type of the last segment, and best (T, D, C)."""
    own, _, after, back = tables
    C = len(back)
    for t in range(length + 1):
        for c in range(C):
            ended[t, c] = -np.inf
    for t in range(length):
        for c in range(C):
            before = 0.0 if t == 0 else -np.inf
            for i in range(C if t else 0):
                before = max(before, ended[t, i] + back[c, i])
            run = 0.0
            for d in range(min(given.shape[1], length - t)):
                run += own[t + d, c]
                whole = run + given[t if len(given) > 1 else 0, d, c]
                ended[t + d + 1, c] = max(ended[t + d + 1, c], before + whole)
                best[t, d, c] = (before + (whole + after[t + d + 1, c])) + level


class Sizes(NamedTuple):
    """Scores of the segments that begin at one of the last R = min(D, T) tokens, those that begin at t in row t % R."""

    whole: Any  # (R, D + 1, C) of each segment by itself
    at_least: Any  # (R, D + 1, C) the best of all from t on, by least number of tokens


class Lists(NamedTuple):
    """Prefixes of one sequence, in lexicographic order at each token."""

    origin: Any  # (T, k) the prefix that each one extends
    label: Any  # (T, k)
    start: Any  # (2, k) first token of the open segment of each prefix, of the last token and of this one in turn
    losses: Any  # (2, k (C + 1)) how much worse the best completion is than the best segmentation
    copies: Any  # (k (C + 1),)
    new: Any  # (2, k (C + 1)) origins and labels of all extensions


@kernel
def _list(start, stop, token, segment, pair, lengths, labels, scores, valid):
    T, C, D, k = token.shape[1], token.shape[2], segment.shape[2], labels.shape[1]
    tables, many, R = _best_of(T, pair), k * (C + 1), min(D, T)
    scores_by_size, chosen = np.empty((2 * R, D + 1, C)), np.empty((2, T, k), np.int64)
    sizes = Sizes(scores_by_size[:R], scores_by_size[R:])
    new, numbers = np.empty((2, many), np.int64), np.empty((3, many))
    lists = Lists(chosen[0], chosen[1], np.empty((2, k), np.int64), numbers[:2], numbers[2], new)
    for b in range(start, stop):
        length, given = lengths[b], segment[0 if len(segment) == 1 else b]
        if length_out_of_range(length, T):
            return True
        _levels(token[b], length, tables.own)
        _search_backwards(length, given, tables)
        n = _extend_all(length, k, given, tables, sizes, lists)
        _write(n, length, token[b], given, pair, lists, labels[b], scores[b], valid[b])
    return False


@subkernel_no_alloc
def _extend_all(length, k, given, tables, sizes, lists):
    """Extend prefixes token by token, keep those of the k smallest losses, and return their number."""
    C, n = len(tables.back), np.int64(1)
    for t in range(length):
        m = _extend(t, n, tables, sizes, lists)
        n = keep_best(m, k, np.inf, lists.losses[t % 2], lists.copies, lists.new[0], lists.new[1])[0]
        for p in range(n):
            origin, label = lists.new[0, p], lists.new[1, p]
            lists.origin[t, p], lists.label[t, p] = origin, label
            lists.start[t % 2, p] = t if label < C else lists.start[1 - t % 2, origin]
        _fill_sizes(t, length, given, tables, sizes)
    return n


@subkernel_no_alloc
def _extend(t, n, tables, sizes, lists):
    """List the extensions of n prefixes by the label of token t, and return their number."""
    C, R, top, old, here, m = len(tables.back), len(sizes.whole), tables.top, 1 - t % 2, t % 2, 0
    for p in range(n):
        kind, size, row, best, lost = 0, 0, 0, -np.inf, 0.0
        if t > 0:
            start = lists.start[old, p]
            kind, size, row, lost = lists.label[t - 1, p] % C, t - start, start % R, lists.losses[old, p]
            best = sizes.at_least[row, size - 1, kind]
        else:
            for j in range(C):
                best = max(best, top[0, j])
        for j in range(C + 1 if t > 0 else C):
            if t == 0:
                score = top[0, j]
            elif j < C:
                score = sizes.whole[row, size - 1, kind] + (tables.back[j, kind] + top[t, j])
            else:
                score = sizes.at_least[row, size, kind]
            if score > -np.inf:
                lists.losses[here, m] = lost + max(best - score, 0.0)
                lists.new[0, m], lists.new[1, m] = p, j if j < C else C + kind
                m += 1
    return m


@subkernel_no_alloc
def _fill_sizes(t, length, given, tables, sizes):
    """Fill the row of token t; it replaces that of the token R before, whose segments end here at the latest."""
    own, after, (whole, at_least), D = tables.own, tables.after, sizes, given.shape[1]
    n, at, row = min(D, length - t), t if len(given) > 1 else 0, t % len(whole)
    for c in range(given.shape[2]):
        run = 0.0
        for d in range(n):
            run += own[t + d, c]
            whole[row, d, c] = run + given[at, d, c]
        at_least[row, n, c] = -np.inf
        for d in range(n - 1, -1, -1):
            at_least[row, d, c] = max(whole[row, d, c] + after[t + d + 1, c], at_least[row, d + 1, c])


@subkernel_no_alloc
def _write(n, length, token, given, pair, lists, labels, scores, valid):
    """Write n segmentations in lexicographic order."""
    for p in range(n):
        slot = p
        for t in range(length - 1, -1, -1):
            labels[p, t] = lists.label[t, slot]
            slot = lists.origin[t, slot]
        scores[p], valid[p] = _score(token, given, pair, length, labels[p]), True


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
def _sums_of(T, D, pair):
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


@kernel
def _both_passes(start, stop, token, segment, pair, lengths, totals, segments, tokens, pairs):
    """Sum from right to left; the choices that this gives are probabilities, multiplied from left to right."""
    T, D = token.shape[1], segment.shape[2]
    sums = _sums_of(T, D, pair)
    for b in range(start, stop):
        length, given = lengths[b], segment[0 if len(segment) == 1 else b]
        if length_out_of_range(length, T):
            return True
        if length > 0:
            level = _levels(token[b], length, sums.own)
            total = _sum_backwards(length, given, sums)
            totals[b] = total + level
            if total > -np.inf:
                _multiply_forwards(length, sums, segments[b], tokens[b], pairs[b])
    return False


@subkernel_no_alloc
def _sum_backwards(length, given, sums):
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
def _multiply_forwards(length, sums, segments, tokens, pairs):
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
