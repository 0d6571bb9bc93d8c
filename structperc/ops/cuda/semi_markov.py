"""Viterbi, sums and best scores of segments on CUDA; lists and samples are in `segmentations`.

Viterbi is one kernel: from right to left, keeping the number of tokens of the best segment of each type at each token,
and the best type after each type (2 bytes each); then along these, segment by segment, with the score.

Sums take two kernels. The first one sums from right to left. In the second one, the choices that this gives are
probabilities, multiplied from left to right: the next type given the last one, and a length given both ends of the
rest. Expected pairs are summed in registers, and the probabilities of tokens from those of segments, by the same
program. There are no atomic additions.

Memory besides scores and results is O(B T C).
"""

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton.language import constexpr

from structperc.ops.cuda.blocks import (
    any_invalid,
    finite_or_zero,
    follows_another,
    log_sum,
    on_device_of,
    pairs_at,
    put_pairs,
    put_rows,
    rows_at,
    sequences,
)
from structperc.ops.cuda.segmentations import semi_markov_kbest, semi_markov_sample
from structperc.ops.cuda.segments import (
    SHAPES,
    SegmentArguments,
    fill_segments,
    over_types,
    pairs_of,
    put_segments,
    put_slab,
    replace_row,
    rows_of_end,
    segments_from,
    segments_until,
    slab_of_pairs,
    suffix_tables,
)
from structperc.ops.reference import semi_markov as reference

__all__ = [
    "semi_markov_viterbi",
    "semi_markov_kbest",
    "semi_markov_log_partition",
    "semi_markov_sums",
    "semi_markov_best",
    "semi_markov_sample",
]


def semi_markov_viterbi(token: Tensor, segment: Tensor, pair: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """Implement `structperc.ops.segment_operators.semi_markov_viterbi`."""
    lattice = SegmentArguments(token, segment, pair, lengths)
    if not lattice.fit or not token.numel():
        return reference.semi_markov_viterbi(token, segment, pair, lengths)
    (B, T, C), blocks = token.shape, lattice.blocks()
    scores, labels = lattice.scratch(B), torch.zeros(B, T, dtype=torch.int64, device=token.device)
    sizes, kinds = (lattice.scratch(B, T, C, dtype=torch.int16) for _ in range(2))
    carried = lattice.scratch(B, 2, C, dtype=torch.float64)
    with on_device_of(token):
        _search_segments[(lattice.programs(blocks["N"]),)](
            *lattice.tables, sizes, kinds, carried, scores, labels, **blocks
        )  # fmt: skip
    return scores, labels


@triton.jit(do_not_specialize=SHAPES)
def _search_segments(
    token, segment, pair, lengths, B, T, sb, st, sd, sc, pi, pj, sizes, kinds, carried, scores, labels,
    C: constexpr, D: constexpr, N: constexpr, P: constexpr, R: constexpr, ROWS: constexpr, STAGES: constexpr,
):  # fmt: skip
    """Fill scores (B,) and labels (B, T); sizes and kinds (B, T, C) and carried (B, 2, C) are memory."""
    b, length, longest = sequences(lengths, B, T, N)
    ends, run, best = rows_of_end(length, N, P, R), tl.zeros((N, R, P), tl.float64), tl.zeros((N, P), tl.float64)
    table, invalid = pairs_of(pair, pi, pj, length, C, P, ROWS)
    for back in tl.range(0, longest, num_stages=STAGES):
        t = longest - 1 - back
        real = t < length
        _, d, each, run, invalid = segments_from(
            token, segment, b, t, length, run, invalid, T, sb, st, sd, sc, C, D, N, P, R
        )  # fmt: skip
        each += ends
        best = tl.max(each, 1)
        size = tl.min(tl.where(each == best[:, None, :], d[None, :, None], R - 1), 1)  # the shortest among equals
        put_rows(sizes, size, b, t, real, C, P, T)
        if ROWS == P:
            following, kind = tl.max(table[None, :, :] + best[:, None, :], 2, return_indices=True)
            put_rows(kinds, kind, b, t, real, C, P, T)
        else:
            for first in tl.range(0, P, ROWS, num_stages=3):
                slab = slab_of_pairs(pair, pi, pj, first, C, P, ROWS)
                some, kind = tl.max(slab[None, :, :] + best[:, None, :], 2, return_indices=True)
                put_slab(kinds, kind, b, t, real, first, T, C, ROWS)
                put_slab(carried, some, b, t % 2, real, first, 2, C, ROWS)
            tl.debug_barrier()
            following = rows_at(carried, b, t % 2, real, C, P, 2, -float("inf"))
        ends = replace_row(ends, following, t, real, R)
    possible = (tl.max(best, 1) > -float("inf")) & (invalid == 0)
    kind = tl.where(possible, tl.argmax(best, 1), 0).to(tl.int64)
    tl.debug_barrier()
    total = _trace(
        token, segment, pair, b, length, T, sb, st, sd, sc, pi, pj, sizes, kinds, kind, possible & (length > 0), labels,
        C, N, R,
    )  # fmt: skip
    total = tl.where(possible | (length <= 0), total, -float("inf"))
    total = tl.where(invalid > 0, float("nan"), total)
    tl.store(scores + b, total.to(scores.dtype.element_ty), mask=b < B)


@triton.jit
def _trace(
    token, segment, pair, b, length, T, sb, st, sd, sc, pi, pj, sizes, kinds, kind, active, labels,
    C: constexpr, N: constexpr, R: constexpr,
):  # fmt: skip
    """Fill the labels (B, T) of active sequences (N,), whose first segments are of type `kind` (N,).

    Return the scores (N,).
    """
    d, t = tl.arange(0, R), tl.zeros((N,), tl.int64)
    tokens, segments, pairs = tl.zeros((N,), tl.float64), tl.zeros((N,), tl.float64), tl.zeros((N,), tl.float64)
    while tl.max(active.to(tl.int32), 0) > 0:
        size = tl.load(sizes + (b * T + t) * C + kind, mask=active, other=0).to(tl.int64)
        mine, place = active[:, None] & (d[None, :] <= size[:, None]), (b * T + t)[:, None] + d[None, :]
        tl.store(labels + place, kind[:, None] + tl.where(d == 0, 0, C)[None, :], mask=mine)
        tokens += tl.sum(tl.load(token + place * C + kind[:, None], mask=mine, other=0.0).to(tl.float64), 1)
        place = b * sb + t * st + size * sd + kind * sc
        segments += tl.load(segment + place, mask=active, other=0.0).to(tl.float64)
        t += size + 1
        active = active & (t < length)
        following = tl.load(kinds + (b * T + t) * C + kind, mask=active, other=0).to(tl.int64)
        pairs += tl.load(pair + kind * pi + following * pj, mask=active, other=0.0).to(tl.float64)
        kind = following
    return tokens + segments + pairs


def semi_markov_sums(
    token: Tensor, segment: Tensor, pair: Tensor, lengths: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Implement `structperc.ops.segment_operators.semi_markov_sums`."""
    lattice = SegmentArguments(token, segment, pair, lengths)
    if not lattice.fit or not token.numel():
        return reference.semi_markov_sums(token, segment, pair, lengths)
    (B, T, C), D, blocks = token.shape, lattice.D, lattice.blocks()
    total, segments, tokens = lattice.scratch(B), token.new_zeros(B, T, D, C), token.new_zeros(B, T, C)
    pairs = torch.zeros(B, C, C, dtype=torch.float64, device=token.device)
    carried, tables = lattice.scratch(B, 2, C, dtype=torch.float64), suffix_tables(lattice, summed=True)
    with on_device_of(token):
        _sum_segments[(lattice.programs(blocks["N"]),)](
            *lattice.tables, *tables, carried, total, segments, tokens, pairs, **blocks
        )  # fmt: skip
    return total, segments, tokens, pairs.to(token.dtype)


def semi_markov_log_partition(
    token: Tensor, segment: Tensor, pair: Tensor, lengths: Tensor, with_gradient: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Implement `structperc.ops.segment_operators.semi_markov_log_partition`."""
    return reference.for_gradient(semi_markov_sums(token, segment, pair, lengths), segment, with_gradient)


@triton.jit(do_not_specialize=SHAPES)
def _sum_segments(
    token, segment, pair, lengths, B, T, sb, st, sd, sc, pi, pj, after, begun, levels, taken_off, carried,
    total, segments, tokens, pairs,
    C: constexpr, D: constexpr, N: constexpr, P: constexpr, R: constexpr, ROWS: constexpr, STAGES: constexpr,
):  # fmt: skip
    """Fill total (B,), segments (B, T, D, C), tokens (B, T, C), pairs (B, C, C), which are 0; carried (B, 2, C) is
    memory."""
    b, length, longest = sequences(lengths, B, T, N)
    here = rows_at(begun, b, 0, length > 0, C, P, T, -float("inf"))
    invalid, log_z = any_invalid(here, length > 0), log_sum(here, 1)
    begins = tl.exp(here - finite_or_zero(log_z)[:, None])
    log_z = tl.where(length > 0, log_z + tl.load(taken_off + b, mask=b < B, other=0.0), 0.0)
    log_z = tl.where(invalid > 0, float("nan"), log_z)
    tl.store(total + b, log_z.to(total.dtype.element_ty), mask=b < B)
    run, shares = tl.zeros((N, R, P), tl.float64), tl.zeros((N, R, P), tl.float64)
    table, ended = slab_of_pairs(pair, pi, pj, 0, C, P, ROWS), tl.zeros((N, P), tl.float64)
    sums = tl.zeros((N, ROWS, P), tl.float64)
    for u in tl.range(0, longest, num_stages=STAGES):
        real, joined = u < length, follows_another(u, length)
        here = rows_at(begun, b, u, real, C, P, T, -float("inf"))
        begun_after, sums = _begin_next(
            table, ended, here, pair, pi, pj, after, carried, pairs, sums, b, u, joined, T, C, N, P, ROWS
        )  # fmt: skip
        begins = tl.where(joined[:, None], begun_after, begins)
        shares = replace_row(shares, begins, u, real, R)
        d, known, scores, run = segments_until(
            token, segment, levels, b, u, length, run, -finite_or_zero(here), T, sb, st, sd, sc, C, D, N, P, R
        )  # fmt: skip
        following = rows_at(after, b, u + 1, u + 1 < length, C, P, T, 0.0)
        each = tl.where(known[:, :, None], shares * tl.exp(scores + following[:, None, :]), 0.0)
        put_segments(segments, each, b, u - d, d, known, T, C, D, P)
        ended = tl.sum(each, 1)
    if ROWS == P:
        _add_pairs(pairs, sums, b, b < B, 0, C, P, ROWS)
    if tl.max(invalid, 0) > 0:
        tl.debug_barrier()
        _fill_invalid(b, length, longest, T, invalid > 0, segments, pairs, C, D, N, P, R, ROWS)
    tl.debug_barrier()
    _add_up_tokens(b, length, longest, T, segments, tokens, C, D, N, P, R, STAGES)


@triton.jit
def _begin_next(
    table, ended, here, pair, pi, pj, after, carried, pairs, sums, b, u, joined, T,
    C: constexpr, N: constexpr, P: constexpr, ROWS: constexpr,
):  # fmt: skip
    """Return the probabilities (N, P) of the types of segments that begin at token u, and the sums of pairs so far.

    `ended` (N, P) are those of the segments that end before it, `here` (N, P) is the row of `begun`. If the matrix of
    pairs is not in registers, pairs (B, C, C) are summed in place.
    """
    if ROWS == P:
        before = finite_or_zero(rows_at(after, b, u, joined, C, P, T, -float("inf")))
        each = ended[:, :, None] * tl.exp(table[None, :, :] + here[:, None, :] - before[:, :, None])
        each = tl.where(joined[:, None, None], each, 0.0)
        begins, sums = tl.sum(each, 1), sums + each
    else:
        begins = tl.zeros((N, P), tl.float64)
        put_rows(carried, ended, b, u % 2, joined, C, P, 2)
        tl.debug_barrier()
        for first in range(0, P, ROWS):
            i = first + tl.arange(0, ROWS)
            mine = joined[:, None] & (i < C)[None, :]
            share = tl.load(carried + ((b * 2 + u % 2) * C)[:, None] + i[None, :], mask=mine, other=0.0)
            before = tl.load(after + ((b * T + u) * C)[:, None] + i[None, :], mask=mine, other=0.0)
            slab = slab_of_pairs(pair, pi, pj, first, C, P, ROWS)
            each = share[:, :, None] * tl.exp(
                slab[None, :, :] + here[:, None, :] - finite_or_zero(before)[:, :, None]
            )  # fmt: skip
            each = tl.where(mine[:, :, None], each, 0.0)
            _add_pairs(pairs, each, b, joined, first, C, P, ROWS)
            begins += tl.sum(each, 1)
    return begins, sums


@triton.jit
def _add_pairs(pairs, added, b, real, first, C: constexpr, P: constexpr, ROWS: constexpr):
    """Add numbers (N, ROWS, P) to the rows of pairs (B, C, C) from `first` on, where real (N,)."""
    i, j = first + tl.arange(0, ROWS), tl.arange(0, P)
    so_far = pairs_at(pairs, b, 0, real, i, j, 1, C)
    put_pairs(pairs, so_far + added, b, 0, real, i, j, 1, C)


@triton.jit
def _fill_invalid(
    b, length, longest, T, invalid, segments, pairs,
    C: constexpr, D: constexpr, N: constexpr, P: constexpr, R: constexpr, ROWS: constexpr,
):  # fmt: skip
    """Fill the segments within invalid sequences (N,), and their pairs, with NaN."""
    fill_segments(segments, float("nan"), b, length, longest, T, invalid, C, D, N, P, R)
    for first in range(0, P, ROWS):
        _add_pairs(pairs, tl.full((N, ROWS, P), float("nan"), tl.float64), b, invalid, first, C, P, ROWS)


@triton.jit
def _add_up_tokens(
    b, length, longest, T, segments, tokens,
    C: constexpr, D: constexpr, N: constexpr, P: constexpr, R: constexpr, STAGES: constexpr,
):  # fmt: skip
    """Fill tokens (B, T, C) with the sums of the segments (B, T, D, C) that contain them.

    From right to left: of segments that begin at token s and contain t, the sum is in row s % R.
    """
    c, row, sums = tl.arange(0, P), tl.arange(0, R), tl.zeros((N, R, P), tl.float64)
    for back in tl.range(0, longest, num_stages=STAGES):
        t = longest - 1 - back
        real, d = t < length, (t - row) & (R - 1)
        known = ((d < D) & (d <= t))[None, :] & real[:, None]
        place = ((((b * T)[:, None] + (t - d)[None, :]) * D + d[None, :]) * C)[:, :, None] + c[None, None, :]
        ending = tl.load(segments + place, mask=known[:, :, None] & (c < C)[None, None, :], other=0.0)
        sums += ending.to(tl.float64)
        put_rows(tokens, tl.sum(sums, 1), b, t, real, C, P, T)
        sums = tl.where((d == 0)[None, :, None], 0.0, sums)


def semi_markov_best(token: Tensor, segment: Tensor, pair: Tensor, lengths: Tensor) -> Tensor:
    """Implement `structperc.ops.segment_operators.semi_markov_best`."""
    lattice = SegmentArguments(token, segment, pair, lengths)
    if not lattice.fit or not token.numel():
        return reference.semi_markov_best(token, segment, pair, lengths)
    (B, T, C), blocks = token.shape, lattice.blocks()
    best, carried = token.new_full((B, T, lattice.D, C), -torch.inf), lattice.scratch(B, 2, C, dtype=torch.float64)
    tables = suffix_tables(lattice, summed=False)
    with on_device_of(token):
        _search_with_each[(lattice.programs(blocks["N"]),)](*lattice.tables, *tables, carried, best, **blocks)
    return best


@triton.jit(do_not_specialize=SHAPES)
def _search_with_each(
    token, segment, pair, lengths, B, T, sb, st, sd, sc, pi, pj, after, begun, levels, taken_off, carried, best,
    C: constexpr, D: constexpr, N: constexpr, P: constexpr, R: constexpr, ROWS: constexpr, STAGES: constexpr,
):  # fmt: skip
    """Fill best (B, T, D, C) where segments fit; carried (B, 2, C) is memory."""
    b, length, longest = sequences(lengths, B, T, N)
    level = tl.load(taken_off + b, mask=b < B, other=0.0)[:, None, None]
    run, starts = tl.zeros((N, R, P), tl.float64), tl.zeros((N, R, P), tl.float64)
    ended, nothing = tl.zeros((N, P), tl.float64), tl.zeros((N, P), tl.float64)
    table = slab_of_pairs(pair, pj, pi, 0, C, P, ROWS)
    for u in tl.range(0, longest, num_stages=STAGES):
        real, joined = u < length, follows_another(u, length)
        before = over_types(table, ended, pair, pj, pi, carried, b, u, joined, False, C, P, ROWS)
        starts = replace_row(starts, tl.where(joined[:, None], before, 0.0), u, real, R)
        d, known, scores, run = segments_until(
            token, segment, levels, b, u, length, run, nothing, T, sb, st, sd, sc, C, D, N, P, R
        )  # fmt: skip
        following = rows_at(after, b, u + 1, u + 1 < length, C, P, T, 0.0)
        put_segments(
            best, (starts + (scores + following[:, None, :])) + level, b, u - d, d, known, T, C, D, P
        )  # fmt: skip
        ended = tl.max(tl.where(known[:, :, None], starts + scores, -float("inf")), 1)
    invalid = any_invalid(rows_at(begun, b, 0, length > 0, C, P, T, -float("inf")), length > 0)
    if tl.max(invalid, 0) > 0:
        tl.debug_barrier()
        fill_segments(best, float("nan"), b, length, longest, T, invalid > 0, C, D, N, P, R)
