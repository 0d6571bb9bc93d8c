"""Scores of given label sequences on CUDA, and their transpose.

A program scores 4 label sequences, 32 tokens of each at a time, with sums in double precision. `path_counts` uses
atomic additions, so that the last digit of sums of fractions differs from run to run; where torch is set to
deterministic algorithms, the reference is used.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton.language import constexpr

from structperc.ops.cuda.blocks import (
    INTERPRETED,
    SHAPES,
    SOME_TOKENS,
    KernelArguments,
    label_at,
    on_device_of,
    options,
)
from structperc.ops.reference.paths import path_counts as reference

PATHS = 64 if INTERPRETED else 4  # of a program
TOKENS = SOME_TOKENS // PATHS  # of each path, at a time


def path_score(unary: Tensor, edge: Tensor, lengths: Tensor, labels: Tensor, rows: Tensor) -> Tensor:
    """Implement `structperc.ops.operators.path_score`."""
    lattice, S = KernelArguments(unary, edge, lengths), labels.shape[0]
    scores = lattice.scratch(S)
    if S:
        labels, rows = (x.to(unary.device, non_blocking=True).contiguous() for x in (labels, rows))
        with on_device_of(unary):
            _score[(triton.cdiv(S, PATHS),)](
                *lattice.tables, labels, rows, scores, S, L=lattice.L, N=PATHS, TOKENS=TOKENS, **options(0)
            )  # fmt: skip
    return scores


def path_counts(
    weights: Tensor, lengths: Tensor, labels: Tensor, rows: Tensor, unary: list[int], edge: list[int]
) -> tuple[Tensor, Tensor]:
    """Implement `structperc.ops.operators.path_counts`."""
    if torch.are_deterministic_algorithms_enabled():
        return reference(weights, lengths, labels, rows, unary, edge)
    own, steps = weights.new_zeros(unary), weights.new_zeros(edge)
    lattice, S = KernelArguments(own, steps, lengths), labels.shape[0]
    if S and own.numel():
        labels, rows = (x.to(weights.device, non_blocking=True).contiguous() for x in (labels, rows))
        with on_device_of(weights):
            _count[(triton.cdiv(S, PATHS),)](
                *lattice.tables, labels, rows, weights.contiguous(), S,
                L=lattice.L, N=PATHS, TOKENS=TOKENS, **options(0),
            )  # fmt: skip
    return own, steps


@triton.jit
def path_totals(
    unary, edge, labels, s, b, length, begin, longest, T, eb, et, ei, ej,
    L: constexpr, N: constexpr, TOKENS: constexpr,
):  # fmt: skip
    """Return the scores (N,) float64 of label sequences s (N,) on sequences b (N,), from token begin on.

    The score is NaN for an invalid label.
    """
    own = tl.zeros((N,), tl.float64)
    steps = tl.zeros((N,), tl.float64)
    unknown = tl.zeros((N,), tl.int32)
    for first in range(begin, longest, TOKENS):
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
def _paths(lengths, rows, S, N: constexpr):
    """Return indices (N,) of the label sequences of this program, their mask, their sequences and lengths."""
    s = tl.program_id(0).to(tl.int64) * N + tl.arange(0, N)
    listed = s < S
    b = tl.load(rows + s, mask=listed, other=0)
    return s, listed, b, tl.load(lengths + b, mask=listed, other=0)


@triton.jit(do_not_specialize=SHAPES)
def _score(
    unary, edge, lengths, B, T, eb, et, ei, ej, labels, rows, scores, S, L: constexpr, N: constexpr, TOKENS: constexpr
):
    s, listed, b, length = _paths(lengths, rows, S, N)
    length = tl.minimum(length, T)
    total = path_totals(unary, edge, labels, s, b, length, 0, tl.max(length, 0), T, eb, et, ei, ej, L, N, TOKENS)
    tl.store(scores + s, total.to(scores.dtype.element_ty), mask=listed)


@triton.jit(do_not_specialize=SHAPES)
def _count(
    own, steps, lengths, B, T, eb, et, ei, ej, labels, rows, weights, S, L: constexpr, N: constexpr, TOKENS: constexpr
):
    s, listed, b, length = _paths(lengths, rows, S, N)
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
