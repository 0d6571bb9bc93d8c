"""Layout of sequences and labels in blocks, reads and writes that kernels share, and best or summed suffix scores.

One program works on N sequences, each with its labels padded to a power of two, P; nothing beyond a sequence's end or
the last label is read, and it counts as impossible. Up to 64 labels a whole matrix of edge scores is in registers, and
so is the vector that a recursion carries; N is up to 8 sequences of few labels, so that the lanes of a warp are used,
else 1. Above, matrices pass through in slabs of ROWS labels, and the vector through a scratch row in global memory,
with a barrier at each token.

In a loop over tokens, the compiler issues reads that depend on no earlier token STAGES - 1 turns ahead, as asynchronous
copies to shared memory.
"""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton import knobs
from triton.language import constexpr

WHOLE = 64  # labels up to which a matrix of edge scores is kept in registers
ENTRIES = 4096  # of a matrix or slab that one program holds at once
INTERPRETED = knobs.runtime.interpret  # the interpreter takes as long for many sequences at once as for one
SOME_TOKENS = 128  # of all sequences of a program, where many tokens are read at once
SHAPES = ("B", "T", "eb", "et", "S")  # arguments that change from batch to batch: kernels are not specialised for them


def options(size: int) -> dict[str, Any]:
    """Return compile options of a kernel with `size` bytes in registers: a warp per 2 kB, 16 registers per thread."""
    return {"num_warps": min(8, max(1, size // 2048)), "enable_fp_fusion": False}


class KernelArguments:
    """Arguments of the kernels: contiguous unary scores, edge scores in place, lengths on the device."""

    def __init__(self, unary: Tensor, edge: Tensor, lengths: Tensor):
        self.B, self.T, self.L = unary.shape
        self.unary, self.edge = unary.detach().contiguous(), edge.detach().to(unary.dtype)
        self.lengths = lengths.to(unary.device, non_blocking=True).contiguous()
        self.stationary = edge.shape[1] == 1
        strides = [0 if n == 1 else s for n, s in zip(edge.shape[:2], edge.stride()[:2], strict=True)]
        self.strides = (*strides, *edge.stride()[2:])

    @property
    def tables(self) -> tuple[Any, ...]:
        """Arguments that every kernel begins with."""
        return self.unary, self.edge, self.lengths, self.B, self.T, *self.strides

    def blocks(self, work: torch.dtype | None = None) -> dict[str, Any]:
        """Return sizes of blocks and number of warps for sums of that type, as keyword arguments of a kernel."""
        P = max(2, triton.next_power_of_2(self.L))
        whole = P <= WHOLE
        N = (32 if INTERPRETED else min(8, max(1, 256 // P**2))) if whole else 1
        size = (P**2 if whole else ENTRIES) * (work or self.unary.dtype).itemsize
        return {
            "L": self.L,
            "N": N,
            "P": P,
            "ROWS": P if whole else ENTRIES // P,
            "STATIONARY": self.stationary,
            "STAGES": 3 if whole else 1,
            **options(size),
        }

    def programs(self, blocks: dict[str, Any]) -> int:
        """Return the number of programs for all sequences."""
        return triton.cdiv(self.B, blocks["N"])

    def scratch(self, *shape: int, dtype: torch.dtype | None = None) -> Tensor:
        """Return memory for a kernel, not filled."""
        return torch.empty(shape, dtype=dtype or self.unary.dtype, device=self.unary.device)


def on_device_of(x: Tensor) -> Any:
    """Return the context in which kernels run on the device of a tensor."""
    return torch.cuda.device_of(x)


@triton.jit
def sequences(lengths, B, T, N: constexpr):
    """Return indices (N,) and lengths (N,) of the sequences of this program, 0 beyond the last, and the longest."""
    b = tl.program_id(0).to(tl.int64) * N + tl.arange(0, N)
    length = tl.minimum(tl.load(lengths + b, mask=b < B, other=0), T)
    return b, length, tl.max(length, 0)


@triton.jit
def padding_from(b, length, B, T):
    """Return the first token that is padding in any of these sequences."""
    return tl.min(tl.where(b < B, length, T), 0)


@triton.jit
def follows_another(t, length):
    """Return a mask (N,): token t is real and not the first."""
    token = tl.zeros_like(length) + t
    return (token > 0) & (token < length)


@triton.jit
def rows_at(table, b, t, real, L: constexpr, P: constexpr, T, other: constexpr):
    """Load the rows (N, P) of a contiguous table (B, T, L) at token t of sequences b, `other` where not real."""
    j = tl.arange(0, P)
    place = ((b * T + t) * L)[:, None] + j[None, :]
    return tl.load(table + place, mask=real[:, None] & (j < L)[None, :], other=other)


@triton.jit
def put_rows(table, rows, b, t, real, L: constexpr, P: constexpr, T):
    """Store the rows (N, P) of a contiguous table (B, T, L) at token t of sequences b, where real."""
    j = tl.arange(0, P)
    place = ((b * T + t) * L)[:, None] + j[None, :]
    tl.store(table + place, rows.to(table.dtype.element_ty), mask=real[:, None] & (j < L)[None, :])


@triton.jit
def edges_at(edge, b, t, real, i, j, eb, et, ei, ej, L: constexpr):
    """Load the edge scores (N, I, J) into token t from labels i (I,) to labels j (J,); -inf where not real."""
    at = b * eb + (tl.zeros_like(b) + t) * et  # int64: a table may have more than 2^31 entries
    place = at[:, None, None] + (i.to(tl.int64) * ei)[None, :, None] + (j.to(tl.int64) * ej)[None, None, :]
    known = real[:, None, None] & (i < L)[None, :, None] & (j < L)[None, None, :]
    return tl.load(edge + place, mask=known, other=-float("inf"))


@triton.jit
def _places(b, t, real, i, j, T, L: constexpr):
    """Return indices and mask (N, I, J) of pairs in a contiguous table (B, T, L, L)."""
    place = ((b * T + t)[:, None, None] * L + i[None, :, None]) * L + j[None, None, :]
    return place, real[:, None, None] & (i < L)[None, :, None] & (j < L)[None, None, :]


@triton.jit
def pairs_at(table, b, t, real, i, j, T, L: constexpr):
    """Load entries (N, I, J) of a contiguous table (B, T, L, L) at token t; 0 where not real."""
    place, known = _places(b, t, real, i, j, T, L)
    return tl.load(table + place, mask=known, other=0.0)


@triton.jit
def put_pairs(table, pairs, b, t, real, i, j, T, L: constexpr):
    """Store entries (N, I, J) of a contiguous table (B, T, L, L) at token t, where real."""
    place, known = _places(b, t, real, i, j, T, L)
    tl.store(table + place, pairs.to(table.dtype.element_ty), mask=known)


@triton.jit
def finite_or_zero(x):
    """Replace -inf by 0, in maxima that are subtracted from scores."""
    return tl.where(x > -float("inf"), x, 0.0)


@triton.jit
def any_invalid(scores, real):
    """Return (N,) int32, 1 if a score (N, P) or (N, I, J) of a real token or pair is +inf or NaN."""
    found = tl.max((scores < float("inf")).to(tl.int32) ^ 1, 1)
    if len(scores.shape) == 3:
        found = tl.max(found, 1)
    return tl.where(real, found, 0)


@triton.jit
def log_sum(x, axis: constexpr):
    """Return the log of the sum of exponentials along an axis; NaN if a score is +inf or NaN."""
    highest = finite_or_zero(tl.max(x, axis))
    total = tl.sum(tl.exp(x - tl.expand_dims(highest, axis)), axis)
    return tl.where(total == 0, -float("inf"), tl.log(tl.where(total == 0, 1.0, total)) + highest)


@triton.jit
def best_or_log_sum(scores, axis: constexpr, SUMMED: constexpr):
    """Return the highest scores along an axis or, with SUMMED, the logs of the sums of exponentials."""
    return log_sum(scores, axis) if SUMMED else tl.max(scores, axis)


@triton.jit
def label_at(labels, s, t, real, T):
    """Load labels (S, C) of label sequences s (S,) at tokens t (C,), 0 where not real (S, C)."""
    return tl.load(labels + s[:, None] * T + t[None, :], mask=real, other=0)


def suffix_scores(lattice: KernelArguments, dtype: torch.dtype, summed: bool) -> Tensor:
    """Return the best score, or with `summed` the log-sum, from each label on (B, T, L), levels subtracted.

    It is computed in the given type. The padding is not filled. With a score of +inf or NaN, the results of the first
    token are NaN.
    """
    suffix, blocks = lattice.scratch(*lattice.unary.shape, dtype=dtype), lattice.blocks(dtype)
    with on_device_of(lattice.unary):
        _fill[(lattice.programs(blocks),)](*lattice.tables, suffix, SUMMED=summed, **blocks)
    return suffix


@triton.jit(do_not_specialize=SHAPES)
def _fill(
    unary, edge, lengths, B, T, eb, et, ei, ej, suffix, SUMMED: constexpr,
    L: constexpr, N: constexpr, P: constexpr, ROWS: constexpr, STATIONARY: constexpr, STAGES: constexpr,
):  # fmt: skip
    """Fill suffix (B, T, L)."""
    work: constexpr = suffix.dtype.element_ty
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
            joined = tl.where(followed[:, None], best_or_log_sum(table + after[:, None, :], 2, SUMMED), 0.0)
            after = tl.where(real[:, None], (own - level).to(work) + joined, after)
            put_rows(suffix, after, b, t, real, L, P, T)
        else:
            for first in tl.range(0, P, ROWS, num_stages=3):
                i = first + tl.arange(0, ROWS)
                slab = edges_at(edge, b, t + 1, followed, i, j, eb, et, ei, ej, L).to(work)
                invalid |= any_invalid(slab, followed)
                joined_i = tl.where(followed[:, None], best_or_log_sum(slab + after[:, None, :], 2, SUMMED), 0.0)
                place, mine = (b * T + t)[:, None] * L + i[None, :], real[:, None] & (i < L)[None, :]
                own_i = tl.load(unary + place, mask=mine, other=-float("inf")) - level
                tl.store(suffix + place, own_i.to(work) + joined_i, mask=mine)
            tl.debug_barrier()
            after = rows_at(suffix, b, t, real, L, P, T, -float("inf"))
    tl.debug_barrier()
    put_rows(suffix, tl.full((N, P), float("nan"), work), b, 0, invalid > 0, L, P, T)
