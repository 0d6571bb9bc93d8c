"""Viterbi, compiled: backwards over the tokens for the best score from each label on, forwards for the labels."""

from torch import Tensor

from structperc.kernels.jit import subkernel
from structperc.kernels.simd import WIDTH, padded_array
from structperc.kernels.viterbi import edge_blocks, follow, suffix_scores
from structperc.ops.cpu.checks import check_scores, has_invalid_scores, length_out_of_range, unfit_edges
from structperc.ops.cpu.threads import run_in_threads, take


def viterbi(unary: Tensor, edge: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """The contract is that of `structperc.ops.viterbi`."""
    B, T, L = unary.shape
    scores, labels = unary.new_empty(B), lengths.new_empty(B, T)
    if run_in_threads(_search, B, 2 * T * (WIDTH + L * L // WIDTH), unary, edge, lengths, scores, labels):
        check_scores(unary, edge, lengths)
    return scores, labels


@subkernel
def _search(side, turns, unary, edge, lengths, scores, labels):  # type: ignore[no-untyped-def]
    shared = unfit_edges(unary, edge)
    _, T, L = unary.shape
    into, onward, best = edge_blocks(edge[0], unary), padded_array(T, L, unary), padded_array(T, L, unary)
    for _ in range(len(unary)):
        b = take(side, turns)
        if b < 0:
            break
        if length_out_of_range(lengths[b], T) or has_invalid_scores(b, unary, edge, lengths, shared):
            return True
        length, edges = lengths[b], edge[0 if len(edge) == 1 else b]
        if len(edge) > 1:
            into = edge_blocks(edges, unary)
        suffix_scores(unary[b], edges, into, length, onward, best)
        labels[b] = 0
        scores[b] = follow(unary[b], edges, length, onward, best, labels[b]) if length else 0.0
    return False
