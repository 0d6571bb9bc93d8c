"""From each label on: the best score, or the log-sum over all that may follow. Searches and draws begin with it.

Blocks are those of `viterbi`. At L = 9 one warp; best scores in float32 take 58 registers, 32 programs on a
multiprocessor, sums in float64 102 to 121, 16 to 19 programs; 400 bytes a token with dense edges, 72 with stationary
ones, in float32. Registers are the compiler's, the rest is arithmetic: nothing here was measured.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton.language import constexpr

from structperc.ops.cuda.blocks import (
    SHAPES,
    Lattice,
    any_invalid,
    edges_at,
    finite_or_zero,
    log_sum,
    on_device_of,
    put_rows,
    rows_at,
    sequences,
)


def onward_scores(lattice: Lattice, dtype: torch.dtype, summed: bool) -> Tensor:
    """-> (B, T, L) of that type, in which it is computed: scores levelled at each token; the padding is not filled.

    Where a score of a sequence is +inf or NaN, those of its first token are NaN.
    """
    onward, blocks = lattice.scratch(*lattice.unary.shape, dtype=dtype), lattice.blocks(dtype)
    with on_device_of(lattice.unary):
        _fill[(lattice.programs(blocks),)](*lattice.tables, onward, SUMMED=summed, **blocks)
    return onward


@triton.jit
def _joined(scores, SUMMED: constexpr):  # type: ignore[no-untyped-def]
    return log_sum(scores, 2) if SUMMED else tl.max(scores, 2)


@triton.jit(do_not_specialize=SHAPES)
def _fill(  # type: ignore[no-untyped-def]
    unary, edge, lengths, B, T, eb, et, ei, ej, onward, SUMMED: constexpr,
    L: constexpr, N: constexpr, P: constexpr, ROWS: constexpr, STATIONARY: constexpr, STAGES: constexpr,
):  # fmt: skip
    """Fill onward (B, T, L)."""
    work: constexpr = onward.dtype.element_ty
    b, length, longest = sequences(lengths, B, T, N)
    j = tl.arange(0, P)
    after = tl.zeros((N, P), work)
    invalid = tl.zeros((N,), tl.int32)
    if STATIONARY and ROWS == P:
        table = edges_at(edge, b, 0, length > 0, j, j, eb, et, ei, ej, L).to(work)
        invalid = any_invalid(table, length > 1)
    for back in tl.range(0, longest, num_stages=STAGES):
        t = longest - 1 - back
        real, followed = t < length, t + 1 < length
        own = rows_at(unary, b, t, real, L, P, T, -float("inf"))
        invalid |= any_invalid(own, real)
        level = finite_or_zero(tl.max(own, 1))[:, None]
        if ROWS == P:
            if not STATIONARY:
                table = edges_at(edge, b, t + 1, followed, j, j, eb, et, ei, ej, L).to(work)
                invalid |= any_invalid(table, followed)
            joined = tl.where(followed[:, None], _joined(table + after[:, None, :], SUMMED), 0.0)
            after = tl.where(real[:, None], (own - level).to(work) + joined, after)
            put_rows(onward, after, b, t, real, L, P, T)
        else:
            for first in tl.range(0, P, ROWS, num_stages=3):
                i = first + tl.arange(0, ROWS)
                slab = edges_at(edge, b, t + 1, followed, i, j, eb, et, ei, ej, L).to(work)
                invalid |= any_invalid(slab, followed)
                joined_i = tl.where(followed[:, None], _joined(slab + after[:, None, :], SUMMED), 0.0)
                place, mine = (b * T + t)[:, None] * L + i[None, :], real[:, None] & (i < L)[None, :]
                own_i = tl.load(unary + place, mask=mine, other=-float("inf")) - level
                tl.store(onward + place, own_i.to(work) + joined_i, mask=mine)
            tl.debug_barrier()
            after = rows_at(onward, b, t, real, L, P, T, -float("inf"))
    tl.debug_barrier()
    put_rows(onward, tl.full((N, P), float("nan"), work), b, 0, invalid > 0, L, P, T)
