"""Viterbi on CUDA: one kernel, backwards over the tokens, forwards along the labels, then the score.

On the way back each label's best successor is kept, 2 bytes; the way forth is one dependent read of 2 bytes for each
token, from the cache; the score is read afterwards, 128 tokens at once. In float32, for dense and for stationary edges:

L = 9     one warp, 16 x 16 entries, 8 in each lane; 58 registers: 32 programs on a multiprocessor, 4,200 sequences at
          once; 490 and 134 bytes a token, of which the lattice itself is 360 and 36
L = 50    8 warps, 64 x 64 entries, 16 in each lane; 86 and 91 registers: 2 programs; 10.5 and 0.5 kB a token
L = 400   8 warps, slabs of 8 x 512; 64 registers, 33 kB of shared memory: 4 programs; 640 kB a token, for stationary
          edges from the second cache

By bytes that is 8.8 G and 32 G tokens/s at L = 9, 0.4 G dense at L = 50. Small batches are bound by latency: two
reductions and a conversion of layouts, some 0.2 us a token each way, so that 64 sequences of 50 tokens take as long as
one of them, about 20 us. Registers are the compiler's, the rest is arithmetic: nothing here was measured.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton.language import constexpr

from structperc.ops.cuda.blocks import (
    SHAPES,
    SOME_TOKENS,
    Lattice,
    any_invalid,
    edges_at,
    finite_or_zero,
    on_device_of,
    put_rows,
    rows_at,
    sequences,
)
from structperc.ops.cuda.paths import path_totals


def viterbi(unary: Tensor, edge: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """The contract is that of `structperc.ops.viterbi`."""
    lattice = Lattice(unary, edge, lengths)
    B, T, L = unary.shape
    scores, labels = lattice.scratch(B), lattice.scratch(B, T, dtype=torch.int64)
    if not B or not T:
        return scores.zero_(), labels
    blocks = lattice.blocks()
    following, carried = lattice.scratch(B, T, L, dtype=torch.int16), lattice.scratch(B, 2, L)
    with on_device_of(unary):
        _search[(lattice.programs(blocks),)](
            *lattice.tables, following, carried, scores, labels, TOKENS=SOME_TOKENS // blocks["N"], **blocks
        )  # fmt: skip
    return scores, labels


@triton.jit(do_not_specialize=SHAPES)
def _search(  # type: ignore[no-untyped-def]
    unary, edge, lengths, B, T, eb, et, ei, ej, following, carried, scores, labels,
    L: constexpr, N: constexpr, P: constexpr, ROWS: constexpr, STATIONARY: constexpr, STAGES: constexpr,
    TOKENS: constexpr,
):  # fmt: skip
    """Fill scores (B,) and labels (B, T); following (B, T, L) and carried (B, 2, L) are for its own use."""
    b, length, longest = sequences(lengths, B, T, N)
    j = tl.arange(0, P)
    after = tl.zeros((N, P), unary.dtype.element_ty)
    invalid = tl.zeros((N,), tl.int32)
    if STATIONARY and ROWS == P:
        table = edges_at(edge, b, 0, length > 0, j, j, eb, et, ei, ej, L)
        invalid = any_invalid(table, length > 1)
    for back in tl.range(0, longest, num_stages=STAGES):
        t = longest - 1 - back
        real, followed = t < length, t + 1 < length
        own = rows_at(unary, b, t, real, L, P, T, -float("inf"))
        invalid |= any_invalid(own, real)
        level = finite_or_zero(tl.max(own, 1))[:, None]
        if ROWS == P:
            if not STATIONARY:
                table = edges_at(edge, b, t + 1, followed, j, j, eb, et, ei, ej, L)
                invalid |= any_invalid(table, followed)
            best, choice = tl.max(table + after[:, None, :], 2, return_indices=True)
            onward = tl.where(followed[:, None], (own - level) + best, own - level)
            put_rows(following, choice, b, t, followed, L, P, T)
            after = tl.where(real[:, None], onward, after)
        else:
            for first in tl.range(0, P, ROWS, num_stages=3):
                i = first + tl.arange(0, ROWS)
                slab = edges_at(edge, b, t + 1, followed, i, j, eb, et, ei, ej, L)
                invalid |= any_invalid(slab, followed)
                best, choice = tl.max(slab + after[:, None, :], 2, return_indices=True)
                mine = real[:, None] & (i < L)[None, :]
                place = (b * T + t)[:, None] * L + i[None, :]
                own_i = tl.load(unary + place, mask=mine, other=-float("inf")) - level
                tl.store(following + place, choice.to(tl.int16), mask=mine)
                row = (b * 2 + t % 2)[:, None] * L + i[None, :]
                tl.store(carried + row, tl.where(followed[:, None], own_i + best, own_i), mask=mine)
            tl.debug_barrier()
            after = rows_at(carried, b, t % 2, real, L, P, 2, -float("inf"))
    legal = ((tl.max(after, 1) > -float("inf")) | (length <= 0)) & (invalid == 0)
    label = tl.where(legal, tl.argmax(after, 1), 0).to(tl.int64)
    tl.store(labels + b * T, label, mask=length > 0)
    tl.debug_barrier()
    for t in range(1, longest):
        label = tl.load(following + (b * T + t - 1) * L + label, mask=legal & (t < length), other=0).to(tl.int64)
        tl.store(labels + b * T + t, label, mask=t < length)
    tl.debug_barrier()
    total = path_totals(unary, edge, labels, b, b, length, longest, T, eb, et, ei, ej, L, N, TOKENS)
    total = tl.where(invalid > 0, float("nan"), tl.where(legal, total, -float("inf")))
    tl.store(scores + b, total.to(scores.dtype.element_ty), mask=b < B)
    for first in range(0, T, TOKENS):
        tokens = first + tl.arange(0, TOKENS)
        padding = (b < B)[:, None] & (tokens < T)[None, :] & (tokens[None, :] >= length[:, None])
        tl.store(labels + b[:, None] * T + tokens[None, :], tl.zeros((N, TOKENS), tl.int64), mask=padding)
