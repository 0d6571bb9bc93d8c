"""What all kernels share: how sequences and labels are laid out in blocks, and the reads that their loops begin with.

One program works on N sequences, each with its labels padded to a power of two, P; what is beyond a sequence's end or
beyond the last label is never read, and counts as impossible. Up to 64 labels, a whole matrix of edge scores lies in
registers, and so does the vector that a recursion carries; N is up to 8 sequences of few labels, so that a tagger of
three does not leave most lanes of a warp idle, else 1. Above, matrices pass through in slabs of ROWS labels, and the
vector through a scratch row in global memory, with a barrier at each token.

Within a loop over tokens, reads that depend on no earlier token are issued STAGES - 1 turns ahead by the compiler, as
asynchronous copies to shared memory.
"""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton import knobs
from triton.language import constexpr

WHOLE = 64  # labels up to which a matrix of edge scores is kept in registers
ENTRIES = 4096  # of a matrix, or of a slab of it, that one program holds at once
INTERPRETED = knobs.runtime.interpret  # the interpreter takes as long for many sequences at once as for one
SOME_TOKENS = 128  # of all sequences of a program together, where many tokens are read at once
SHAPES = ("B", "T", "eb", "et", "S")  # arguments that change from batch to batch: no kernel is compiled anew for them


def options(size: int) -> dict[str, Any]:
    """How a kernel is compiled that holds so many bytes at once: with a warp for each 2 kB, 16 registers of a lane."""
    return {"num_warps": min(8, max(1, size // 2048)), "enable_fp_fusion": False}


class Lattice:
    """A batch as the kernels take it: contiguous unary scores, edge scores in place, lengths on the device."""

    def __init__(self, unary: Tensor, edge: Tensor, lengths: Tensor):
        self.B, self.T, self.L = unary.shape
        self.unary, self.edge = unary.detach().contiguous(), edge.detach().to(unary.dtype)
        self.lengths = lengths.to(unary.device, non_blocking=True).contiguous()
        self.stationary = edge.shape[1] == 1
        strides = [0 if n == 1 else s for n, s in zip(edge.shape[:2], edge.stride()[:2], strict=True)]
        self.strides = (*strides, *edge.stride()[2:])

    @property
    def tables(self) -> tuple[Any, ...]:
        """The arguments that every kernel begins with."""
        return self.unary, self.edge, self.lengths, self.B, self.T, *self.strides

    def blocks(self, work: torch.dtype | None = None) -> dict[str, Any]:
        """Sizes of blocks and number of warps for sums of that type, as keyword arguments of a kernel."""
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
        """How many programs it takes for all sequences."""
        return triton.cdiv(self.B, blocks["N"])

    def scratch(self, *shape: int, dtype: torch.dtype | None = None) -> Tensor:
        """Memory for a kernel's own use, not filled."""
        return torch.empty(shape, dtype=dtype or self.unary.dtype, device=self.unary.device)


def on_device_of(x: Tensor) -> Any:
    """Context in which kernels are launched on the device of a tensor."""
    return torch.cuda.device_of(x)


@triton.jit
def sequences(lengths, B, T, N: constexpr):  # type: ignore[no-untyped-def]
    """-> indices (N,) of this program's sequences, their lengths (N,), the longest of these; 0 beyond the last."""
    b = tl.program_id(0).to(tl.int64) * N + tl.arange(0, N)
    length = tl.minimum(tl.load(lengths + b, mask=b < B, other=0), T)
    return b, length, tl.max(length, 0)


@triton.jit
def padding_from(b, length, B, T):  # type: ignore[no-untyped-def]
    """-> the token from which some of these sequences are padding."""
    return tl.min(tl.where(b < B, length, T), 0)


@triton.jit
def follows_another(t, length):  # type: ignore[no-untyped-def]
    """-> (N,), whether token t is a real one of its sequence, and not the first."""
    token = tl.zeros_like(length) + t
    return (token > 0) & (token < length)


@triton.jit
def rows_at(table, b, t, real, L: constexpr, P: constexpr, T, other: constexpr):  # type: ignore[no-untyped-def]
    """-> (N, P), the rows of a contiguous table (B, T, L) at token t of sequences b, `other` where not real."""
    j = tl.arange(0, P)
    place = ((b * T + t) * L)[:, None] + j[None, :]
    return tl.load(table + place, mask=real[:, None] & (j < L)[None, :], other=other)


@triton.jit
def put_rows(table, rows, b, t, real, L: constexpr, P: constexpr, T):  # type: ignore[no-untyped-def]
    """Store (N, P) as the rows of a contiguous table (B, T, L) at token t of sequences b, where real."""
    j = tl.arange(0, P)
    place = ((b * T + t) * L)[:, None] + j[None, :]
    tl.store(table + place, rows.to(table.dtype.element_ty), mask=real[:, None] & (j < L)[None, :])


@triton.jit
def edges_at(edge, b, t, real, i, j, eb, et, ei, ej, L: constexpr):  # type: ignore[no-untyped-def]
    """-> (N, I, J), edge scores into token t from labels i (I,) to labels j (J,); -inf where not real."""
    at = b * eb + (tl.zeros_like(b) + t) * et  # of int64: a table may have more than 2^31 entries
    place = at[:, None, None] + (i.to(tl.int64) * ei)[None, :, None] + (j.to(tl.int64) * ej)[None, None, :]
    known = real[:, None, None] & (i < L)[None, :, None] & (j < L)[None, None, :]
    return tl.load(edge + place, mask=known, other=-float("inf"))


@triton.jit
def _places(b, t, real, i, j, T, L: constexpr):  # type: ignore[no-untyped-def]
    """-> (N, I, J), where pairs stand in a contiguous table (B, T, L, L), and whether they do."""
    place = ((b * T + t)[:, None, None] * L + i[None, :, None]) * L + j[None, None, :]
    return place, real[:, None, None] & (i < L)[None, :, None] & (j < L)[None, None, :]


@triton.jit
def pairs_at(table, b, t, real, i, j, T, L: constexpr):  # type: ignore[no-untyped-def]
    """-> (N, I, J), entries of a contiguous table (B, T, L, L) at token t; 0 where not real."""
    place, known = _places(b, t, real, i, j, T, L)
    return tl.load(table + place, mask=known, other=0.0)


@triton.jit
def put_pairs(table, pairs, b, t, real, i, j, T, L: constexpr):  # type: ignore[no-untyped-def]
    """Store (N, I, J) as entries of a contiguous table (B, T, L, L) at token t, where real."""
    place, known = _places(b, t, real, i, j, T, L)
    tl.store(table + place, pairs.to(table.dtype.element_ty), mask=known)


@triton.jit
def finite_or_zero(x):  # type: ignore[no-untyped-def]
    """A highest score to be subtracted from others: 0 where nothing is possible."""
    return tl.where(x > -float("inf"), x, 0.0)


@triton.jit
def any_invalid(scores, real):  # type: ignore[no-untyped-def]
    """-> (N,) int32, 1 where one of the scores (N, P) or (N, I, J) of a real token or pair is +inf or NaN."""
    found = tl.max((scores < float("inf")).to(tl.int32) ^ 1, 1)
    if len(scores.shape) == 3:
        found = tl.max(found, 1)
    return tl.where(real, found, 0)


@triton.jit
def log_sum(x, axis: constexpr):  # type: ignore[no-untyped-def]
    """Log of the sum of exponentials along an axis, -inf where nothing is possible, NaN where one is +inf or NaN."""
    highest = finite_or_zero(tl.max(x, axis))
    total = tl.sum(tl.exp(x - tl.expand_dims(highest, axis)), axis)
    return tl.where(total == 0, -float("inf"), tl.log(tl.where(total == 0, 1.0, total)) + highest)


@triton.jit
def label_at(labels, s, t, real, T):  # type: ignore[no-untyped-def]
    """-> labels (S, C) of labellings s (S,) at tokens t (C,), 0 where not real (S, C)."""
    return tl.load(labels + s[:, None] * T + t[None, :], mask=real, other=0)
