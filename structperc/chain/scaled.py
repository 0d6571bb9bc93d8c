"""Sums over labellings as plain products, scaled token by token, where one transition matrix serves all tokens.

Forward and backward probabilities instead of their logarithms (Rabiner 1989, sections III.A and V.A): a step is
one matrix product and needs no exponential. float64 throughout. Only real tokens are computed with.

Such products may underflow where logarithms do not, and then lose labellings: one that is hopeless up to some
token may be the only one that leads on from there. So they are used only where nothing positive can have vanished.
All factors are at most 1 and exactly 0 where impossible. Positive ones are at least e^-150 by a first check (edge
and unary), the sums that they are multiplied with at least 1e-150 by a second one. A product of one sum and two
factors then is at least 1e-150 * e^-300 > 1e-281, far above the smallest float64 of full precision, 2e-308: the
first sum to fall below 1e-150 is itself still right, positive, and seen. What sums to 0 is impossible.
"""

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from structperc.chain.recursion import Walk, forwards, is_stationary
from structperc.structures import Lattice

SPREAD = 150.0  # nats between the highest and the lowest possible score of a token, or of the transition matrix
SMALLEST = 1e-150  # of the sums, scaled
NOTHING = 1e-300  # added to divisors: 0 / 0 is 0 where nothing is possible, and no other quotient changes
SMALL = 2**17  # products per step up to which numpy is faster: a call costs it a third (measured on a CPU)


class ForwardSums(NamedTuple):
    """The sums over the labellings up to each of the N real tokens, packed as in the walk."""

    walk: Walk
    unary: Tensor  # (N, L) exp(score - highest score of the token)
    edge: Tensor  # (L, L) exp(score - highest score)
    sums: Tensor  # (N, L) up to each label, scaled to 1 in all; 0 where nothing is possible
    logs: Tensor  # (N, 1) logarithm of the scale, the highest scores included; -inf where nothing is possible


def forward_sums(lattice: Lattice) -> ForwardSums | None:
    """Return forward sums; None for an edge that is not stationary, and where products might underflow."""
    if not is_stationary(lattice.edge) or lattice.unary.device.type == "mps":  # which has no float64
        return None
    walk = forwards(lattice)
    tokens = _exponentials(lattice.unary.flatten(0, 1).index_select(0, walk.tokens[0]))
    matrix = _exponentials(lattice.edge[0, 0].reshape(1, -1))
    if tokens is None or matrix is None:
        return None
    (unary, highest), (edge, highest_edge) = tokens, matrix
    edge = edge.view(lattice.edge.shape[2:])
    sums, scales = torch.empty_like(unary), torch.empty_like(highest)
    _sum_prefixes(*_arrays(walk, sums, scales, unary, edge))
    if not _all(sums, SMALLEST, 0):
        return None
    logs = scales.log_().add_(highest)
    logs[sum(walk.sizes[:1]) :] += highest_edge
    return ForwardSums(walk, unary, edge, sums, logs)


def log_sum(lattice: Lattice, found: ForwardSums) -> Tensor:
    """Return the log of the sum over all labellings, (B,) float64; 0 for an empty sequence."""
    return unpacked(lattice, found, found.logs).sum((1, 2))


def node_probabilities(found: ForwardSums) -> Tensor | None:
    """Return the probability of each label at each token, (N, L) float64, packed; None if products might underflow.

    Labels of a token sum to 1; they are 0 where impossible and without a legal labelling.
    """
    suffixes = torch.ones_like(found.sums)
    _sum_suffixes(*_arrays(found.walk, suffixes, found.unary, found.edge))
    if not _all(suffixes, SMALLEST, 0):
        return None
    nodes = suffixes.mul_(found.sums)
    return nodes.div_(nodes.sum(1, keepdim=True).clamp_(min=torch.finfo(nodes.dtype).tiny))


def pair_sums(found: ForwardSums, nodes: Tensor) -> Tensor:
    """Return pair probabilities summed over tokens, (L, L), from node probabilities (N, L), both weighted alike.

    p(i, j) = sums(i) edge(i, j) / arriving(j) * p(j): the label before given this one, times this one. The edge
    comes in after the sum over tokens, which is a product of matrices.
    """
    total = torch.zeros_like(found.edge)
    _sum_pairs(*_arrays(found.walk, total, nodes, found.sums, found.edge))
    return total.mul_(found.edge)


def unpacked(lattice: Lattice, found: ForwardSums, values: Tensor) -> Tensor:
    """Return packed values (N, M) as (B, T, M), 0 in the padding."""
    B, T, _ = lattice.unary.shape
    result = values.new_zeros(B * T, values.shape[1])
    return result.index_copy_(0, found.walk.tokens[0], values).view(B, T, values.shape[1])


def _exponentials(scores: Tensor) -> tuple[Tensor, Tensor] | None:
    """(N, M) -> exp(scores - highest), highest (N, 1), 0 where there is none; None where they spread too far."""
    highest = scores.amax(1, keepdim=True).double()
    highest.masked_fill_(highest == -torch.inf, 0)
    scores = scores - highest
    return (scores.exp_(), highest) if _all(scores, -SPREAD, -torch.inf) else None


def _all(values: Tensor, least: float, otherwise: float) -> bool:
    """Whether all values are at least `least`, or exactly `otherwise`; NaN is neither."""
    return bool((values[(values >= least).logical_not_()] == otherwise).all())


def _arrays(walk: Walk, *tensors: Tensor) -> tuple[Any, ...]:
    """-> numpy, the sizes, and arrays that share the tensors' memory; or torch and the tensors, if steps are large."""
    if tensors[0].is_cpu and sum(walk.sizes[:1]) * tensors[-1].numel() <= SMALL:
        return np, walk.sizes, *(x.numpy() for x in tensors)
    return torch, walk.sizes, *tensors


def _sum_prefixes(xp: Any, sizes: list[int], sums: Any, scales: Any, unary: Any, edge: Any) -> None:
    """Fill `sums` and `scales`, on tensors or on arrays."""
    here, stop = sums, 0
    for k, n in enumerate(sizes):
        start, stop = stop, stop + n
        before, here, scale = here[:n], sums[start:stop], scales[start:stop]
        if k == 0:
            here[:] = unary[:n]
        else:
            xp.matmul(before, edge, out=here)
            here *= unary[start:stop]
        scale[:] = here.sum(1, keepdims=True)
        here /= scale + NOTHING


def _sum_suffixes(xp: Any, sizes: list[int], sums: Any, unary: Any, edge: Any) -> None:
    """Fill `sums` with what follows each label, its own unary factor excluded; 1 at last tokens, as they are given."""
    stop = len(sums)
    for k in range(len(sizes) - 1, 0, -1):
        start, n = stop - sizes[k], sizes[k]
        here = sums[start - sizes[k - 1] :][:n]
        xp.matmul(unary[start:stop] * sums[start:stop], edge.T, out=here)
        here /= here.sum(1, keepdims=True) + NOTHING
        stop = start


def _sum_pairs(xp: Any, sizes: list[int], total: Any, nodes: Any, sums: Any, edge: Any) -> None:
    """Add up sums(i) * nodes(j) / arriving(j) over the pairs of tokens."""
    stop = sum(sizes[:1])
    for k in range(1, len(sizes)):
        start, n, stop = stop, sizes[k], stop + sizes[k]
        before = sums[start - sizes[k - 1] :][:n]
        arriving = xp.matmul(before, edge)
        arriving += NOTHING
        total += xp.matmul(before.T, nodes[start:stop] / arriving)
