"""Searches for segments and sums over segmentations, sequence by sequence; samples as in the reference.

Besides scores and results, memory for one sequence is O(T C + D C + C^2), and O(T (C + k) + D^2 C + k C) for the k
best. All sums are in double precision, of weights of segments in the precision of the scores.
"""

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from structperc.errors import InvalidScoreError
from structperc.kernels.best_path import subtract_levels
from structperc.kernels.best_segmentation import (
    best_tables,
    search_backwards,
    trace_best_segmentation,
)
from structperc.kernels.jit import kernel, subkernel_no_alloc
from structperc.kernels.semi_markov_sums import SegmentSums, sum_segmentations, sum_tables
from structperc.ops.cpu.checks import check_lengths
from structperc.ops.cpu.kbest import keep_best
from structperc.ops.cpu.threads import run_in_threads
from structperc.ops.reference import semi_markov as reference


def semi_markov_viterbi(token: Tensor, segment: Tensor, pair: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """Implement `structperc.ops.segment_operators.semi_markov_viterbi`."""
    (B, T, C), D = token.shape, segment.shape[2]
    scores, labels = token.new_zeros(B), lengths.new_zeros(B, T, dtype=torch.int64)
    _check(token, segment, pair, lengths)
    _run(_search, 8 * T * C * (D + C), token, segment, pair, lengths, scores, labels)
    return scores, labels


def semi_markov_kbest(
    token: Tensor, segment: Tensor, pair: Tensor, lengths: Tensor, k: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Implement `structperc.ops.segment_operators.semi_markov_kbest`."""
    (B, T, C), D = token.shape, segment.shape[2]
    labels, scores = lengths.new_zeros(B, k, T, dtype=torch.int64), token.new_full((B, k), -torch.inf)
    valid = torch.zeros(B, k, dtype=torch.bool)
    _check(token, segment, pair, lengths)
    _run(_list, 8 * T * C * (D + C + k), token, segment, pair, lengths, labels, scores, valid)
    scores, order = scores.sort(dim=1, descending=True, stable=True)
    return labels.gather(1, order.unsqueeze(2).expand(-1, -1, T)), scores, valid


def semi_markov_best(token: Tensor, segment: Tensor, pair: Tensor, lengths: Tensor) -> Tensor:
    """Implement `structperc.ops.segment_operators.semi_markov_best`."""
    (B, T, C), D = token.shape, segment.shape[2]
    if _first_invalid(token, segment, pair, lengths) is not None:
        return reference.semi_markov_best(token, segment, pair, lengths)
    best = token.new_full((B, T, D, C), -torch.inf)
    _run(_search_with_each, 16 * T * C * (D + C), token, segment, pair, lengths, best)
    return best


def semi_markov_sample(token: Tensor, segment: Tensor, pair: Tensor, lengths: Tensor, noise: Tensor) -> Tensor:
    """Implement `structperc.ops.segment_operators.semi_markov_sample`."""
    check_lengths(lengths, token.shape[1])
    _check(token, segment, pair, lengths)
    return reference.semi_markov_sample(token, segment, pair, lengths, noise)


def semi_markov_sums(
    token: Tensor, segment: Tensor, pair: Tensor, lengths: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Implement `structperc.ops.segment_operators.semi_markov_sums`."""
    if _first_invalid(token, segment, pair, lengths) is not None:
        return reference.semi_markov_sums(token, segment, pair, lengths)
    return _sums(token, segment, pair, lengths, token.shape[1], True)


def semi_markov_log_partition(
    token: Tensor, segment: Tensor, pair: Tensor, lengths: Tensor, with_gradient: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Implement `structperc.ops.segment_operators.semi_markov_log_partition`."""
    if _first_invalid(token, segment, pair, lengths) is not None:
        return reference.semi_markov_log_partition(token, segment, pair, lengths, with_gradient)
    return _sums(token, segment, pair, lengths, segment.shape[1], with_gradient)


def _sums(
    token: Tensor, segment: Tensor, pair: Tensor, lengths: Tensor, rows: int, with_gradient: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return log Z, and with the gradient segments (B, T, D, C), or of 1 row their sums over the tokens."""
    (B, T, C), D, n = token.shape, segment.shape[2], 1 if with_gradient else 0
    totals, segments = token.new_zeros(B), token.new_zeros(B, n * rows, D, C)
    tokens, pairs = token.new_zeros(B, n * T, C), token.new_zeros(B, n * C, C)
    _run(_both_passes, 16 * T * C * (D + C), token, segment, pair, lengths, totals, segments, tokens, pairs)
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


@kernel
def _search(start, stop, token, segment, pair, lengths, scores, labels):
    T, C = token.shape[1], token.shape[2]
    tables = best_tables(T, C)
    tables.back[:, :C] = pair.T
    for b in range(start, stop):
        length, given = lengths[b], segment[0 if len(segment) == 1 else b]
        if not 0 <= length <= T:
            return True
        if length > 0:
            subtract_levels(token[b], length, tables.own)
            search_backwards(length, given, tables)
            possible = trace_best_segmentation(0, -1, length, given, tables, labels[b])
            scores[b] = _score(token[b], given, pair, length, labels[b]) if possible else -np.inf
    return False


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
    tables, ended = best_tables(T, C), np.empty((T + 1, C))
    tables.back[:, :C] = pair.T
    for b in range(start, stop):
        length, given = lengths[b], segment[0 if len(segment) == 1 else b]
        if not 0 <= length <= T:
            return True
        level = subtract_levels(token[b], length, tables.own)
        search_backwards(length, given, tables)
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
    tables, many, R = best_tables(T, C), k * (C + 1), min(D, T)
    tables.back[:, :C] = pair.T
    scores_by_size, chosen = np.empty((2 * R, D + 1, C)), np.empty((2, T, k), np.int64)
    sizes = Sizes(scores_by_size[:R], scores_by_size[R:])
    new, numbers = np.empty((2, many), np.int64), np.empty((3, many))
    lists = Lists(chosen[0], chosen[1], np.empty((2, k), np.int64), numbers[:2], numbers[2], new)
    for b in range(start, stop):
        length, given = lengths[b], segment[0 if len(segment) == 1 else b]
        if not 0 <= length <= T:
            return True
        subtract_levels(token[b], length, tables.own)
        search_backwards(length, given, tables)
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


@kernel
def _both_passes(start, stop, token, segment, pair, lengths, totals, segments, tokens, pairs):
    """Sum from right to left; the choices that this gives are probabilities, multiplied from left to right."""
    T, C, D = token.shape[1], token.shape[2], segment.shape[2]
    sums, logs = sum_tables(T, D, pair), np.empty((0, C))
    for b in range(start, stop):
        length, given = lengths[b], segment[0 if len(segment) == 1 else b]
        if not 0 <= length <= T:
            return True
        if length > 0:
            results = SegmentSums(segments[b], tokens[b], pairs[b], logs)
            totals[b] = sum_segmentations(length, token[b], given, sums, results)
    return False
