"""Sampling on CUDA: one kernel sums backwards, one draws forwards; all in double precision, as the reference does.

Draws: a program for 128 entries, at L = 9 8 labellings of whatever sequences, one warp and 96 registers, 21 programs on
a multiprocessor. Each token waits for the row of edges after the label before, some 0.3 us from a cache, and for one
running sum over the labels. For each labelling and token 36 bytes of edges, 72 of sums (both from the second cache
where many labellings are drawn), 8 of noise and 8 of labels. Registers are the compiler's, the rest is arithmetic:
nothing here was measured.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton.language import constexpr

from structperc.ops.cuda.blocks import (
    INTERPRETED,
    SHAPES,
    Lattice,
    finite_or_zero,
    follows_another,
    on_device_of,
    options,
    rows_at,
)
from structperc.ops.cuda.onward import onward_scores


def sample(unary: Tensor, edge: Tensor, lengths: Tensor, noise: Tensor) -> Tensor:
    """The contract is that of `structperc.ops.sample`."""
    lattice = Lattice(unary, edge, lengths)
    (B, T, L), n = unary.shape, noise.shape[1]
    labels = lattice.scratch(B, n, T, dtype=torch.int64)
    if not labels.numel():
        return labels
    onward, P = onward_scores(lattice, torch.float64, summed=True), max(2, triton.next_power_of_2(L))
    N = 64 if INTERPRETED else max(1, 128 // P)
    noise = noise.to(unary.device, non_blocking=True).contiguous()
    with on_device_of(unary):
        _draw[(triton.cdiv(B * n, N),)](*lattice.tables, onward, noise, labels, n, L=L, N=N, P=P, **options(0))
    return labels


@triton.jit(do_not_specialize=[*SHAPES, "n"])
def _draw(  # type: ignore[no-untyped-def]
    unary, edge, lengths, B, T, eb, et, ei, ej, onward, noise, labels, n,
    L: constexpr, N: constexpr, P: constexpr,
):  # fmt: skip
    """Fill labels (B, n, T); a program draws N labellings of whatever sequences."""
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
        scores = along + rows_at(onward, b, t, real, L, P, T, -float("inf"))
        shares = tl.exp(scores - finite_or_zero(tl.max(scores, 1))[:, None])
        below = tl.cumsum(shares, 1)
        passed = tl.load(noise + s * T + t, mask=real, other=0.0) * tl.max(below, 1)
        found = tl.min(tl.where((below > passed[:, None]) & (shares > 0), j[None, :], P), 1)
        last = tl.max(tl.where(shares > 0, j[None, :], -1), 1)  # should rounding leave nothing above
        possible = possible & ((last >= 0) | (t >= length))
        label = tl.where(real & possible, tl.minimum(found, last), 0).to(tl.int64)
        tl.store(labels + s * T + t, label, mask=b < B)
