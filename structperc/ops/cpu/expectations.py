"""Forward-backward of the sequences of a batch, compiled: `kernels.forward_backward` on tensors."""

import numpy as np
from torch import Tensor

from structperc.kernels.forward_backward import edge_factors, scaled_forward_backward
from structperc.kernels.jit import subkernel
from structperc.kernels.simd import WIDTH, padded_array
from structperc.ops.cpu.checks import check_lengths, length_out_of_range
from structperc.ops.cpu.threads import run_in_threads, take


def expectations(unary: Tensor, edge: Tensor, lengths: Tensor, with_pairs: bool) -> tuple[Tensor, Tensor, Tensor]:
    """The contract is that of `structperc.ops.expectations`."""
    B, T, L = unary.shape
    each = 1 if edge.shape[1] == 1 else T
    totals, nodes = unary.new_zeros(B), unary.new_empty(B, T, L)
    pairs = unary.new_empty(B if with_pairs else 1, each if with_pairs else 0, L, L)
    work = 4 * T * (2 * WIDTH + L * L // WIDTH)
    if run_in_threads(_expect, B, work, unary, edge, lengths, totals, nodes, pairs):
        check_lengths(lengths, T)
    return totals, nodes, pairs if with_pairs else pairs.view(0)


@subkernel
def _expect(side, turns, unary, edge, lengths, totals, nodes, pairs):  # type: ignore[no-untyped-def]
    _, T, L = unary.shape
    M = edge.shape[1]  # matrices of edges for each sequence
    scales = np.empty(T)
    own, before, after = (
        padded_array(T, L, scales, 0.0),
        padded_array(T + 1, L, scales, 0.0),
        padded_array(1, L, scales, 0.0),
    )
    steps, back = padded_array(M * L + 1, L, scales, 0.0), padded_array(L + 1 if M == 1 else 0, L, scales, 0.0)
    level, small, known = 0.0, False, False
    for _ in range(len(unary)):
        b = take(side, turns)
        if b < 0:
            break
        if length_out_of_range(lengths[b], T):
            return True
        length, into = lengths[b], pairs[0 if len(pairs) == 1 else b]
        if length == 0:
            nodes[b], into[:] = 0, 0
            continue
        edges = edge[0 if len(edge) == 1 else b]
        if not known:
            level, small = edge_factors(edges, length, steps, back)
            known = M == 1 and len(edge) == 1
        totals[b], by_products = scaled_forward_backward(
            unary[b], edges, length, own, steps, back, level, small, before, after, scales, nodes[b], into
        )
        if by_products:
            nodes[b, length:] = 0
            if M > 1:
                into[:1], into[length:] = 0, 0
    return False
