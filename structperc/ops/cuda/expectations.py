"""Forward-backward on CUDA: one kernel, one pass each way, on logarithms.

Sums are of the lattice's own type. They keep their digits in float32, because each token's scores are levelled, the
carried sums are levelled by the highest of the token before (which is known by then: no reduction more to wait for),
and what was taken off is summed in double precision. A pair's probability is that of its first label times the share
of the second in the sum over what follows: the exponentials of the way back serve both. For stationary edges the sums
of pairs are kept in registers, in double precision.

In float32, for dense and for stationary edges:

L = 9     one warp, 16 x 16 entries; 75 and 80 registers: 25 programs on a multiprocessor; 1.15 kB (0.83 kB
          without pairs) and 0.18 kB a token, 512 exponentials, padding counted: 3.7 G tokens/s by bytes, 7.4 G by
          exponentials (16 a cycle)
L = 50    8 warps; 128 registers: 2 programs; 31 and 1 kB a token: 0.14 G tokens/s dense
L = 400   8 warps, slabs of 8 x 512; 118 and 127 registers: 2 programs; the edges are read three times, twice without
          pairs, and the pairs of stationary edges go through a table of float64 for each sequence: 2.6 MB a token or
          4.5 MB

In float64 registers are 146 and 150 at L = 9, 13 programs, and an exponential is some 40 instructions. Registers
are the compiler's, the rest is arithmetic: nothing here was measured.
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
    any_invalid,
    edges_at,
    finite_or_zero,
    follows_another,
    log_sum,
    on_device_of,
    padding_from,
    pairs_at,
    put_pairs,
    put_rows,
    rows_at,
    sequences,
)


def expectations(unary: Tensor, edge: Tensor, lengths: Tensor, with_pairs: bool) -> tuple[Tensor, Tensor, Tensor]:
    """The contract is that of `structperc.ops.expectations`."""
    lattice = Lattice(unary, edge, lengths)
    B, T, L = unary.shape
    total, nodes = lattice.scratch(B), lattice.scratch(B, T, L)
    summed = torch.float64 if lattice.stationary and L > WHOLE else unary.dtype  # in place, token by token
    pairs = lattice.scratch(B, 1 if lattice.stationary else T, L, L, dtype=summed) if with_pairs else lattice.scratch(0)
    if not B or not T:
        return total.zero_(), nodes, pairs.zero_().to(unary.dtype)
    blocks, later = lattice.blocks(), lattice.scratch(B, 2, L)
    with on_device_of(unary):
        _both_passes[(lattice.programs(blocks),)](
            *lattice.tables, later, total, nodes, pairs, PAIRS=with_pairs, **blocks
        )  # fmt: skip
    return total, nodes, pairs.to(unary.dtype)


@triton.jit(do_not_specialize=SHAPES)
def _both_passes(  # type: ignore[no-untyped-def]
    unary, edge, lengths, B, T, eb, et, ei, ej, later, total, nodes, pairs, PAIRS: constexpr,
    L: constexpr, N: constexpr, P: constexpr, ROWS: constexpr, STATIONARY: constexpr, STAGES: constexpr,
):  # fmt: skip
    """Fill total (B,), nodes (B, T, L), pairs (B, T or 1, L, L); later (B, 2, L) is for its own use.

    `nodes` holds the sums over all that ends in each label, levelled, until the way back turns them to probabilities.
    """
    work: constexpr = unary.dtype.element_ty
    b, length, longest = sequences(lengths, B, T, N)
    j = tl.arange(0, P)
    if STATIONARY and ROWS == P:
        table = edges_at(edge, b, 0, length > 0, j, j, eb, et, ei, ej, L)
    carry = tl.zeros((N, P), work)
    invalid = tl.zeros((N,), tl.int32)
    if STATIONARY and ROWS == P:
        invalid = any_invalid(table, length > 1)
    taken_off = tl.zeros((N,), tl.float64)
    for t in tl.range(0, longest, num_stages=STAGES):
        real, joined = t < length, follows_another(t, length)
        own = rows_at(unary, b, t, real, L, P, T, -float("inf"))
        invalid |= any_invalid(own, real)
        level = finite_or_zero(tl.max(own, 1))
        highest = finite_or_zero(tl.max(carry, 1))  # of the token before: ready when it is needed
        taken_off += tl.where(real, level.to(tl.float64) + highest.to(tl.float64), 0.0)
        if ROWS == P:
            if not STATIONARY:
                table = edges_at(edge, b, t, joined, j, j, eb, et, ei, ej, L)
                invalid |= any_invalid(table, joined)
            before = tl.where(joined[:, None], log_sum(table + carry[:, :, None], 1), 0.0)
            carry = tl.where(real[:, None], before - highest[:, None] + (own - level[:, None]), carry)
            put_rows(nodes, carry, b, t, real, L, P, T)
        else:
            for first in tl.range(0, P, ROWS, num_stages=3):
                i = first + tl.arange(0, ROWS)
                slab = edges_at(edge, b, t, joined, j, i, eb, et, ei, ej, L)
                invalid |= any_invalid(slab, joined)
                before_i = tl.where(joined[:, None], log_sum(slab + carry[:, :, None], 1), 0.0)
                place, mine = (b * T + t)[:, None] * L + i[None, :], real[:, None] & (i < L)[None, :]
                own_i = tl.load(unary + place, mask=mine, other=-float("inf"))
                tl.store(nodes + place, before_i - highest[:, None] + (own_i - level[:, None]), mask=mine)
            tl.debug_barrier()
            carry = rows_at(nodes, b, t, real, L, P, T, -float("inf"))
    log_z = tl.where(length > 0, log_sum(carry, 1).to(tl.float64) + taken_off, 0.0)
    log_z = tl.where(invalid > 0, float("nan"), log_z)
    tl.store(total + b, log_z.to(total.dtype.element_ty), mask=b < B)

    if PAIRS and STATIONARY:
        if ROWS == P:
            sums = tl.zeros((N, P, P), tl.float64)
        else:
            for first in range(0, P, ROWS):
                i = first + tl.arange(0, ROWS)
                put_pairs(pairs, tl.zeros((N, ROWS, P), work), b, 0, b < B, i, j, 1, L)
    tl.debug_barrier()
    carry = tl.zeros((N, P), work)
    for back in tl.range(0, longest, num_stages=STAGES):
        t = longest - 1 - back
        real, followed = t < length, t + 1 < length
        own = rows_at(unary, b, t, real, L, P, T, -float("inf"))
        own -= finite_or_zero(tl.max(own, 1))[:, None]
        highest = finite_or_zero(tl.max(carry, 1))
        if ROWS == P:
            if not STATIONARY:
                table = edges_at(edge, b, t + 1, followed, j, j, eb, et, ei, ej, L)
            through = tl.where(followed[:, None, None], table, -float("inf")) + carry[:, None, :]
            top = finite_or_zero(tl.max(through, 2))
            shares = tl.exp(through - top[:, :, None])
            sum_i = tl.sum(shares, 2)
            some = tl.where(sum_i > 0, sum_i, 1.0)
            after = tl.where(followed[:, None], tl.where(sum_i > 0, tl.log(some) + top, -float("inf")), 0.0)
        else:
            for first in tl.range(0, P, ROWS, num_stages=3):
                i = first + tl.arange(0, ROWS)
                slab = edges_at(edge, b, t + 1, followed, i, j, eb, et, ei, ej, L)
                after_i = tl.where(followed[:, None], log_sum(slab + carry[:, None, :], 2), 0.0)
                place, mine = (b * 2 + t % 2)[:, None] * L + i[None, :], real[:, None] & (i < L)[None, :]
                tl.store(later + place, after_i, mask=mine)
            tl.debug_barrier()
            after = rows_at(later, b, t % 2, real, L, P, 2, -float("inf"))
        node = rows_at(nodes, b, t, real, L, P, T, -float("inf")) + after
        node = tl.exp(node - finite_or_zero(tl.max(node, 1))[:, None])
        all_of_it = tl.sum(node, 1)
        node = node / tl.where(all_of_it > 0, all_of_it, 1.0)[:, None]
        put_rows(nodes, node, b, t, real, L, P, T)
        if PAIRS:
            if ROWS == P:
                pair = shares * (node / some)[:, :, None]
                if STATIONARY:
                    sums += pair.to(tl.float64)
                else:
                    put_pairs(pairs, pair, b, t + 1, followed, j, j, T, L)
            else:
                tl.debug_barrier()
                for first in range(0, P, ROWS):
                    i = first + tl.arange(0, ROWS)
                    slab = edges_at(edge, b, t + 1, followed, i, j, eb, et, ei, ej, L)
                    mine = followed[:, None] & (i < L)[None, :]
                    place = (b * 2 + t % 2)[:, None] * L + i[None, :]
                    after_i = finite_or_zero(tl.load(later + place, mask=mine, other=0.0))
                    node_i = tl.load(nodes + (b * T + t)[:, None] * L + i[None, :], mask=mine, other=0.0)
                    slab = tl.exp(slab + carry[:, None, :] - after_i[:, :, None]) * node_i[:, :, None]
                    if STATIONARY:
                        so_far = pairs_at(pairs, b, 0, followed, i, j, 1, L)
                        put_pairs(pairs, so_far + slab, b, 0, followed, i, j, 1, L)
                    else:
                        put_pairs(pairs, slab, b, t + 1, followed, i, j, T, L)
        carry = tl.where(real[:, None], after - highest[:, None] + own, carry)

    if PAIRS and STATIONARY and ROWS == P:
        sums = tl.where(((invalid > 0) & (length > 1))[:, None, None], float("nan"), sums)
    if tl.max(invalid, 0) > 0:
        tl.debug_barrier()
        for t in range(0, longest):
            spoilt = (invalid > 0) & (t < length)
            put_rows(nodes, tl.full((N, P), float("nan"), work), b, t, spoilt, L, P, T)
            if PAIRS and not (STATIONARY and ROWS == P):
                spoilt &= t > 0
                for first in range(0, P, ROWS):
                    i = first + tl.arange(0, ROWS)
                    unknown = tl.full((N, ROWS, P), float("nan"), work)
                    if STATIONARY:
                        put_pairs(pairs, unknown, b, 0, spoilt, i, j, 1, L)
                    else:
                        put_pairs(pairs, unknown, b, t, spoilt, i, j, T, L)
        tl.debug_barrier()
    nothing = tl.zeros((N, P), work)
    for t in range(padding_from(b, length, B, T), T):
        put_rows(nodes, nothing, b, t, (b < B) & (t >= length), L, P, T)
    if PAIRS:
        if STATIONARY:
            if ROWS == P:
                put_pairs(pairs, sums, b, 0, b < B, j, j, 1, L)
        else:
            for first in range(0, P, ROWS):
                i = first + tl.arange(0, ROWS)
                put_pairs(pairs, tl.zeros((N, ROWS, P), work), b, 0, b < B, i, j, T, L)
                for t in range(padding_from(b, length, B, T), T):
                    put_pairs(pairs, tl.zeros((N, ROWS, P), work), b, t, (b < B) & (t >= length), i, j, T, L)
