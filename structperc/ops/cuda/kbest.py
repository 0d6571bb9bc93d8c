"""The k best label sequences on CUDA, for small k: the list of prefixes of a sequence in the registers of one program.

The algorithm is that of the reference. The k smallest losses are selected without a sort: losses are not negative, so
that their bits are in their order, and the k-th smallest is found by bisection of the bits, with a count of the losses
below at each turn, at most 31 in float32 and 63 in float64. Of those equal to it the first are taken, and prefixes keep
their order by a running sum over what is selected. The k-th smallest loss never grows from token to token, which bounds
the bisection from above.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton.language import constexpr

from structperc.ops.cuda.blocks import (
    ENTRIES,
    INTERPRETED,
    SHAPES,
    KernelArguments,
    any_invalid,
    finite_or_zero,
    follows_another,
    on_device_of,
    options,
    rows_at,
    sequences,
    suffix_scores,
)
from structperc.ops.cuda.paths import path_score
from structperc.ops.reference.kbest import kbest as reference


def kbest(unary: Tensor, edge: Tensor, lengths: Tensor, k: int) -> tuple[Tensor, Tensor, Tensor]:
    """Implement `structperc.ops.operators.kbest`; the reference is used where k times labels is above 4096."""
    (B, T, L), device = unary.shape, unary.device
    K, P = (max(2, triton.next_power_of_2(n)) for n in (k, L))
    if K * P > ENTRIES or not unary.numel():
        return reference(unary, edge, lengths, k)
    lattice = KernelArguments(unary, edge, lengths)
    suffix = suffix_scores(lattice, unary.dtype, summed=False)
    labels, losses = torch.zeros(B, k, T, dtype=torch.int64, device=device), lattice.scratch(B, k)
    picks, kept = lattice.scratch(B, T, k, dtype=torch.int32), lattice.scratch(B, 2, k)
    N = 32 if INTERPRETED else min(8, max(1, 256 // (K * P)))
    with on_device_of(unary):
        _list_paths[(triton.cdiv(B, N),)](
            *lattice.tables, suffix, picks, kept, labels, losses, k,
            L=L, N=N, P=P, K=K, **options(K * P * unary.element_size()),
        )  # fmt: skip
    valid = losses < torch.inf
    rows = torch.arange(B, device=device).repeat_interleave(k)
    scores = path_score(unary, edge, lattice.lengths, labels.flatten(0, 1), rows).view(B, k)
    scores = torch.where(valid, scores, -torch.inf).masked_fill(losses.isnan(), torch.nan)
    scores, order = scores.sort(dim=1, descending=True, stable=True)
    return labels.gather(1, order.unsqueeze(2).expand(-1, -1, T)), scores, valid.gather(1, order)


@triton.jit
def _bits(losses):
    """Return non-negative numbers as integers in the same order."""
    same_size: constexpr = tl.int32 if losses.dtype == tl.float32 else tl.int64
    return losses.to(same_size, bitcast=True)


@triton.jit
def smallest(losses, bound, k):
    """Return the mask (N, C) of the k smallest finite losses (N, C), the first among equals.

    `bound` (N,) is finite only where at least k losses are not above it.
    """
    possible = losses < float("inf")
    wanted = tl.minimum(tl.sum(possible.to(tl.int32), 1), k)
    bits = _bits(losses)
    highest = tl.max(tl.where(possible, bits, 0), 1)
    high = tl.minimum(highest, _bits(bound))
    low = tl.where(wanted < k, high, tl.zeros_like(high))
    searching = tl.max((low < high).to(tl.int32), 0)
    while searching > 0:
        middle = low + ((high - low) >> 1)
        count = tl.sum((bits <= middle[:, None]).to(tl.int32), 1)
        active = low < high
        low = tl.where(active & (count < wanted), middle + 1, low)
        high = tl.where(active & (count >= wanted), middle, high)
        low = tl.where(active & (count == wanted), middle, low)
        searching = tl.max((low < high).to(tl.int32), 0)
    below = possible & (bits < high[:, None])
    equal = possible & (bits == high[:, None])
    room = wanted - tl.sum(below.to(tl.int32), 1)
    return below | (equal & (tl.cumsum(equal.to(tl.int32), 1) <= room[:, None]))


@triton.jit(do_not_specialize=SHAPES)
def _list_paths(
    unary, edge, lengths, B, T, eb, et, ei, ej, suffix, picks, kept, labels, losses, k,
    L: constexpr, N: constexpr, P: constexpr, K: constexpr,
):  # fmt: skip
    """Fill labels (B, k, T), in lexicographic order, and losses (B, k); picks (B, T, k), kept (B, 2, k) are memory.

    A pick is the number of a prefix times P, plus the label that follows it.
    """
    work: constexpr = suffix.dtype.element_ty
    b, length, longest = sequences(lengths, B, T, N)
    slot, j = tl.arange(0, K), tl.arange(0, P)
    pick = tl.arange(0, K * P)[None, :]
    begin = rows_at(suffix, b, 0, length > 0, L, P, T, -float("inf"))
    invalid = any_invalid(begin, length > 0)
    legal = ((tl.max(begin, 1) > -float("inf")) & (invalid == 0)) | ((length <= 0) & (b < B))
    loss = tl.where(legal[:, None] & (slot == 0)[None, :], 0.0, float("inf")).to(work)
    label = tl.zeros((N, K), tl.int64)
    for t in range(0, longest):
        real, joined = t < length, follows_another(t, length)
        listed = loss < float("inf")
        place = (b * eb + t * et)[:, None, None] + (label * ei)[:, :, None] + (j.to(tl.int64) * ej)[None, None, :]
        known = (joined[:, None] & listed)[:, :, None] & (j < L)[None, None, :]
        through = tl.load(edge + place, mask=known, other=0.0)
        through += rows_at(suffix, b, t, real, L, P, T, -float("inf"))[:, None, :]
        possible = listed[:, :, None] & (through > -float("inf"))
        cost = finite_or_zero(tl.max(through, 2))[:, :, None] - tl.where(possible, through, 0.0)
        extended = tl.reshape(tl.where(possible, loss[:, :, None] + cost, float("inf")), (N, K * P))
        full = tl.sum(listed.to(tl.int32), 1) == k
        bound = tl.where(full, tl.max(tl.where(listed, loss, 0.0), 1), float("inf"))
        chosen = smallest(extended, bound, k)
        position = tl.cumsum(chosen.to(tl.int32), 1) - 1
        mine = chosen & real[:, None]
        tl.store(picks + ((b * T + t) * k)[:, None] + position, pick + tl.zeros_like(position), mask=mine)
        tl.store(kept + ((b * 2 + t % 2) * k)[:, None] + position, extended, mask=mine)
        count = tl.sum(chosen.to(tl.int32), 1)
        tl.debug_barrier()
        mine = real[:, None] & (slot[None, :] < count[:, None])
        picked = tl.load(picks + ((b * T + t) * k)[:, None] + slot[None, :], mask=mine, other=0)
        loss_then = tl.load(kept + ((b * 2 + t % 2) * k)[:, None] + slot[None, :], mask=mine, other=float("inf"))
        loss = tl.where(real[:, None], loss_then, loss)
        label = tl.where(real[:, None], (picked % P).to(tl.int64), label)
    loss = tl.where((invalid > 0)[:, None], float("nan"), loss)
    tl.store(losses + (b * k)[:, None] + slot[None, :], loss, mask=(b < B)[:, None] & (slot < k)[None, :])
    listed = loss < float("inf")
    prefix = tl.zeros((N, K), tl.int32) + slot[None, :]
    for back in range(0, longest):
        token = longest - 1 - back
        mine = listed & (token < length)[:, None]
        picked = tl.load(picks + ((b * T + token) * k)[:, None] + prefix, mask=mine, other=0)
        tl.store(labels + (b * k)[:, None] * T + slot[None, :] * T + token, (picked % P).to(tl.int64), mask=mine)
        prefix = tl.where(mine, picked // P, prefix)
