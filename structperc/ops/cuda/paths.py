"""Scores of given labellings on CUDA, and their transpose.

`path_score`: a program scores 4 labellings, 32 tokens of each at a time: two reads of labels, one of each table, sums
in double precision. One warp, 109 registers: 18 of them, of 64 warps at most, are resident on a multiprocessor. A
token costs 16 bytes of labels and two sectors of 32 bytes, since its scores stand at random places: 80 bytes. Registers
are the compiler's, the rest is arithmetic: nothing here was measured.

`path_counts`: the same blocks, each score's place receives the labelling's weight by an atomic addition. The order of
these, and with it the last digit of sums of fractions, is not the same in every run; where torch is told to be
deterministic, the reference does it.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton.language import constexpr

from structperc.ops.cuda.blocks import INTERPRETED, SHAPES, SOME_TOKENS, Lattice, label_at, on_device_of, options
from structperc.ops.tensors.paths import path_counts as reference

LABELLINGS = 64 if INTERPRETED else 4  # of one program
TOKENS = SOME_TOKENS // LABELLINGS  # of each, at once


def path_score(unary: Tensor, edge: Tensor, lengths: Tensor, labels: Tensor, rows: Tensor) -> Tensor:
    """The contract is that of `structperc.ops.path_score`."""
    lattice, S = Lattice(unary, edge, lengths), labels.shape[0]
    scores = lattice.scratch(S)
    if S:
        labels, rows = (x.to(unary.device, non_blocking=True).contiguous() for x in (labels, rows))
        with on_device_of(unary):
            _score[(triton.cdiv(S, LABELLINGS),)](
                *lattice.tables, labels, rows, scores, S, L=lattice.L, N=LABELLINGS, TOKENS=TOKENS, **options(0)
            )  # fmt: skip
    return scores


def path_counts(
    weights: Tensor, lengths: Tensor, labels: Tensor, rows: Tensor, unary: list[int], edge: list[int]
) -> tuple[Tensor, Tensor]:
    """The contract is that of `structperc.ops.path_counts`."""
    if torch.are_deterministic_algorithms_enabled():
        return reference(weights, lengths, labels, rows, unary, edge)
    own, steps = weights.new_zeros(unary), weights.new_zeros(edge)
    lattice, S = Lattice(own, steps, lengths), labels.shape[0]
    if S and own.numel():
        labels, rows = (x.to(weights.device, non_blocking=True).contiguous() for x in (labels, rows))
        with on_device_of(weights):
            _count[(triton.cdiv(S, LABELLINGS),)](
                *lattice.tables, labels, rows, weights.contiguous(), S,
                L=lattice.L, N=LABELLINGS, TOKENS=TOKENS, **options(0),
            )  # fmt: skip
    return own, steps


@triton.jit
def path_totals(  # type: ignore[no-untyped-def]
    unary, edge, labels, s, b, length, longest, T, eb, et, ei, ej, L: constexpr, N: constexpr, TOKENS: constexpr
):
    """-> (N,) float64, scores of the labellings s (N,) of sequences b (N,); NaN where one has a label that is none."""
    own = tl.zeros((N,), tl.float64)
    steps = tl.zeros((N,), tl.float64)
    unknown = tl.zeros((N,), tl.int32)
    for first in range(0, longest, TOKENS):
        t = first + tl.arange(0, TOKENS)
        real, later = t[None, :] < length[:, None], t[None, :] > 0
        here = label_at(labels, s, t, real, T)
        before = label_at(labels, s, t - 1, real & later, T)
        known = (here >= 0) & (here < L)
        unknown = tl.maximum(unknown, tl.max((real & (known == 0)).to(tl.int32), 1))
        place = (b * T)[:, None] * L + t[None, :] * L + here
        own += tl.sum(tl.load(unary + place, mask=real & known, other=0.0).to(tl.float64), 1)
        place = (b * eb)[:, None] + t[None, :] * et + before * ei + here * ej
        both = real & later & known & (before >= 0) & (before < L)
        steps += tl.sum(tl.load(edge + place, mask=both, other=0.0).to(tl.float64), 1)
    return tl.where(unknown > 0, float("nan"), own + steps)


@triton.jit
def _labellings(lengths, rows, S, N: constexpr):  # type: ignore[no-untyped-def]
    """-> indices (N,) of this program's labellings, which there are, their sequences, the lengths of these."""
    s = tl.program_id(0).to(tl.int64) * N + tl.arange(0, N)
    listed = s < S
    b = tl.load(rows + s, mask=listed, other=0)
    return s, listed, b, tl.load(lengths + b, mask=listed, other=0)


@triton.jit(do_not_specialize=SHAPES)
def _score(  # type: ignore[no-untyped-def]
    unary, edge, lengths, B, T, eb, et, ei, ej, labels, rows, scores, S, L: constexpr, N: constexpr, TOKENS: constexpr
):
    s, listed, b, length = _labellings(lengths, rows, S, N)
    length = tl.minimum(length, T)
    total = path_totals(unary, edge, labels, s, b, length, tl.max(length, 0), T, eb, et, ei, ej, L, N, TOKENS)
    tl.store(scores + s, total.to(scores.dtype.element_ty), mask=listed)


@triton.jit(do_not_specialize=SHAPES)
def _count(  # type: ignore[no-untyped-def]
    own, steps, lengths, B, T, eb, et, ei, ej, labels, rows, weights, S, L: constexpr, N: constexpr, TOKENS: constexpr
):
    s, listed, b, length = _labellings(lengths, rows, S, N)
    length = tl.minimum(length, T)
    weight = tl.load(weights + s, mask=listed, other=0.0)[:, None] + tl.zeros((N, TOKENS), weights.dtype.element_ty)
    for first in range(0, tl.max(length, 0), TOKENS):
        t = first + tl.arange(0, TOKENS)
        real, later = t[None, :] < length[:, None], t[None, :] > 0
        here = label_at(labels, s, t, real, T)
        before = label_at(labels, s, t - 1, real & later, T)
        known = real & (here >= 0) & (here < L)
        tl.atomic_add(own + (b * T)[:, None] * L + t[None, :] * L + here, weight, mask=known)
        both = known & later & (before >= 0) & (before < L)
        tl.atomic_add(steps + (b * eb)[:, None] + t[None, :] * et + before * ei + here * ej, weight, mask=both)
