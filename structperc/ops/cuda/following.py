"""Log-sums over the next label on CUDA, and their gradients: tokens are independent of one another.

Log-sums: a program for N tokens, at L = 9 one warp and 31 registers, 32 programs on a multiprocessor; 400 bytes a token
with dense edges, 72 with stationary ones, whose exponentials (256 with padding, 16 a cycle) bound it at 15 G tokens/s.

Gradients: where edges are the same for all tokens, one program sums over those of its sequences in a fixed order, in
double precision; else 64 share them, since nothing is summed. 55 to 61 registers at L = 9; 760 bytes a token with
dense edges. What is shared by sequences is summed by torch afterwards. Registers are the compiler's, the rest is
arithmetic: nothing here was measured.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton.language import constexpr

from structperc.ops.cuda.blocks import (
    SHAPES,
    WHOLE,
    Lattice,
    edges_at,
    finite_or_zero,
    log_sum,
    on_device_of,
    pairs_at,
    put_pairs,
    put_rows,
    rows_at,
    sequences,
)

SPLITS = 64  # programs that share the tokens of a sequence, where no sum runs over them


def log_following(unary: Tensor, edge: Tensor, lengths: Tensor) -> Tensor:
    """The contract is that of `structperc.ops.log_following`."""
    lattice = Lattice(unary, edge, lengths)
    found = lattice.scratch(*unary.shape)
    if found.numel():
        blocks = lattice.blocks()
        with on_device_of(unary):
            _sums[(triton.cdiv(lattice.B * lattice.T, blocks["N"]),)](*lattice.tables, found, **blocks)
    return found


def following_shares(unary: Tensor, edge: Tensor, lengths: Tensor, grad: Tensor) -> tuple[Tensor, Tensor]:
    """The contract is that of `structperc.ops.following_shares`."""
    lattice = Lattice(unary, edge, lengths)
    if not unary.numel():
        return torch.zeros_like(unary), torch.zeros(edge.shape, dtype=edge.dtype, device=edge.device)
    (B, T, L), blocks = unary.shape, lattice.blocks()
    own = lattice.scratch(B, T, L)
    summed = torch.float64 if lattice.stationary and L > WHOLE else edge.dtype  # in place, token by token
    steps = lattice.scratch(B, edge.shape[1], L, L, dtype=summed)
    splits = 1 if lattice.stationary else min(SPLITS, T)
    with on_device_of(unary):
        _shares[(lattice.programs(blocks), splits)](
            *lattice.tables, grad.detach().contiguous(), own, steps, **blocks
        )  # fmt: skip
    return own, steps.sum_to_size(edge.shape).to(edge.dtype)


@triton.jit(do_not_specialize=SHAPES)
def _sums(  # type: ignore[no-untyped-def]
    unary, edge, lengths, B, T, eb, et, ei, ej, found,
    L: constexpr, N: constexpr, P: constexpr, ROWS: constexpr, STATIONARY: constexpr, STAGES: constexpr,
):  # fmt: skip
    """Fill found (B, T, L); a program works on N tokens of whatever sequences."""
    row = tl.program_id(0).to(tl.int64) * N + tl.arange(0, N)
    b, t = row // T, row % T
    listed = b < B
    followed = t + 1 < tl.minimum(tl.load(lengths + b, mask=listed, other=0), T)
    following = rows_at(unary, b, t + 1, followed, L, P, T, -float("inf"))
    j = tl.arange(0, P)
    for first in tl.range(0, P, ROWS, num_stages=3):
        i = first + tl.arange(0, ROWS)
        slab = edges_at(edge, b, t + 1, followed, i, j, eb, et, ei, ej, L)
        sums = log_sum(slab + following[:, None, :], 2)
        sums = tl.where(followed[:, None], tl.where(sums == -float("inf"), float("inf"), sums), 0.0)
        tl.store(found + row[:, None] * L + i[None, :], sums, mask=listed[:, None] & (i < L)[None, :])


@triton.jit(do_not_specialize=SHAPES)
def _shares(  # type: ignore[no-untyped-def]
    unary, edge, lengths, B, T, eb, et, ei, ej, grad, own, steps,
    L: constexpr, N: constexpr, P: constexpr, ROWS: constexpr, STATIONARY: constexpr, STAGES: constexpr,
):  # fmt: skip
    """Fill own (B, T, L) and steps (B, T or 1, L, L); the second dimension of the grid takes turns with the tokens."""
    work: constexpr = unary.dtype.element_ty
    b, length, _ = sequences(lengths, B, T, N)
    listed, j = b < B, tl.arange(0, P)
    start = tl.program_id(1)
    if STATIONARY and ROWS == P:
        sums = tl.zeros((N, P, P), tl.float64)
    elif start == 0:  # nothing goes into the first token, or nothing yet into the sums of all
        for first in range(0, P, ROWS):
            i = first + tl.arange(0, ROWS)
            put_pairs(steps, tl.zeros((N, ROWS, P), work), b, 0, listed, i, j, 1 if STATIONARY else T, L)
    if start == 0:
        put_rows(own, tl.zeros((N, P), work), b, 0, listed, L, P, T)
    for t in range(start + 1, T, tl.num_programs(1)):  # into token t
        joined = t < length
        following = rows_at(unary, b, t, joined, L, P, T, -float("inf"))
        total = tl.zeros((N, P), work)
        for first in range(0, P, ROWS):
            i = first + tl.arange(0, ROWS)
            through = edges_at(edge, b, t, joined, i, j, eb, et, ei, ej, L) + following[:, None, :]
            shares = tl.exp(through - finite_or_zero(tl.max(through, 2))[:, :, None])
            sum_i = tl.sum(shares, 2)
            mine = joined[:, None] & (i < L)[None, :]
            weight = tl.load(grad + (b * T + t - 1)[:, None] * L + i[None, :], mask=mine, other=0.0)
            shares = shares * (weight / tl.where(sum_i > 0, sum_i, 1.0))[:, :, None]
            total += tl.sum(shares, 1)
            if STATIONARY:
                if ROWS == P:
                    sums += shares.to(tl.float64)
                else:
                    tl.debug_barrier()
                    so_far = pairs_at(steps, b, 0, listed, i, j, 1, L)
                    put_pairs(steps, so_far + shares, b, 0, listed, i, j, 1, L)
            else:
                put_pairs(steps, shares, b, t, listed, i, j, T, L)
        put_rows(own, total, b, t, listed, L, P, T)
    if STATIONARY and ROWS == P:
        put_pairs(steps, sums, b, 0, listed, j, j, 1, L)
