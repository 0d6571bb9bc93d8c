"""Local normalisation: each label's probability given the one before, the chain of a maximum-entropy tagger."""

from typing import Any

import torch
from torch import Tensor

from structperc.chain.recursion import edges_at, full_precision, live, narrowed
from structperc.structures import Lattice


def locally_normalised(lattice: Lattice) -> Lattice:
    """Return the lattice whose path scores are log p(y | x) = sum over t of log p(y_t | y_{t-1}, x). Ratnaparkhi 1996.

    p(y_0 = j) is the softmax over j of unary[0, j], p(y_t = j | y_{t-1} = i) that of unary[t, j] + edge[t, i, j].
    A log-sum over what may follow label i at t - 1 depends on t and i alone: it is taken off unary[t - 1, i], and the
    edges stay as they are, stationary ones too. So only whole paths have log-probabilities, single entries have not,
    and to normalise the result again gives another model. Differentiable once; half precision is upcast to float32.

    What is impossible stays so and has no share. A label that nothing may follow, at a token that is not the last, is
    impossible, too: its share is lost, and the probabilities of all labellings sum to less than 1. In the lattice of
    a tag scheme there is none. A sequence without any legal labelling has none afterwards.
    """
    unary, edge, lengths = lattice = _upcast(narrowed(lattice))
    B, T, L = unary.shape
    rows = unary.flatten(0, 1)
    opening = live(lattice)[:, :1].flatten().nonzero().squeeze(1) * T
    later = _later(lattice)
    start = _LogSums.apply(rows.index_select(0, opening), rows.new_zeros(1, 1, L))
    following = _LogSums.apply(rows.index_select(0, later), edges_at(lattice, later))
    taken = rows.new_zeros(B * T, L).index_copy(0, later - 1, following)
    taken = taken.index_add(0, opening, start.expand(-1, L))
    return Lattice(unary - taken.view(B, T, L), edge, lengths)


def _upcast(lattice: Lattice) -> Lattice:
    return lattice._replace(unary=full_precision(lattice.unary), edge=full_precision(lattice.edge))


def _later(lattice: Lattice) -> Tensor:
    """Places in the flattened (B * T) of the real tokens that are not the first."""
    real = live(lattice)
    steps = torch.arange(real.shape[1], device=real.device)
    return (real & (steps > 0)).flatten().nonzero().squeeze(1)


class _LogSums(torch.autograd.Function):
    """log sum over j of exp(unary (N, L) + edge (N, M, L) or (1, M, L)) -> (N, M).

    Where no j is possible it is +inf, not -inf: a label less that is impossible. Written out since the graph of
    torch.logsumexp gives NaN there, and takes twice the time.
    """

    @staticmethod
    def forward(ctx: Any, unary: Tensor, edge: Tensor) -> Tensor:
        scores = unary.unsqueeze(1) + edge
        sums = scores.logsumexp(2)
        sums.masked_fill_(sums == -torch.inf, torch.inf)
        ctx.save_for_backward(scores, sums)
        ctx.shape = edge.shape
        return sums

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:
        scores, sums = ctx.saved_tensors
        shares = (scores - sums.unsqueeze(2)).exp_().mul_(grad.unsqueeze(2))
        return shares.sum(1), shares.sum_to_size(ctx.shape)
