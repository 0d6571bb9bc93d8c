"""Layout of segments in blocks, and the recursion from the last token to the first, for operators on segments.

A program works on N sequences. Types are padded to a power of two, P; up to 64 of them, the matrix of pair scores is in
registers. Above, it passes through in slabs of ROWS types, and its results through a row in global memory, with a
barrier at each token.

Numbers of the last R tokens, R a power of two of at least D, are in registers, those of token u in row u % R. So a
token replaces one row and nothing is shifted: in the recursion to the left, a row belongs to the end of a segment, in
the one to the right to its beginning, and the sum of the scores of the tokens between grows by one term at each token.

Everything is in double precision, of scores less the highest of each token.
"""

from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton.language import constexpr

from structperc.ops.cuda.blocks import (
    ENTRIES,
    INTERPRETED,
    WHOLE,
    any_invalid,
    best_or_log_sum,
    finite_or_zero,
    on_device_of,
    options,
    put_rows,
    rows_at,
    sequences,
)

SHAPES = ("B", "T", "sb", "st")  # arguments that change from batch to batch: kernels are not specialised for them


class SegmentArguments:
    """Arguments of the kernels: contiguous scores of tokens, other scores in place, lengths on the device."""

    def __init__(self, token: Tensor, segment: Tensor, pair: Tensor, lengths: Tensor):
        (self.B, self.T, self.C), self.D = token.shape, segment.shape[2]
        self.token, self.segment, self.pair = token.detach().contiguous(), segment.detach(), pair.detach()
        self.lengths = lengths.to(token.device, non_blocking=True).contiguous()
        shared = [0 if n == 1 else s for n, s in zip(segment.shape[:2], segment.stride()[:2], strict=True)]
        self.strides = (*shared, *segment.stride()[2:], *pair.stride())
        self.P, self.R = (max(2, triton.next_power_of_2(n)) for n in (self.C, self.D))

    @property
    def fit(self) -> bool:
        """Whether the scores of the segments that begin at one token fit into registers."""
        return self.P * self.R <= ENTRIES

    @property
    def tables(self) -> tuple[Any, ...]:
        """Arguments that every kernel begins with."""
        return self.token, self.segment, self.pair, self.lengths, self.B, self.T, *self.strides

    def blocks(self) -> dict[str, Any]:
        """Return sizes of blocks and number of warps, as keyword arguments of a kernel that keeps a matrix of pairs."""
        whole = self.P <= WHOLE
        size = self.P * max(self.P, self.R) if whole else ENTRIES
        N = (32 if INTERPRETED else min(8, max(1, 256 // size))) if whole else 1
        return {
            "C": self.C,
            "D": self.D,
            "N": N,
            "P": self.P,
            "R": self.R,
            "ROWS": self.P if whole else ENTRIES // self.P,
            "STAGES": 3 if whole else 1,
            **options(8 * size),
        }

    def programs(self, N: int) -> int:
        """Return the number of programs for all sequences, N each."""
        return triton.cdiv(self.B, N)

    def scratch(self, *shape: int, dtype: torch.dtype | None = None) -> Tensor:
        """Return memory for a kernel, not filled."""
        return torch.empty(shape, dtype=dtype or self.token.dtype, device=self.token.device)


class SuffixTables(NamedTuple):
    """Best scores, or log-sums, of all from token t on, and what was subtracted; float64, not filled in the padding.

    The first token of `begun` is NaN for a sequence with a score of +inf or NaN.
    """

    after: Tensor  # (B, T, C), after a segment of a type that ends before t
    begun: Tensor  # (B, T, C), beginning with a segment of a type at t
    levels: Tensor  # (B, T), the highest score of each token
    taken_off: Tensor  # (B,), the sum of these


def suffix_tables(lattice: SegmentArguments, summed: bool) -> SuffixTables:
    """Return the best scores or, with `summed`, the log-sums from each token on."""
    B, T, C = lattice.token.shape
    after, begun, carried = (lattice.scratch(B, n, C, dtype=torch.float64) for n in (T, T, 2))
    levels, taken_off = lattice.scratch(B, T, dtype=torch.float64), lattice.scratch(B, dtype=torch.float64)
    tables = SuffixTables(after, begun, levels, taken_off)
    blocks = lattice.blocks()
    with on_device_of(lattice.token):
        _fill_suffixes[(lattice.programs(blocks["N"]),)](*lattice.tables, *tables, carried, SUMMED=summed, **blocks)
    return tables


@triton.jit(do_not_specialize=SHAPES)
def _fill_suffixes(
    token, segment, pair, lengths, B, T, sb, st, sd, sc, pi, pj, after, begun, levels, taken_off, carried,
    SUMMED: constexpr,
    C: constexpr, D: constexpr, N: constexpr, P: constexpr, R: constexpr, ROWS: constexpr, STAGES: constexpr,
):  # fmt: skip
    """Fill after and begun (B, T, C), levels (B, T), taken_off (B,); carried (B, 2, C) is memory."""
    b, length, longest = sequences(lengths, B, T, N)
    ends, run = rows_of_end(length, N, P, R), tl.zeros((N, R, P), tl.float64)
    table, invalid = pairs_of(pair, pi, pj, length, C, P, ROWS)
    total = tl.zeros((N,), tl.float64)
    for back in tl.range(0, longest, num_stages=STAGES):
        t = longest - 1 - back
        real = t < length
        level, _, scores, run, invalid = segments_from(
            token, segment, b, t, length, run, invalid, T, sb, st, sd, sc, C, D, N, P, R
        )  # fmt: skip
        tl.store(levels + b * T + t, level, mask=real)
        total += tl.where(real, level, 0.0)
        here = best_or_log_sum(scores + ends, 1, SUMMED)
        put_rows(begun, here, b, t, real, C, P, T)
        following = over_types(table, here, pair, pi, pj, carried, b, t, real, SUMMED, C, P, ROWS)
        put_rows(after, following, b, t, real, C, P, T)
        ends = replace_row(ends, following, t, real, R)
    tl.store(taken_off + b, total, mask=b < B)
    tl.debug_barrier()
    put_rows(begun, tl.full((N, P), float("nan"), tl.float64), b, 0, invalid > 0, C, P, T)


@triton.jit
def rows_of_end(length, N: constexpr, P: constexpr, R: constexpr):
    """Return scores (N, R, P) of what follows the ends of segments: 0 at the end of a sequence, -inf behind it."""
    last = tl.arange(0, R)[None, :] == (length & (R - 1))[:, None]
    return tl.where(last, 0.0, -float("inf")).to(tl.float64)[:, :, None] + tl.zeros((N, R, P), tl.float64)


@triton.jit
def replace_row(rows, row, u, real, R: constexpr):
    """Replace the row of token u in rows (N, R, P) by row (N, P), where real (N,)."""
    mine = real[:, None] & (tl.arange(0, R) == (u & (R - 1)))[None, :]
    return tl.where(mine[:, :, None], row[:, None, :], rows)


@triton.jit
def pairs_of(pair, pi, pj, length, C: constexpr, P: constexpr, ROWS: constexpr):
    """Return the pair scores (ROWS, P) of the first ROWS types, and 1 for invalid ones in sequences with pairs (N,)."""
    table = slab_of_pairs(pair, pi, pj, 0, C, P, ROWS)
    invalid = any_invalid(table[None, :, :], length > 1)
    for first in range(ROWS, P, ROWS):
        invalid |= any_invalid(slab_of_pairs(pair, pi, pj, first, C, P, ROWS)[None, :, :], length > 1)
    return table, invalid


@triton.jit
def slab_of_pairs(pair, pi, pj, first, C: constexpr, P: constexpr, ROWS: constexpr):
    """Load the pair scores (ROWS, P) of ROWS types before all types, -inf beyond the last one."""
    i, j = first + tl.arange(0, ROWS), tl.arange(0, P)
    place = (i * pi)[:, None] + (j * pj)[None, :]
    return tl.load(pair + place, mask=(i < C)[:, None] & (j < C)[None, :], other=-float("inf")).to(tl.float64)


@triton.jit
def over_types(
    table, scores, pair, pi, pj, carried, b, t, real, SUMMED: constexpr, C: constexpr, P: constexpr, ROWS: constexpr
):
    """Return for each type i (N, P) the best, or log-sum, of pair[i, j] + scores[j] over the types j.

    Of a matrix that is not in registers, slabs pass through; carried (B, 2, C) is memory.
    """
    if ROWS == P:
        found = best_or_log_sum(table[None, :, :] + scores[:, None, :], 2, SUMMED)
    else:
        for first in tl.range(0, P, ROWS, num_stages=3):
            slab = slab_of_pairs(pair, pi, pj, first, C, P, ROWS)
            some = best_or_log_sum(slab[None, :, :] + scores[:, None, :], 2, SUMMED)
            put_slab(carried, some, b, t % 2, real, first, 2, C, ROWS)
        tl.debug_barrier()
        found = rows_at(carried, b, t % 2, real, C, P, 2, -float("inf"))
    return found


@triton.jit
def put_slab(table, some, b, t, real, first, T, C: constexpr, ROWS: constexpr):
    """Store entries (N, ROWS) of a contiguous table (B, T, C) at token t, from type `first` on, where real."""
    i = first + tl.arange(0, ROWS)
    place = ((b * T + t) * C)[:, None] + i[None, :]
    tl.store(table + place, some.to(table.dtype.element_ty), mask=real[:, None] & (i < C)[None, :])


@triton.jit
def segments_at(segment, b, t, d, known, sb, st, sd, sc, C: constexpr, P: constexpr):
    """Load the scores (N, R, P) of segments of d + 1 tokens (R,) from tokens t (R,) on; -inf where not known (N, R)."""
    c = tl.arange(0, P)
    each = (b * sb)[:, None] + (t.to(tl.int64) * st + d * sd)[None, :]
    place = each[:, :, None] + (c * sc)[None, None, :]
    return tl.load(segment + place, mask=known[:, :, None] & (c < C)[None, None, :], other=-float("inf"))


@triton.jit
def put_segments(table, scores, b, t, d, known, T, C: constexpr, D: constexpr, P: constexpr):
    """Store scores (N, R, P) in a contiguous table (B, T, D, C), with the arguments of `segments_at`."""
    c = tl.arange(0, P)
    place = ((((b * T)[:, None] + t[None, :]) * D + d[None, :]) * C)[:, :, None] + c[None, None, :]
    tl.store(table + place, scores.to(table.dtype.element_ty), mask=known[:, :, None] & (c < C)[None, None, :])


@triton.jit
def fill_segments(
    table, number, b, length, longest, T, real, C: constexpr, D: constexpr, N: constexpr, P: constexpr, R: constexpr
):
    """Fill the segments (B, T, D, C) within sequences with a number, where real (N,)."""
    d = tl.arange(0, R)
    for t in range(0, longest):
        known = real[:, None] & (d < D)[None, :] & ((t + d)[None, :] < length[:, None])
        put_segments(table, tl.zeros((N, R, P), tl.float64) + number, b, tl.zeros_like(d) + t, d, known, T, C, D, P)


@triton.jit
def segments_from(
    token, segment, b, t, length, run, invalid, T, sb, st, sd, sc,
    C: constexpr, D: constexpr, N: constexpr, P: constexpr, R: constexpr,
):  # fmt: skip
    """Score the segments that begin at token t, those that end before token u in row u % R.

    Return the level of the token (N,), the numbers of tokens less 1 (R,), scores (N, R, P) with -inf for what does not
    fit, run (N, R, P), and the flags of invalid scores (N,).
    """
    real, row = t < length, tl.arange(0, R)
    own = rows_at(token, b, t, real, C, P, T, -float("inf"))
    invalid |= any_invalid(own, real)
    level = finite_or_zero(tl.max(own, 1)).to(tl.float64)
    own = own.to(tl.float64) - level[:, None]
    d = (row - t - 1) & (R - 1)
    longer = tl.where((d == 0)[None, :, None], 0.0, run) + own[:, None, :]
    run = tl.where(real[:, None, None], longer, run)
    known = (d < D)[None, :] & ((t + d)[None, :] < length[:, None])
    added = segments_at(segment, b, tl.zeros_like(d) + t, d, known, sb, st, sd, sc, C, P)
    invalid |= any_invalid(added, real)
    return level, d, run + added.to(tl.float64), run, invalid


@triton.jit
def segments_until(
    token, segment, levels, b, u, length, run, start, T, sb, st, sd, sc,
    C: constexpr, D: constexpr, N: constexpr, P: constexpr, R: constexpr,
):  # fmt: skip
    """Score the segments whose last token is u, those from token s on in row s % R.

    `start` (N, P) is where the sums from token u on begin. Return the numbers of tokens less 1 (R,), the mask of
    segments (N, R), scores (N, R, P) with -inf for what does not fit, and run (N, R, P).
    """
    real, row = u < length, tl.arange(0, R)
    own = rows_at(token, b, u, real, C, P, T, -float("inf")).to(tl.float64)
    own -= tl.load(levels + b * T + u, mask=real, other=0.0)[:, None]
    d = (u - row) & (R - 1)
    longer = tl.where((d == 0)[None, :, None], start[:, None, :], run) + own[:, None, :]
    run = tl.where(real[:, None, None], longer, run)
    known = ((d < D) & (d <= u))[None, :] & real[:, None]
    added = segments_at(segment, b, u - d, d, known, sb, st, sd, sc, C, P)
    return d, known, run + added.to(tl.float64), run
