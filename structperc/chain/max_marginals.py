"""The best score of any labelling through each label, differentiable as the score of that labelling."""

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from structperc.chain.recursion import before_and_after, both_ways, full_precision, is_stationary, live, narrowed
from structperc.structures import Lattice


def max_marginals(lattice: Lattice) -> Tensor:
    """Return m (B, T, L), m[b, t, y] the best score of a labelling of sequence b that has label y at token t.

    It is -inf where there is none, and in the padding. To rounding, max_y m[b, t, y] is the Viterbi score at every
    t, and the second best labelling scores max over t and y != v_t of m[b, t, y], v being the best labelling.

    Differentiable once: the gradient of an entry is that of the score of its labelling, the lowest labels among
    equals from token t outwards; 0 where there is none.
    """
    before, after = best_before_and_after(lattice)
    scores = (before + lattice.unary + after).where(live(lattice).unsqueeze(2), -torch.inf)
    return scores.where(scores > -torch.inf, -torch.inf)


def best_before_and_after(lattice: Lattice) -> tuple[Tensor, Tensor]:
    """Return two tensors (B, T, L): the best score of all before and of all after each label, its own unary excluded.

    They are 0 at the ends and in the padding, -inf where nothing is possible. Differentiable once: the gradient of an
    entry is that of the score of its best prefix or suffix, the lowest label among equals at each step, and never NaN.
    No labelling is kept: gradients are pushed back along the best labels, many labellings at once.
    """
    before, after = _BestBeforeAndAfter.apply(*narrowed(lattice))
    return before, after


class _BestBeforeAndAfter(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, unary: Tensor, edge: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        before, after = before_and_after(Lattice(unary, edge, lengths), torch.amax)
        ctx.save_for_backward(unary, edge, lengths, before, after)
        return before, after

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        unary, edge, lengths, *best = ctx.saved_tensors
        nodes, pairs = _rows(torch.zeros_like(best[0], device="cpu")), np.zeros(edge.numel())
        for way, found, grad in zip(_ways(Lattice(unary, edge, lengths)), best, grads, strict=True):
            seeds = _rows(grad.where(found > -torch.inf, 0))
            _push(way, _rows(found + unary), _rows(edge).reshape(-1), seeds, nodes, pairs)
        return _like(unary, nodes), _like(edge, pairs), None


class _Way(NamedTuple):
    """One direction of a walk on the host, packed step after step."""

    tokens: np.ndarray  # (N,) in the flattened (B * T)
    pairs: np.ndarray  # (N,) where the edge between each token and the one a step before begins, in the flattened edge
    here: int  # stride of the labels at the token in it
    before: int  # stride of the labels one step before
    sizes: list[int]


def _ways(lattice: Lattice) -> list[_Way]:
    walk, L = both_ways(lattice), lattice.unary.shape[2]
    tokens, edges = walk.tokens.cpu().numpy(), walk.edges.cpu().numpy()
    pairs = edges * (0 if is_stationary(lattice.edge) else L**2)
    return [_Way(tokens[0], pairs[0], 1, L, walk.sizes), _Way(tokens[1], pairs[1], L, 1, walk.sizes)]


def _push(
    way: _Way, states: np.ndarray, scores: np.ndarray, seeds: np.ndarray, nodes: np.ndarray, pairs: np.ndarray
) -> None:
    """Push gradients `seeds` (B * T, L) of what arrives at labels back to the scores that it was made of.

    Adds to seeds themselves, `nodes` (B * T, L) and `pairs` (flat); reads states (B * T, L) and scores (flat). The
    label that a score came from is the argmax over L candidates, recomputed where there is a gradient: labellings
    soon share their labels, so that few are left. On the host, in numpy: so small are the steps that the calls are
    much of what counts.
    """
    candidates = way.before * np.arange(seeds.shape[1])
    stop = len(way.tokens)
    for k in range(len(way.sizes) - 1, 0, -1):
        start = stop - way.sizes[k]
        place, label = seeds[way.tokens[start:stop]].nonzero()
        place += start
        gradient = seeds[way.tokens[place], label]
        source = way.tokens[place - way.sizes[k - 1]]
        pair = way.pairs[place] + way.here * label
        best = (states[source] + scores[pair[:, None] + candidates]).argmax(1)
        np.add.at(pairs, pair + candidates[best], gradient)
        for sums in (seeds, nodes):
            np.add.at(sums.reshape(-1), source * seeds.shape[1] + best, gradient)
        stop = start


def _rows(x: Tensor) -> np.ndarray:
    """(..., L) -> (N, L), contiguous, on the host."""
    return full_precision(x).flatten(0, -2).contiguous().cpu().numpy()


def _like(table: Tensor, sums: np.ndarray) -> Tensor:
    return torch.from_numpy(sums).view(table.shape).to(table)
