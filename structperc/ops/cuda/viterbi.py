"""Viterbi on CUDA, and best scores before and after each label with their gradients.

Viterbi is one kernel: backwards over the tokens, keeping each label's best successor (2 bytes), forwards along these,
then the score of the path, many tokens at once. Few long sequences are searched in chunks; see `chunks`.

Best scores before and after run at the same time, two programs per sequence, in double precision, so that ties are
those of the reference. Their gradients take three loops in one program per sequence: best labels before; best labels
after, while the gradients of the scores before are pushed to the left; those of the scores after pushed to the right,
while the gradients of the lattice are written, each entry once. Torch then sums what sequences share: there are no
atomic additions, so that every run gives the same digits.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton.language import constexpr

from structperc.ops.cuda import chunks
from structperc.ops.cuda.blocks import (
    SHAPES,
    SOME_TOKENS,
    KernelArguments,
    any_invalid,
    edges_at,
    finite_or_zero,
    follows_another,
    on_device_of,
    padding_from,
    pairs_at,
    put_pairs,
    put_rows,
    rows_at,
    sequences,
)
from structperc.ops.cuda.paths import path_totals


def viterbi(unary: Tensor, edge: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """Implement `structperc.ops.operators.viterbi`."""
    lattice = KernelArguments(unary, edge, lengths)
    B, T, L = unary.shape
    scores, labels = lattice.scratch(B), lattice.scratch(B, T, dtype=torch.int64)
    if not B or not T:
        return scores.zero_(), labels
    blocks, following = lattice.blocks(), lattice.scratch(B, T, L, dtype=torch.int16)
    chunk = chunks.chunk_length(B, T, L)
    if chunk < T:
        return _search_in_chunks(lattice, chunk, following, labels), labels
    carried = lattice.scratch(B, 2, L)
    with on_device_of(unary):
        _search[(lattice.programs(blocks),)](
            *lattice.tables, following, carried, scores, labels, TOKENS=SOME_TOKENS // blocks["N"], **blocks
        )  # fmt: skip
    return scores, labels


@triton.jit(do_not_specialize=SHAPES)
def _search(
    unary, edge, lengths, B, T, eb, et, ei, ej, following, carried, scores, labels,
    L: constexpr, N: constexpr, P: constexpr, ROWS: constexpr, STATIONARY: constexpr, STAGES: constexpr,
    TOKENS: constexpr,
):  # fmt: skip
    """Fill scores (B,) and labels (B, T); following (B, T, L) and carried (B, 2, L) are memory."""
    b, length, longest = sequences(lengths, B, T, N)
    nothing = tl.zeros((N, P), unary.dtype.element_ty)
    after, invalid = _suffix_scores(
        unary, edge, b, length, 0, longest, T, eb, et, ei, ej, nothing, following, carried,
        L, N, P, ROWS, STATIONARY, STAGES,
    )  # fmt: skip
    legal = ((tl.max(after, 1) > -float("inf")) | (length <= 0)) & (invalid == 0)
    label = tl.where(legal, tl.argmax(after, 1), 0).to(tl.int64)
    tl.store(labels + b * T, label, mask=length > 0)
    tl.debug_barrier()
    for t in range(1, longest):
        label = tl.load(following + (b * T + t - 1) * L + label, mask=legal & (t < length), other=0).to(tl.int64)
        tl.store(labels + b * T + t, label, mask=t < length)
    tl.debug_barrier()
    total = path_totals(unary, edge, labels, b, b, length, 0, longest, T, eb, et, ei, ej, L, N, TOKENS)
    total = tl.where(invalid > 0, float("nan"), tl.where(legal, total, -float("inf")))
    tl.store(scores + b, total.to(scores.dtype.element_ty), mask=b < B)
    for first in range(0, T, TOKENS):
        tokens = first + tl.arange(0, TOKENS)
        padding = (b < B)[:, None] & (tokens < T)[None, :] & (tokens[None, :] >= length[:, None])
        tl.store(labels + b[:, None] * T + tokens[None, :], tl.zeros((N, TOKENS), tl.int64), mask=padding)


def _search_in_chunks(lattice: KernelArguments, chunk: int, following: Tensor, labels: Tensor) -> Tensor:
    """Fill labels (B, T) by a scan over chunks, and return scores (B,); following (B, T, L) is memory."""
    blocks, C = lattice.blocks(), triton.cdiv(lattice.T, chunk)
    sizes = {name: blocks[name] for name in ("L", "N", "num_warps", "enable_fp_fusion")}
    _, after, _, invalid = chunks.chunk_borders(lattice, chunk, summed=False)
    jumps, first = lattice.scratch(lattice.B, C, lattice.L, dtype=torch.int16), torch.empty_like(lattice.lengths)
    scores, grid = lattice.scratch(lattice.B, C, dtype=torch.float64), (lattice.programs(blocks), C)
    with on_device_of(lattice.unary):
        _search_chunk[grid](*lattice.tables, after, invalid, following, jumps, first, chunk, **blocks)
        _follow_chunk[grid](lattice.lengths, lattice.B, lattice.T, following, jumps, first, labels, chunk, **sizes)
        _score_chunk[grid](*lattice.tables, labels, scores, chunk, TOKENS=SOME_TOKENS // blocks["N"], **sizes)
    score = torch.where(first >= 0, scores.sum(1), -torch.inf)
    return score.masked_fill(invalid > 0, torch.nan).to(lattice.unary.dtype)


@triton.jit(do_not_specialize=[*SHAPES, "chunk"])
def _search_chunk(
    unary, edge, lengths, B, T, eb, et, ei, ej, after, invalid, following, jumps, first, chunk,
    L: constexpr, N: constexpr, P: constexpr, ROWS: constexpr, STATIONARY: constexpr, STAGES: constexpr,
):  # fmt: skip
    """Fill following (B, T, L); jumps (B, C, L), the best label of the first token after a chunk for each of its first.

    The first label of each sequence is written to first (B,), -1 if the sequence is invalid or impossible.
    """
    c, C = tl.program_id(1), tl.num_programs(1)
    b, length, longest = sequences(lengths, B, T, N)
    begin, end = c * chunk, tl.minimum((c + 1) * chunk, longest)
    carry = rows_at(after, b, c, length > end, L, P, C, 0.0)
    carry, _ = _suffix_scores(
        unary, edge, b, length, begin, end, T, eb, et, ei, ej, carry, following, after, L, N, P, ROWS, STATIONARY,
        STAGES,
    )  # fmt: skip
    if c == 0:
        legal = ((tl.max(carry, 1) > -float("inf")) | (length <= 0)) & (tl.load(invalid + b, mask=b < B, other=1) == 0)
        tl.store(first + b, tl.where(legal, tl.argmax(carry, 1), -1).to(tl.int64), mask=b < B)
    tl.debug_barrier()
    label = tl.zeros((N, P), tl.int64) + tl.arange(0, P)[None, :]
    for t in range(begin, end):
        known = (t + 1 < length)[:, None] & (label < L)
        label = tl.load(following + ((b * T + t) * L)[:, None] + label, mask=known, other=0).to(tl.int64)
    put_rows(jumps, label, b, c, b < B, L, P, C)


@triton.jit(do_not_specialize=["B", "T", "chunk"])
def _follow_chunk(lengths, B, T, following, jumps, first, labels, chunk, L: constexpr, N: constexpr):
    """Fill labels (B, T)."""
    c, C = tl.program_id(1), tl.num_programs(1)
    b, length, _ = sequences(lengths, B, T, N)
    label = tl.load(first + b, mask=b < B, other=-1)
    legal, label = label >= 0, tl.maximum(label, 0)
    for earlier in range(0, c):
        label = tl.load(jumps + (b * C + earlier) * L + label, mask=legal, other=0).to(tl.int64)
    for t in range(c * chunk, tl.minimum((c + 1) * chunk, T)):
        tl.store(labels + b * T + t, label, mask=b < B)  # 0 in the padding
        known = legal & (t + 1 < length)
        label = tl.load(following + (b * T + t) * L + label, mask=known, other=0).to(tl.int64)


@triton.jit(do_not_specialize=[*SHAPES, "chunk"])
def _score_chunk(
    unary, edge, lengths, B, T, eb, et, ei, ej, labels, scores, chunk, L: constexpr, N: constexpr, TOKENS: constexpr
):
    """Fill scores (B, C) with those of the tokens of each chunk and of the edges into them."""
    c, C = tl.program_id(1), tl.num_programs(1)
    b, length, longest = sequences(lengths, B, T, N)
    begin, end = c * chunk, (c + 1) * chunk
    length, longest = tl.minimum(length, end), tl.minimum(longest, end)
    total = path_totals(unary, edge, labels, b, b, length, begin, longest, T, eb, et, ei, ej, L, N, TOKENS)
    tl.store(scores + b * C + c, total, mask=b < B)


@triton.jit
def _suffix_scores(
    unary, edge, b, length, begin, end, T, eb, et, ei, ej, after, following, carried,
    L: constexpr, N: constexpr, P: constexpr, ROWS: constexpr, STATIONARY: constexpr, STAGES: constexpr,
):  # fmt: skip
    """Fill following (B, T, L) with the best successor of each label at tokens begin..end - 1.

    `after` (N, P) are the best scores from each label of token `end` on, 0 where it is padding.
    Return those of token `begin`, and 1 for sequences with an invalid score (N,).
    """
    j = tl.arange(0, P)
    invalid = tl.zeros((N,), tl.int32)
    if STATIONARY and ROWS == P:
        table = edges_at(edge, b, 0, length > 0, j, j, eb, et, ei, ej, L)
        invalid = any_invalid(table, length > 1)
    for back in tl.range(0, end - begin, num_stages=STAGES):
        t = end - 1 - back
        real, followed = t < length, t + 1 < length
        own = rows_at(unary, b, t, real, L, P, T, -float("inf"))
        invalid |= any_invalid(own, real)
        level = finite_or_zero(tl.max(own, 1))[:, None]
        if ROWS == P:
            if not STATIONARY:
                table = edges_at(edge, b, t + 1, followed, j, j, eb, et, ei, ej, L)
                invalid |= any_invalid(table, followed)
            best, choice = tl.max(table + after[:, None, :], 2, return_indices=True)
            suffix = tl.where(followed[:, None], (own - level) + best, own - level)
            put_rows(following, choice, b, t, followed, L, P, T)
            after = tl.where(real[:, None], suffix, after)
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
    return after, invalid


def best_before_and_after(unary: Tensor, edge: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """Implement `structperc.ops.operators.best_before_and_after`."""
    lattice = KernelArguments(unary, edge, lengths)
    (B, T, L), blocks = unary.shape, lattice.blocks(torch.float64)
    before, after = lattice.scratch(B, T, L), lattice.scratch(B, T, L)
    if before.numel():
        carried = lattice.scratch(2, B, 2, L, dtype=torch.float64)
        with on_device_of(unary):
            _before_and_after[(lattice.programs(blocks), 2)](*lattice.tables, carried, before, after, **blocks)
    return before, after


def best_before_and_after_backward(
    unary: Tensor, edge: Tensor, lengths: Tensor, grad_before: Tensor, grad_after: Tensor
) -> tuple[Tensor, Tensor]:
    """Implement `structperc.ops.operators.best_before_and_after_backward`."""
    lattice = KernelArguments(unary, edge, lengths)
    (B, T, L), blocks = unary.shape, lattice.blocks(torch.float64)
    if not unary.numel():
        return torch.zeros_like(unary), torch.zeros(edge.shape, dtype=edge.dtype, device=edge.device)
    own = lattice.scratch(B, T, L)
    steps = lattice.scratch(B, edge.shape[1], L, L, dtype=torch.float64 if lattice.stationary else edge.dtype)
    earlier, later = (lattice.scratch(B, T, L, dtype=torch.int16) for _ in range(2))
    before, after = (lattice.scratch(B, T, L, dtype=torch.float64) for _ in range(2))
    grads = (x.detach().contiguous() for x in (grad_before, grad_after))
    with on_device_of(unary):
        _push[(lattice.programs(blocks),)](
            *lattice.tables, *grads, earlier, later, before, after, own, steps, **blocks
        )  # fmt: skip
    return own, steps.sum_to_size(edge.shape).to(edge.dtype)


@triton.jit
def _one_way(
    unary, edge, lengths, B, T, eb, et, ei, ej, carried, found, onwards: constexpr,
    L: constexpr, N: constexpr, P: constexpr, ROWS: constexpr, STATIONARY: constexpr, STAGES: constexpr,
):  # fmt: skip
    """Fill found (B, T, L) with the best scores before each label or, `onwards`, after it."""
    b, length, longest = sequences(lengths, B, T, N)
    j = tl.arange(0, P)
    carry = tl.zeros((N, P), tl.float64)
    invalid = tl.zeros((N,), tl.int32)
    if STATIONARY and ROWS == P:
        table = edges_at(edge, b, 0, length > 0, j, j, eb, et, ei, ej, L).to(tl.float64)
        invalid = any_invalid(table, length > 1)
    for turn in tl.range(0, longest, num_stages=STAGES):
        t = longest - 1 - turn if onwards else turn
        into = t + 1 if onwards else t
        real = t < length
        joined = follows_another(into, length)
        own = rows_at(unary, b, t, real, L, P, T, -float("inf")).to(tl.float64)
        invalid |= any_invalid(own, real)
        if ROWS == P:
            if not STATIONARY:
                table = edges_at(edge, b, into, joined, j, j, eb, et, ei, ej, L).to(tl.float64)
                invalid |= any_invalid(table, joined)
            best = tl.max(table + carry[:, None, :], 2) if onwards else tl.max(table + carry[:, :, None], 1)
            best = tl.where(joined[:, None], best, 0.0)
            put_rows(found, best, b, t, real, L, P, T)
            carry = tl.where(real[:, None], best + own, carry)
        else:
            for first in tl.range(0, P, ROWS, num_stages=3):
                i = first + tl.arange(0, ROWS)
                if onwards:
                    slab = edges_at(edge, b, into, joined, i, j, eb, et, ei, ej, L).to(tl.float64)
                    invalid |= any_invalid(slab, joined)
                    best_i = tl.max(slab + carry[:, None, :], 2)
                else:
                    slab = edges_at(edge, b, into, joined, j, i, eb, et, ei, ej, L).to(tl.float64)
                    invalid |= any_invalid(slab, joined)
                    best_i = tl.max(slab + carry[:, :, None], 1)
                best_i = tl.where(joined[:, None], best_i, 0.0)
                mine = real[:, None] & (i < L)[None, :]
                place = (b * T + t)[:, None] * L + i[None, :]
                tl.store(found + place, best_i.to(found.dtype.element_ty), mask=mine)
                tl.store(carried + (b * 2 + t % 2)[:, None] * L + i[None, :], best_i, mask=mine)
            tl.debug_barrier()
            carry = rows_at(carried, b, t % 2, real, L, P, 2, -float("inf")) + own
    if tl.max(invalid, 0) > 0:
        tl.debug_barrier()
        for t in range(0, longest):
            put_rows(found, tl.full((N, P), float("nan"), tl.float64), b, t, (invalid > 0) & (t < length), L, P, T)
    for t in range(padding_from(b, length, B, T), T):
        put_rows(found, tl.zeros((N, P), tl.float64), b, t, (b < B) & (t >= length), L, P, T)


@triton.jit(do_not_specialize=SHAPES)
def _before_and_after(
    unary, edge, lengths, B, T, eb, et, ei, ej, carried, before, after,
    L: constexpr, N: constexpr, P: constexpr, ROWS: constexpr, STATIONARY: constexpr, STAGES: constexpr,
):  # fmt: skip
    if tl.program_id(1) == 0:
        _one_way(
            unary, edge, lengths, B, T, eb, et, ei, ej, carried, before, False, L, N, P, ROWS, STATIONARY, STAGES
        )  # fmt: skip
    else:
        _one_way(
            unary, edge, lengths, B, T, eb, et, ei, ej, carried + B * 2 * L, after, True,
            L, N, P, ROWS, STATIONARY, STAGES,
        )  # fmt: skip


@triton.jit(do_not_specialize=SHAPES)
def _push(
    unary, edge, lengths, B, T, eb, et, ei, ej, grad_before, grad_after, earlier, later, before, after, own, steps,
    L: constexpr, N: constexpr, P: constexpr, ROWS: constexpr, STATIONARY: constexpr, STAGES: constexpr,
):  # fmt: skip
    """Fill own (B, T, L) and steps (B, T or 1, L, L); the tables before them are memory (B, T, L).

    Over 60 lines, since the three loops over tokens replace each other's tables in place.
    """
    b, length, longest = sequences(lengths, B, T, N)
    j = tl.arange(0, P)
    for t in range(0, longest):
        joined = follows_another(t, length)
        carry = rows_at(before, b, t - 1, joined, L, P, T, -float("inf"))
        carry += rows_at(unary, b, t - 1, joined, L, P, T, -float("inf"))
        for first in range(0, P, ROWS):
            i = first + tl.arange(0, ROWS)
            slab = edges_at(edge, b, t, joined, j, i, eb, et, ei, ej, L).to(tl.float64)
            best, choice = tl.max(slab + carry[:, :, None], 1, return_indices=True)
            mine = (t < length)[:, None] & (i < L)[None, :]
            place = (b * T + t)[:, None] * L + i[None, :]
            tl.store(earlier + place, tl.where(best > -float("inf"), choice, -1).to(tl.int16), mask=mine)
            tl.store(before + place, tl.where(joined[:, None], best, 0.0), mask=mine)
        tl.debug_barrier()
    for back in range(0, longest):  # now `before` is replaced by its gradients
        t = longest - 1 - back
        followed = t + 1 < length
        pushed = rows_at(before, b, t + 1, followed, L, P, T, 0.0)
        onto = rows_at(earlier, b, t + 1, followed, L, P, T, -1)
        carry = rows_at(after, b, t + 1, followed, L, P, T, -float("inf"))
        carry += rows_at(unary, b, t + 1, followed, L, P, T, -float("inf"))
        for first in range(0, P, ROWS):
            i = first + tl.arange(0, ROWS)
            slab = edges_at(edge, b, t + 1, followed, i, j, eb, et, ei, ej, L).to(tl.float64)
            best, choice = tl.max(slab + carry[:, None, :], 2, return_indices=True)
            received = tl.sum(tl.where(onto[:, None, :] == i[None, :, None], pushed[:, None, :], 0.0), 2)
            mine = (t < length)[:, None] & (i < L)[None, :]
            place = (b * T + t)[:, None] * L + i[None, :]
            tl.store(later + place, tl.where(best > -float("inf"), choice, -1).to(tl.int16), mask=mine)
            tl.store(after + place, tl.where(followed[:, None], best, 0.0), mask=mine)
            tl.store(before + place, tl.load(grad_before + place, mask=mine, other=0.0) + received, mask=mine)
        tl.debug_barrier()
    nothing = tl.zeros((N, P), tl.float64)
    rows = tl.where(b < B, T, 0)  # of each sequence's tables
    first_row = rows_at(grad_after, b, 0, length > 0, L, P, T, 0.0)
    put_rows(after, first_row, b, 0, length > 0, L, P, T)
    put_rows(own, nothing, b, 0, b < B, L, P, T)
    if not STATIONARY:
        for first in range(0, P, ROWS):
            i = first + tl.arange(0, ROWS)
            put_pairs(steps, tl.zeros((N, ROWS, P), tl.float64), b, 0, b < B, i, j, T, L)
    tl.debug_barrier()
    for t in range(0, T):  # and `after` by its gradients, zero in the padding
        followed = t + 1 < length
        pushed = rows_at(before, b, t + 1, followed, L, P, T, 0.0)
        onto = rows_at(earlier, b, t + 1, followed, L, P, T, -1)
        total = tl.zeros((N, P), tl.float64)
        for first in range(0, P, ROWS):
            i = first + tl.arange(0, ROWS)
            known, mine = (b < B)[:, None] & (i < L)[None, :], followed[:, None] & (i < L)[None, :]
            place = (b * T + t)[:, None] * L + i[None, :]
            forth = tl.where(onto[:, None, :] == i[None, :, None], pushed[:, None, :], 0.0)
            chosen = tl.load(later + place, mask=mine, other=-1)
            sent = tl.load(after + place, mask=mine, other=0.0)
            reverse = tl.where(chosen[:, :, None] == j[None, None, :], sent[:, :, None], 0.0)
            received = tl.load(own + place, mask=known, other=0.0) + tl.sum(forth, 2)
            tl.store(own + place, received.to(own.dtype.element_ty), mask=known)
            total += tl.sum(reverse, 1)
            if STATIONARY:
                sums = pairs_at(steps, b, 0, follows_another(t, rows), i, j, 1, L)
                put_pairs(steps, sums + forth + reverse, b, 0, b < B, i, j, 1, L)
            else:
                put_pairs(steps, forth + reverse, b, t + 1, follows_another(t + 1, rows), i, j, T, L)
        total_after = total + rows_at(grad_after, b, t + 1, followed, L, P, T, 0.0)
        put_rows(after, total_after, b, t + 1, followed, L, P, T)
        put_rows(own, total, b, t + 1, follows_another(t + 1, rows), L, P, T)
        tl.debug_barrier()
