"""Viterbi, compiled: backwards over the tokens for the best score from each label on, forwards for the labels."""

from torch import Tensor

from structperc.kernels.compiled import kernel_part
from structperc.kernels.follow import follow
from structperc.kernels.lanes import WIDTH, padded
from structperc.kernels.onward import columns, onward_scores
from structperc.ops.cpu.checks import beyond, check_scores, unfit_edges, unfit_sequence
from structperc.ops.cpu.threads import over_sequences, take


def viterbi(unary: Tensor, edge: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """The contract is that of `structperc.ops.viterbi`."""
    B, T, L = unary.shape
    scores, labels = unary.new_empty(B), lengths.new_empty(B, T)
    if over_sequences(_search, B, 2 * T * (WIDTH + L * L // WIDTH), unary, edge, lengths, scores, labels):
        check_scores(unary, edge, lengths)
    return scores, labels


@kernel_part
def _search(side, turns, unary, edge, lengths, scores, labels):  # type: ignore[no-untyped-def]
    shared = unfit_edges(unary, edge)
    _, T, L = unary.shape
    into, onward, best = columns(edge[0], unary), padded(T, L, unary), padded(T, L, unary)
    for _ in range(len(unary)):
        b = take(side, turns)
        if b < 0:
            break
        if beyond(lengths[b], T) or unfit_sequence(b, unary, edge, lengths, shared):
            return True
        length, edges = lengths[b], edge[0 if len(edge) == 1 else b]
        if len(edge) > 1:
            into = columns(edges, unary)
        onward_scores(unary[b], edges, into, length, onward, best)
        labels[b] = 0
        scores[b] = follow(unary[b], edges, length, onward, best, labels[b]) if length else 0.0
    return False
