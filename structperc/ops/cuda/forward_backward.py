"""Sums over all label sequences on CUDA: probabilities, samples, and log-sums over the next label.

Probabilities take one kernel, one pass each way, on logarithms in the type of the lattice. They keep their digits in
float32, because each token's scores are reduced by their level, the carried sums by the highest of the token before
(known by then, so that nothing waits for it), and these are summed in double precision. A pair's probability is that of
its first label times the share of the second in the sum over what follows: the exponentials of the backward pass serve
both. For stationary edges the sums of pairs are kept in registers, in double precision. Few long sequences are divided
into chunks; see `chunks`.

Samples take one kernel for sums backwards and one for draws forwards, both in double precision, as the reference. For
log-sums over the next label, tokens are independent: gradients of edges that all tokens share are summed by one
program per sequence, in a fixed order and in double precision; else up to 64 programs share the tokens.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton.language import constexpr

from structperc.ops.cuda import chunks
from structperc.ops.cuda.blocks import (
    INTERPRETED,
    SHAPES,
    WHOLE,
    KernelArguments,
    any_invalid,
    edges_at,
    finite_or_zero,
    follows_another,
    log_sum,
    on_device_of,
    options,
    padding_from,
    pairs_at,
    put_pairs,
    put_rows,
    rows_at,
    sequences,
    suffix_scores,
)


def forward_backward(unary: Tensor, edge: Tensor, lengths: Tensor, with_pairs: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Implement `structperc.ops.operators.forward_backward`."""
    lattice = KernelArguments(unary, edge, lengths)
    B, T, L = unary.shape
    chunk = chunks.chunk_length(B, T, L)
    C = triton.cdiv(T, max(chunk, 1))
    total, nodes = lattice.scratch(B), lattice.scratch(B, T, L)
    summed = torch.float64 if lattice.stationary and (L > WHOLE or C > 1) else unary.dtype  # else in registers
    shape = (B, max(C, 1) if lattice.stationary else T, L, L) if with_pairs else (0,)
    pairs = lattice.scratch(*shape, dtype=summed)
    if not B or not T:
        return total.zero_(), nodes, pairs.zero_().to(unary.dtype)
    blocks, before, later = lattice.blocks(), lattice.scratch(B, T, L), lattice.scratch(B, 2, L)
    borders = chunks.ChunkBorders(before, before, total, lattice.lengths)  # not read with one chunk
    if C > 1:
        borders = chunks.chunk_borders(lattice, chunk, summed=True)
    with on_device_of(unary):
        _both_passes[(lattice.programs(blocks), C)](
            *lattice.tables, *borders, before, later, nodes, pairs, chunk, PAIRS=with_pairs, **blocks
        )  # fmt: skip
    if with_pairs and lattice.stationary and C > 1:
        pairs = pairs.sum(1, keepdim=True)
    return borders.log_partition, nodes, pairs.to(unary.dtype)


@triton.jit(do_not_specialize=[*SHAPES, "chunk"])
def _both_passes(
    unary, edge, lengths, B, T, eb, et, ei, ej, outside_before, outside_after, total, known_invalid,
    before, later, nodes, pairs, chunk, PAIRS: constexpr,
    L: constexpr, N: constexpr, P: constexpr, ROWS: constexpr, STATIONARY: constexpr, STAGES: constexpr,
):  # fmt: skip
    """Fill total (B,), nodes (B, T, L), pairs (B, T or C, L, L); before (B, T, L) and later (B, 2, L) are memory.

    The programs of the second grid dimension share the tokens of a sequence. With more than one, total is not filled.
    """
    c, C = tl.program_id(1), tl.num_programs(1)
    b, length, longest = sequences(lengths, B, T, N)
    begin, end = c * chunk, tl.minimum((c + 1) * chunk, longest)
    start = rows_at(outside_before, b, c, (c > 0) & (length > begin), L, P, C, 0.0)
    carry, taken_off, invalid = _forwards(
        unary, edge, b, length, begin, end, T, eb, et, ei, ej, start, before, L, N, P, ROWS, STATIONARY, STAGES
    )  # fmt: skip
    invalid |= tl.load(known_invalid + b, mask=(b < B) & (C > 1), other=0).to(tl.int32)
    log_z = tl.where(length > 0, log_sum(carry, 1).to(tl.float64) + taken_off, 0.0)
    log_z = tl.where(invalid > 0, float("nan"), log_z)
    tl.store(total + b, log_z.to(total.dtype.element_ty), mask=(b < B) & (C == 1))
    tl.debug_barrier()
    carry = rows_at(outside_after, b, c, length > (c + 1) * chunk, L, P, C, 0.0)
    _backwards(
        unary, edge, b, length, begin, end, B, T, eb, et, ei, ej, carry, before, later, invalid, nodes, pairs, PAIRS,
        L, N, P, ROWS, STATIONARY, STAGES,
    )  # fmt: skip
    if tl.max(invalid, 0) > 0:
        tl.debug_barrier()
        _fill_invalid(b, length, begin, end, T, invalid, nodes, pairs, PAIRS, L, N, P, ROWS, STATIONARY)
        tl.debug_barrier()
    for t in range(tl.maximum(begin, padding_from(b, length, B, T)), tl.minimum((c + 1) * chunk, T)):
        padding = (b < B) & (t >= length)
        put_rows(nodes, tl.zeros((N, P), unary.dtype.element_ty), b, t, padding, L, P, T)
        if PAIRS and not STATIONARY:
            _fill_pairs(pairs, 0.0, b, t, padding, T, L, N, P, ROWS)
    if PAIRS and not STATIONARY:
        _fill_pairs(pairs, 0.0, b, 0, (b < B) & (c == 0), T, L, N, P, ROWS)


@triton.jit
def _forwards(
    unary, edge, b, length, begin, end, T, eb, et, ei, ej, start, before,
    L: constexpr, N: constexpr, P: constexpr, ROWS: constexpr, STATIONARY: constexpr, STAGES: constexpr,
):  # fmt: skip
    """Fill before (B, T, L) with log-sums up to each label of tokens begin..end - 1; start (N, P) are those before.

    Return those of the last tokens (N, P), the sum of what was subtracted (N,), and 1 for invalid sequences (N,).
    """
    j = tl.arange(0, P)
    carry = tl.zeros((N, P), unary.dtype.element_ty)
    invalid, taken_off = tl.zeros((N,), tl.int32), tl.zeros((N,), tl.float64)
    if STATIONARY and ROWS == P:
        table = edges_at(edge, b, 0, length > 0, j, j, eb, et, ei, ej, L)
        invalid = any_invalid(table, length > 1)
    for t in tl.range(begin, end, num_stages=STAGES):
        real, joined = t < length, follows_another(t, length) & (t > begin)
        own = rows_at(unary, b, t, real, L, P, T, -float("inf"))
        invalid |= any_invalid(own, real)
        level = finite_or_zero(tl.max(own, 1))
        highest = finite_or_zero(tl.max(carry, 1))  # of the token before: known when it is needed
        taken_off += tl.where(real, level.to(tl.float64) + highest.to(tl.float64), 0.0)
        if ROWS == P:
            if not STATIONARY:
                table = edges_at(edge, b, t, joined, j, j, eb, et, ei, ej, L)
                invalid |= any_invalid(table, joined)
            sums = tl.where(joined[:, None], log_sum(table + carry[:, :, None], 1), start)
            carry = tl.where(real[:, None], sums - highest[:, None] + (own - level[:, None]), carry)
            put_rows(before, carry, b, t, real, L, P, T)
        else:
            for first in tl.range(0, P, ROWS, num_stages=3):
                i = first + tl.arange(0, ROWS)
                slab = edges_at(edge, b, t, joined, j, i, eb, et, ei, ej, L)
                invalid |= any_invalid(slab, joined)
                sums = tl.where(joined[:, None], log_sum(slab + carry[:, :, None], 1), 0.0)
                place, mine = (b * T + t)[:, None] * L + i[None, :], real[:, None] & (i < L)[None, :]
                own_i = tl.load(unary + place, mask=mine, other=-float("inf"))
                tl.store(before + place, sums - highest[:, None] + (own_i - level[:, None]), mask=mine)
            tl.debug_barrier()
            carry = rows_at(before, b, t, real, L, P, T, -float("inf"))
    return carry, taken_off, invalid


@triton.jit
def _backwards(
    unary, edge, b, length, begin, end, B, T, eb, et, ei, ej, carry, before, later, invalid, nodes, pairs,
    PAIRS: constexpr,
    L: constexpr, N: constexpr, P: constexpr, ROWS: constexpr, STATIONARY: constexpr, STAGES: constexpr,
):  # fmt: skip
    """Fill nodes of tokens begin..end - 1, and pairs into the tokens after each, with probabilities.

    `carry` (N, P) are the log-sums from each label of token `end` on. Over 60 lines, since matrices in registers and
    slabs of them take turns within one loop over tokens.
    """
    j = tl.arange(0, P)
    if STATIONARY and ROWS == P:
        table = edges_at(edge, b, 0, length > 0, j, j, eb, et, ei, ej, L)
        if PAIRS:
            sums = tl.zeros((N, P, P), tl.float64)
    elif PAIRS and STATIONARY:
        _fill_pairs(pairs, 0.0, b, 0, b < B, 1, L, N, P, ROWS)
        tl.debug_barrier()
    for back in tl.range(0, end - begin, num_stages=STAGES):
        t = end - 1 - back
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
        node = rows_at(before, b, t, real, L, P, T, -float("inf")) + after
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
        put_pairs(pairs, sums, b, tl.program_id(1), b < B, j, j, tl.num_programs(1), L)


@triton.jit
def _fill_invalid(
    b, length, begin, end, T, invalid, nodes, pairs, PAIRS: constexpr,
    L: constexpr, N: constexpr, P: constexpr, ROWS: constexpr, STATIONARY: constexpr,
):  # fmt: skip
    """Fill nodes of tokens begin..end - 1, and pairs into the tokens after each, with NaN for invalid sequences."""
    for t in range(begin, end):
        spoilt = (invalid > 0) & (t < length)
        put_rows(nodes, tl.full((N, P), float("nan"), nodes.dtype.element_ty), b, t, spoilt, L, P, T)
        if PAIRS and not STATIONARY:
            _fill_pairs(pairs, float("nan"), b, t + 1, spoilt & (t + 1 < length), T, L, N, P, ROWS)
    if PAIRS and STATIONARY and ROWS != P:
        _fill_pairs(pairs, float("nan"), b, 0, (invalid > 0) & (length > 1), 1, L, N, P, ROWS)


@triton.jit
def _fill_pairs(pairs, number, b, t, real, T, L: constexpr, N: constexpr, P: constexpr, ROWS: constexpr):
    """Fill the entries (L, L) of pairs (B, T, L, L) at token t with a number, where real (N,)."""
    j = tl.arange(0, P)
    for first in range(0, P, ROWS):
        i = first + tl.arange(0, ROWS)
        put_pairs(pairs, tl.zeros((N, ROWS, P), pairs.dtype.element_ty) + number, b, t, real, i, j, T, L)


def sample(unary: Tensor, edge: Tensor, lengths: Tensor, noise: Tensor) -> Tensor:
    """Implement `structperc.ops.operators.sample`."""
    lattice = KernelArguments(unary, edge, lengths)
    (B, T, L), n = unary.shape, noise.shape[1]
    labels = lattice.scratch(B, n, T, dtype=torch.int64)
    if not labels.numel():
        return labels
    suffix, P = suffix_scores(lattice, torch.float64, summed=True), max(2, triton.next_power_of_2(L))
    N = 64 if INTERPRETED else max(1, 128 // P)
    noise = noise.to(unary.device, non_blocking=True).contiguous()
    with on_device_of(unary):
        _draw[(triton.cdiv(B * n, N),)](*lattice.tables, suffix, noise, labels, n, L=L, N=N, P=P, **options(0))
    return labels


@triton.jit(do_not_specialize=[*SHAPES, "n"])
def _draw(
    unary, edge, lengths, B, T, eb, et, ei, ej, suffix, noise, labels, n,
    L: constexpr, N: constexpr, P: constexpr,
):  # fmt: skip
    """Fill labels (B, n, T); a program draws N label sequences, of any sequences."""
    s = tl.program_id(0).to(tl.int64) * N + tl.arange(0, N)
    b = s // n
    length = tl.minimum(tl.load(lengths + b, mask=b < B, other=0), T)
    j = tl.arange(0, P)
    label = tl.zeros((N,), tl.int64)
    possible = b < B
    for t in range(0, T):
        real, joined = t < length, follows_another(t, length)
        place = (b * eb + (tl.zeros_like(b) + t) * et + label * ei)[:, None] + (j.to(tl.int64) * ej)[None, :]
        along = tl.load(edge + place, mask=joined[:, None] & (j < L)[None, :], other=0.0).to(tl.float64)
        scores = along + rows_at(suffix, b, t, real, L, P, T, -float("inf"))
        shares = tl.exp(scores - finite_or_zero(tl.max(scores, 1))[:, None])
        below = tl.cumsum(shares, 1)
        passed = tl.load(noise + s * T + t, mask=real, other=0.0) * tl.max(below, 1)
        found = tl.min(tl.where((below > passed[:, None]) & (shares > 0), j[None, :], P), 1)
        last = tl.max(tl.where(shares > 0, j[None, :], -1), 1)  # in case of rounding
        possible = possible & ((last >= 0) | (t >= length))
        label = tl.where(real & possible, tl.minimum(found, last), 0).to(tl.int64)
        tl.store(labels + s * T + t, label, mask=b < B)


SPLITS = 64  # programs that share the tokens of a sequence


def local_log_partition(unary: Tensor, edge: Tensor, lengths: Tensor) -> Tensor:
    """Implement `structperc.ops.operators.local_log_partition`."""
    lattice = KernelArguments(unary, edge, lengths)
    found = lattice.scratch(*unary.shape)
    if found.numel():
        blocks = lattice.blocks()
        with on_device_of(unary):
            _log_sums[(triton.cdiv(lattice.B * lattice.T, blocks["N"]),)](*lattice.tables, found, **blocks)
    return found


def local_log_partition_backward(unary: Tensor, edge: Tensor, lengths: Tensor, grad: Tensor) -> tuple[Tensor, Tensor]:
    """Implement `structperc.ops.operators.local_log_partition_backward`."""
    lattice = KernelArguments(unary, edge, lengths)
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
def _log_sums(
    unary, edge, lengths, B, T, eb, et, ei, ej, found,
    L: constexpr, N: constexpr, P: constexpr, ROWS: constexpr, STATIONARY: constexpr, STAGES: constexpr,
):  # fmt: skip
    """Fill found (B, T, L); a program works on N tokens of any sequences."""
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
def _shares(
    unary, edge, lengths, B, T, eb, et, ei, ej, grad, own, steps,
    L: constexpr, N: constexpr, P: constexpr, ROWS: constexpr, STATIONARY: constexpr, STAGES: constexpr,
):  # fmt: skip
    """Fill own (B, T, L) and steps (B, T or 1, L, L); programs of the second grid dimension share tokens."""
    work: constexpr = unary.dtype.element_ty
    b, length, _ = sequences(lengths, B, T, N)
    listed, j = b < B, tl.arange(0, P)
    start = tl.program_id(1)
    if STATIONARY and ROWS == P:
        sums = tl.zeros((N, P, P), tl.float64)
    elif start == 0:  # zeros for the first token, or for the sums
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
