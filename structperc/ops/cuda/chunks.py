"""Scan over chunks of time: long sequences in parallel, for few sequences of few labels.

With one program per sequence, a recursion waits for all T tokens in a row, and a batch of one sequence uses one of a
GPU's more than 100 processors. Here the tokens are divided into chunks of S tokens, as in the parallel scans of Hassan,
Sarkka and Garcia-Fernandez 2021 (Temporal parallelization of inference in hidden Markov models):

1. For all chunks in parallel, an L x L matrix: the best score (max-plus product), or the log-sum of scores (log-plus
   product), of the label sequences from each first label of a chunk to each first label of the next one.
2. Over the matrices of a sequence, one after the other: the scores of all that is before and after each chunk.
3. For all chunks in parallel, the recursion of the other kernels, which starts from these scores.

Steps 1 and 2 are here, step 3 in `viterbi` and `forward_backward`. There are no atomic additions.

Expected gain, derived and not measured: Viterbi with one program per sequence waits for 2 T tokens, backwards and along
the labels found. With chunks it waits for 4 S tokens (matrices, recursion, and twice along the labels) and 2 T / S
matrices, at S = sqrt(T) for 6 sqrt(T) steps: 21 times fewer at T = 4,096, 43 times at T = 16,384. The matrices cost L
times the work of the recursion, on processors that are idle otherwise.

What is exact: within a chunk, values, ties and rules for -inf are those of the recursion. Scores at the borders of
chunks are sums in another order. Whole numbers, and other scores whose sums are exact, give the same labels as one
program per sequence, ties included. For other scores they may differ by rounding, so that the label sequence found has
the score of the best one within rounding, and another one may be found that is as good within rounding.
"""

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton.language import constexpr

from structperc.ops.cuda.blocks import (
    SHAPES,
    KernelArguments,
    any_invalid,
    best_or_log_sum,
    edges_at,
    finite_or_zero,
    log_sum,
    on_device_of,
    options,
    rows_at,
    sequences,
)

SEQUENCES = 64  # from which on the sequences themselves occupy a GPU
TOKENS = 4096  # below which a recursion is short
LABELS = 16  # up to which products of matrices, L x L x L numbers, are kept in registers


def chunk_length(B: int, T: int, L: int) -> int:
    """Return the tokens of a chunk for a batch of B sequences of T tokens and L labels: T for a single chunk.

    Chunks are used where one program per sequence leaves processors idle (B < 64), waits long (T >= 4096), and the
    L x L x L numbers of a product fit into registers (L <= 16). A power of two near sqrt(T) makes the steps within
    chunks and those over chunks about as many, so that their sum is the smallest.
    """
    if B >= SEQUENCES or T < TOKENS or L > LABELS:
        return T
    return 1 << T.bit_length() // 2


class ChunkBorders(NamedTuple):
    """Scores of all that is outside each chunk, up to a number for all labels of a token.

    Attributes:
        before: (B, C, L) of all before each label of the first token of a chunk; filled for sums only.
        after: (B, C, L) from each label of the first token after a chunk on; 0 where there is none.
        log_partition: (B,); filled for sums only.
        invalid: (B,) int32, 1 for a sequence with a score of +inf or NaN.
    """

    before: Tensor
    after: Tensor
    log_partition: Tensor
    invalid: Tensor


def chunk_borders(lattice: KernelArguments, chunk: int, summed: bool) -> ChunkBorders:
    """Return the best scores or, with `summed`, log-sums outside chunks of that many tokens."""
    B, L, C = lattice.B, lattice.L, triton.cdiv(lattice.T, chunk)
    P = max(2, triton.next_power_of_2(L))
    products, levels = lattice.scratch(B, C, L, L), lattice.scratch(B, C, dtype=torch.float64)
    invalid = lattice.scratch(B, C, dtype=torch.int32)
    before, after, total = lattice.scratch(B, C, L), lattice.scratch(B, C, L), lattice.scratch(B)
    with on_device_of(lattice.unary):
        _multiply[(B, C)](
            *lattice.tables, products, levels, invalid, chunk, SUMMED=summed, L=L, P=P,
            STATIONARY=lattice.stationary, STAGES=3, **options(P**3 * lattice.unary.element_size()),
        )  # fmt: skip
        invalid = invalid.amax(1)
        _join[(B, 2 if summed else 1)](
            lattice.lengths, B, lattice.T, products, levels, invalid, before, after, total, chunk, C,
            SUMMED=summed, L=L, P=P, **options(P**2 * lattice.unary.element_size()),
        )  # fmt: skip
    return ChunkBorders(before, after, total, invalid)


@triton.jit(do_not_specialize=[*SHAPES, "chunk"])
def _multiply(
    unary, edge, lengths, B, T, eb, et, ei, ej, products, levels, invalid, chunk, SUMMED: constexpr,
    L: constexpr, P: constexpr, STATIONARY: constexpr, STAGES: constexpr,
):  # fmt: skip
    """Fill products (B, C, L, L), what was subtracted from them (B, C), and invalid (B, C).

    products[b, c, j, i] is the best score, or log-sum, of labels that begin with i at the first token of the chunk and
    end before label j of the first token of the next one; all j are equal where the sequence ends in the chunk. The
    steps are those of `suffix_scores`, for all j together.
    """
    c, C = tl.program_id(1), tl.num_programs(1)
    b, length, longest = sequences(lengths, B, T, 1)
    begin, end = c * chunk, tl.minimum((c + 1) * chunk, longest)
    j = tl.arange(0, P)
    after = tl.where(j[:, None] == j[None, :], 0.0, -float("inf")).to(unary.dtype.element_ty)
    taken_off, wrong = tl.zeros((1,), tl.float64), tl.zeros((1,), tl.int32)
    if STATIONARY:
        table = edges_at(edge, b, 0, length > 0, j, j, eb, et, ei, ej, L)
        wrong = any_invalid(table, length > 1)
    for back in tl.range(0, end - begin, num_stages=STAGES):
        t = end - 1 - back
        real, followed = t < length, t + 1 < length
        own = rows_at(unary, b, t, real, L, P, T, -float("inf"))
        wrong |= any_invalid(own, real)
        level = finite_or_zero(tl.max(own, 1))
        highest = finite_or_zero(tl.max(tl.max(after, 1), 0))
        taken_off += level.to(tl.float64) + highest.to(tl.float64)
        if not STATIONARY:
            table = edges_at(edge, b, t + 1, followed, j, j, eb, et, ei, ej, L)
            wrong |= any_invalid(table, followed)
        joined = tl.where(followed[:, None], best_or_log_sum(table + after[:, None, :], 2, SUMMED) - highest, 0.0)
        after = (own - level[:, None]) + joined
    place = ((b * C + c)[:, None] * L + j[:, None]) * L + j[None, :]
    tl.store(products + place, after, mask=(j < L)[:, None] & (j < L)[None, :])
    tl.store(levels + b * C + c, taken_off)
    tl.store(invalid + b * C + c, wrong)


@triton.jit(do_not_specialize=["B", "T", "chunk", "C"])
def _join(
    lengths, B, T, products, levels, invalid, before, after, total, chunk, C, SUMMED: constexpr,
    L: constexpr, P: constexpr,
):  # fmt: skip
    """Fill after (B, C, L) and total (B,) in the first program of a sequence, before (B, C, L) in the second."""
    b, length, _ = sequences(lengths, B, T, 1)
    j = tl.arange(0, P)
    taken_off = tl.zeros((1,), tl.float64)
    if tl.program_id(1) == 0:
        carry = tl.where(j == 0, 0.0, -float("inf")).to(products.dtype.element_ty)  # all j are equal at the end
        for back in range(0, C):
            c = C - 1 - back
            follows, known = length > (c + 1) * chunk, length > c * chunk
            tl.store(after + (b * C + c) * L + j, tl.where(follows, carry, 0.0), mask=j < L)
            product = _product_at(products, b, c, known, C, L, P)
            sums = best_or_log_sum(product + carry[:, None], 0, SUMMED)
            highest = finite_or_zero(tl.max(sums, 0))
            carry = tl.where(known, sums - highest, carry)
            level = tl.load(levels + b * C + c, mask=known, other=0.0)
            taken_off += level + tl.where(known, highest.to(tl.float64), 0.0)
        if SUMMED:
            log_z = tl.where(length > 0, log_sum(carry, 0).to(tl.float64) + taken_off, 0.0)
            log_z = tl.where(tl.load(invalid + b) > 0, float("nan"), log_z)
            tl.store(total + b, log_z.to(total.dtype.element_ty))
    else:
        carry = tl.zeros((P,), products.dtype.element_ty)
        for c in range(0, C):
            tl.store(before + (b * C + c) * L + j, carry, mask=j < L)
            product = _product_at(products, b, c, length > (c + 1) * chunk, C, L, P)
            sums = best_or_log_sum(product + carry[None, :], 1, SUMMED)
            carry = sums - finite_or_zero(tl.max(sums, 0))


@triton.jit
def _product_at(products, b, c, known, C, L: constexpr, P: constexpr):
    """Load the matrix (P, P) of chunk c; -inf where not known."""
    j = tl.arange(0, P)
    place = ((b * C + c)[:, None] * L + j[:, None]) * L + j[None, :]
    return tl.load(products + place, mask=known[:, None] & (j < L)[:, None] & (j < L)[None, :], other=-float("inf"))
