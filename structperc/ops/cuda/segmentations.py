"""Segmentations on CUDA, token by token: lists of the k best ones for small k, and samples.

The next token continues the open segment of a segmentation, or begins another one. All from the first token of the open
segment on is scored again at each token, by the number of tokens of that segment: a list keeps in memory only where the
open segments begin and their types, and no table of segments is stored. The list of a sequence is in the registers of
one program, with the selection of `kbest`.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton.language import constexpr

from structperc.ops.cuda.blocks import (
    ENTRIES,
    INTERPRETED,
    any_invalid,
    finite_or_zero,
    log_sum,
    on_device_of,
    options,
    rows_at,
    sequences,
)
from structperc.ops.cuda.kbest import smallest
from structperc.ops.cuda.segments import SHAPES, SegmentArguments, suffix_tables
from structperc.ops.reference import semi_markov as reference


def semi_markov_kbest(
    token: Tensor, segment: Tensor, pair: Tensor, lengths: Tensor, k: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Implement `segment_operators.semi_markov_kbest`; the reference is used where k times C + 1 or D is above 4096."""
    lattice = SegmentArguments(token, segment, pair, lengths)
    K, P = (max(2, triton.next_power_of_2(n)) for n in (k, lattice.C + 1))
    size = K * max(P, lattice.R)
    if not lattice.fit or size > ENTRIES or not token.numel():
        return reference.semi_markov_kbest(token, segment, pair, lengths, k)
    (B, T, C), device = token.shape, token.device
    labels, losses = torch.zeros(B, k, T, dtype=torch.int64, device=device), lattice.scratch(B, k, dtype=torch.float64)
    picks, starts = lattice.scratch(B, T, k, dtype=torch.int32), lattice.scratch(B, 2, k, dtype=torch.int32)
    kept, tables = lattice.scratch(B, 2, k, dtype=torch.float64), suffix_tables(lattice, summed=False)
    N = 32 if INTERPRETED else min(8, max(1, 256 // size))
    with on_device_of(token):
        _list_segmentations[(lattice.programs(N),)](
            *lattice.tables, *tables, picks, kept, starts, labels, losses, k,
            C=C, D=lattice.D, N=N, P=P, R=lattice.R, K=K, **options(8 * size),
        )  # fmt: skip
    valid = losses < torch.inf
    scores = reference.semi_markov_path_score(token.detach(), lattice.segment, lattice.pair, lattice.lengths, labels)
    scores = torch.where(valid, scores, -torch.inf).masked_fill(losses.isnan(), torch.nan)
    scores, order = scores.sort(dim=1, descending=True, stable=True)
    return labels.gather(1, order.unsqueeze(2).expand(-1, -1, T)), scores, valid.gather(1, order)


@triton.jit
def _open_segments(
    token, segment, levels, after, b, start, kind, length, known, T, sb, st, sd, sc,
    C: constexpr, D: constexpr, R: constexpr,
):  # fmt: skip
    """Score the segments from tokens `start` (N, K) on, of types `kind` (N, K), in sequences b (N,).

    Return scores (N, K, R) by the number of tokens less 1, and those of all from `start` on; -inf where a segment does
    not fit or not known (N, K).
    """
    d = tl.arange(0, R)
    fits = known[:, :, None] & (d < D)[None, None, :] & (start[:, :, None] + d[None, None, :] < length[:, None, None])
    at = (b * T)[:, None, None] + start[:, :, None] + d[None, None, :]
    own = tl.load(token + at * C + kind[:, :, None], mask=fits, other=0.0).to(tl.float64)
    run = tl.cumsum(own - tl.load(levels + at, mask=fits, other=0.0), 2)
    place = ((b * sb)[:, None] + start * st + kind * sc)[:, :, None] + (d * sd)[None, None, :]
    whole = run + tl.load(segment + place, mask=fits, other=-float("inf")).to(tl.float64)
    followed = fits & (start[:, :, None] + d[None, None, :] + 1 < length[:, None, None])
    return whole, whole + tl.load(after + (at + 1) * C + kind[:, :, None], mask=followed, other=0.0)


@triton.jit
def _pairs_from(pair, pi, pj, kind, known, C: constexpr, P: constexpr):
    """Load the pair scores (N, K, P) after types `kind` (N, K); -inf where not known (N, K)."""
    j = tl.arange(0, P)
    place = (kind * pi)[:, :, None] + (j * pj)[None, None, :]
    return tl.load(pair + place, mask=known[:, :, None] & (j < C)[None, None, :], other=-float("inf")).to(tl.float64)


@triton.jit(do_not_specialize=SHAPES)
def _list_segmentations(
    token, segment, pair, lengths, B, T, sb, st, sd, sc, pi, pj, after, begun, levels, taken_off,
    picks, kept, starts, labels, losses, k,
    C: constexpr, D: constexpr, N: constexpr, P: constexpr, R: constexpr, K: constexpr,
):  # fmt: skip
    """Fill labels (B, k, T), in lexicographic order, and losses (B, k).

    Memory: picks (B, T, k), kept (B, 2, k), starts (B, 2, k). A pick is the number of a prefix times 2 C, plus the
    label that follows it. Column C of the choices (N, K, P) continues the open segment.
    """
    b, length, longest = sequences(lengths, B, T, N)
    slot, j, d = tl.arange(0, K), tl.arange(0, P), tl.arange(0, R)
    first = rows_at(begun, b, 0, length > 0, C, P, T, -float("inf"))
    invalid = any_invalid(first, length > 0)
    legal = ((tl.max(first, 1) > -float("inf")) & (invalid == 0)) | ((length <= 0) & (b < B))
    loss = tl.where(legal[:, None] & (slot == 0)[None, :], 0.0, float("inf")).to(tl.float64)
    start, kind = tl.zeros((N, K), tl.int64), tl.zeros((N, K), tl.int64)
    for t in range(0, longest):
        real, listed = t < length, loss < float("inf")
        known = listed & (real & (t + tl.zeros_like(length) > 0))[:, None]
        whole, through = _open_segments(
            token, segment, levels, after, b, start, kind, length, known, T, sb, st, sd, sc, C, D, R
        )  # fmt: skip
        size = t - 1 - start  # tokens so far, less 1
        closed = tl.max(tl.where(d[None, None, :] == size[:, :, None], whole, -float("inf")), 2)
        state = tl.max(tl.where(d[None, None, :] >= size[:, :, None], through, -float("inf")), 2)
        further = tl.max(tl.where(d[None, None, :] > size[:, :, None], through, -float("inf")), 2)
        here = rows_at(begun, b, t, real, C, P, T, -float("inf"))[:, None, :]
        choices = closed[:, :, None] + (_pairs_from(pair, pi, pj, kind, known, C, P) + here)
        choices = tl.where((j == C)[None, None, :], further[:, :, None], choices)
        if t == 0:
            choices = here + tl.zeros((N, K, P), tl.float64)
            state = tl.max(choices, 2)
        possible = listed[:, :, None] & (choices > -float("inf"))
        cost = tl.maximum(finite_or_zero(state)[:, :, None] - tl.where(possible, choices, 0.0), 0.0)
        extended = tl.reshape(tl.where(possible, loss[:, :, None] + cost, float("inf")), (N, K * P))
        full = tl.sum(listed.to(tl.int32), 1) == k
        bound = tl.where(full, tl.max(tl.where(listed, loss, 0.0), 1), float("inf"))
        chosen = smallest(extended, bound, k)
        position, mine = tl.cumsum(chosen.to(tl.int32), 1) - 1, chosen & real[:, None]
        label = tl.where((j == C)[None, None, :], C + kind[:, :, None], j[None, None, :])
        begins = tl.where((j == C)[None, None, :], start[:, :, None], t).to(tl.int32)
        pick = (slot[None, :, None] * (2 * C) + label).to(tl.int32)
        row = ((b * 2 + t % 2) * k)[:, None] + position
        tl.store(picks + ((b * T + t) * k)[:, None] + position, tl.reshape(pick, (N, K * P)), mask=mine)
        tl.store(kept + row, extended, mask=mine)
        tl.store(starts + row, tl.reshape(begins, (N, K * P)), mask=mine)
        count = tl.sum(chosen.to(tl.int32), 1)
        tl.debug_barrier()
        mine, row = real[:, None] & (slot[None, :] < count[:, None]), ((b * 2 + t % 2) * k)[:, None] + slot[None, :]
        picked = tl.load(picks + ((b * T + t) * k)[:, None] + slot[None, :], mask=mine, other=0)
        loss_then = tl.load(kept + row, mask=mine, other=float("inf"))
        loss = tl.where(real[:, None], loss_then, loss)
        start = tl.where(real[:, None], tl.load(starts + row, mask=mine, other=0).to(tl.int64), start)
        kind = tl.where(real[:, None], (picked % C).to(tl.int64), kind)
    loss = tl.where((invalid > 0)[:, None], float("nan"), loss)
    tl.store(losses + (b * k)[:, None] + slot[None, :], loss, mask=(b < B)[:, None] & (slot < k)[None, :])
    listed, prefix = loss < float("inf"), tl.zeros((N, K), tl.int32) + slot[None, :]
    for back in range(0, longest):
        t = longest - 1 - back
        mine = listed & (t < length)[:, None]
        picked = tl.load(picks + ((b * T + t) * k)[:, None] + prefix, mask=mine, other=0)
        tl.store(labels + ((b * k)[:, None] + slot[None, :]) * T + t, (picked % (2 * C)).to(tl.int64), mask=mine)
        prefix = tl.where(mine, picked // (2 * C), prefix)


def semi_markov_sample(token: Tensor, segment: Tensor, pair: Tensor, lengths: Tensor, noise: Tensor) -> Tensor:
    """Implement `structperc.ops.segment_operators.semi_markov_sample`."""
    lattice = SegmentArguments(token, segment, pair, lengths)
    if not lattice.fit or not noise.numel():
        return reference.semi_markov_sample(token, segment, pair, lengths, noise)
    B, n, T = noise.shape
    labels, tables = lattice.scratch(B, n, T, dtype=torch.int64), suffix_tables(lattice, summed=True)
    N = 64 if INTERPRETED else max(1, 128 // max(lattice.P, lattice.R))
    noise = noise.to(token.device, non_blocking=True).contiguous()
    with on_device_of(token):
        _draw_segmentations[(triton.cdiv(B * n, N),)](
            *lattice.tables, *tables, noise, labels, n,
            C=lattice.C, D=lattice.D, N=N, P=lattice.P, R=lattice.R, **options(0),
        )  # fmt: skip
    return labels


@triton.jit(do_not_specialize=[*SHAPES, "n"])
def _draw_segmentations(
    token, segment, pair, lengths, B, T, sb, st, sd, sc, pi, pj, after, begun, levels, taken_off, noise, labels, n,
    C: constexpr, D: constexpr, N: constexpr, P: constexpr, R: constexpr,
):  # fmt: skip
    """Fill labels (B, n, T); a program draws N segmentations, of any sequences."""
    s = tl.program_id(0).to(tl.int64) * N + tl.arange(0, N)
    b = s // n
    length = tl.minimum(tl.load(lengths + b, mask=b < B, other=0), T)
    j, d = tl.arange(0, P), tl.arange(0, R)
    first = rows_at(begun, b, 0, length > 0, C, P, T, -float("inf"))
    possible = (tl.max(first, 1) > -float("inf")) & (any_invalid(first, length > 0) == 0)
    start, kind = tl.zeros((N, 1), tl.int64), tl.zeros((N, 1), tl.int64)
    for t in range(0, T):
        real = possible & (t < length)
        known = (real & (t + tl.zeros_like(length) > 0))[:, None]
        whole, through = _open_segments(
            token, segment, levels, after, b, start, kind, length, known, T, sb, st, sd, sc, C, D, R
        )  # fmt: skip
        size = t - 1 - start[:, :, None]  # tokens so far, less 1
        closed = tl.max(tl.where(d[None, None, :] == size, whole, -float("inf")), 2)
        further = tl.max(log_sum(tl.where(d[None, None, :] > size, through, -float("inf")), 2), 1)
        here = rows_at(begun, b, t, real, C, P, T, -float("inf"))
        begins = tl.max(closed[:, :, None] + (_pairs_from(pair, pi, pj, kind, known, C, P) + here[:, None, :]), 1)
        begins = tl.where(known, begins, here)
        highest = finite_or_zero(tl.maximum(tl.max(begins, 1), further))
        shares, last = tl.exp(begins - highest[:, None]), tl.exp(further - highest)
        below = tl.cumsum(shares, 1)
        passed = tl.load(noise + s * T + t, mask=real, other=0.0) * (tl.max(below, 1) + last)
        label = tl.min(tl.where((below > passed[:, None]) & (shares > 0), j[None, :], P), 1)
        ending = tl.max(tl.where(shares > 0, j[None, :], 0), 1)  # in case of rounding
        continued = (label == P) & (last > 0)
        label = tl.where(real, tl.minimum(label, ending), 0).to(tl.int64)
        kind = tl.where(continued[:, None], kind, label[:, None])
        start = tl.where(continued[:, None], start, t)
        label = tl.where(real & continued, C + tl.max(kind, 1), label)
        tl.store(labels + s * T + t, label, mask=b < B)
