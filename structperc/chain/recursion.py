"""One recursion over the chain; the reduction and the direction are arguments.

`torch.amax` gives best scores (Viterbi), `torch.logsumexp` gives log-sums (forward-backward). The mirror image
is the same recursion over the tokens in reverse order. -inf is taken exactly, no finite stand-in is used.

Rows of unequal length are stepped through together, longest first, so that the rows alive at a step are a prefix
of the rows alive at the step before. Only real tokens are ever copied: nothing in the padding can leak into a result.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from structperc.structures import Lattice

Reduce = Callable[..., Tensor]


class Walk(NamedTuple):
    """R rows of tokens, each read from its first token forwards or backwards, packed step by step.

    The N tokens of all rows lie step after step (all first tokens, then all second tokens, ...), rows ordered by
    falling length. A row may be a part of a sequence, and a sequence may be walked by several rows.
    """

    order: Tensor  # (R,) which row is at which place
    row: Tensor  # (N,) row of each packed token
    token: Tensor  # (N,) its place in the flattened (B * T)
    edge: Tensor  # (N,) place in (B * T) of the edge that joins it to the token one step before
    sizes: list[int]  # rows alive at each step
    signs: Tensor  # (R,) +1 forwards, -1 backwards

    def last(self) -> Tensor:
        """-> (R,) the packed place of each row's last token, 0 for an empty row."""
        places = torch.arange(len(self.row), device=self.row.device)
        return torch.zeros_like(self.signs).scatter_reduce(0, self.row, places, "amax")


def walk(first: Tensor, signs: Tensor, lengths: Tensor, device: torch.device) -> Walk:
    """Rows that start at flat token `first` and take `lengths` tokens in the direction of `signs`, all (R,) on the CPU."""
    order = lengths.argsort(descending=True, stable=True)
    longest = int(lengths.max()) if len(lengths) else 0
    alive = lengths[order] > torch.arange(longest).unsqueeze(1)
    step, place = alive.nonzero(as_tuple=True)
    row = order[place]
    token = first[row] + signs[row] * step
    edge = token + ((signs[row] < 0) & (step > 0)).long()
    sizes = alive.sum(1).tolist()
    return Walk(*(x.to(device) for x in (order, row, token, edge)), sizes, signs.to(device))


def forward_walk(lattice: Lattice) -> Walk:
    """Each sequence from its first token to its last."""
    return walk(*_forward_rows(lattice), lattice.unary.device)


def backward_walk(lattice: Lattice) -> Walk:
    """Each sequence from its last token to its first."""
    return walk(*_backward_rows(lattice), lattice.unary.device)


def both_ways(lattice: Lattice) -> Walk:
    """Rows 0..B-1 forwards, rows B..2B-1 backwards: two passes for one loop."""
    rows = zip(_forward_rows(lattice), _backward_rows(lattice), strict=True)
    return walk(*(torch.cat(pair) for pair in rows), lattice.unary.device)


def halves(lattice: Lattice) -> Walk:
    """Rows 0..B-1: the first half forwards, rows B..2B-1: the second half backwards. Half the dependent steps."""
    (first, ahead, lengths), (last, back, _) = _forward_rows(lattice), _backward_rows(lattice)
    rows = torch.cat([first, last]), torch.cat([ahead, back]), torch.cat([(lengths + 1) // 2, lengths // 2])
    return walk(*rows, lattice.unary.device)


def _forward_rows(lattice: Lattice) -> tuple[Tensor, Tensor, Tensor]:
    lengths = lattice.lengths.cpu()
    return torch.arange(len(lengths)) * lattice.unary.shape[1], torch.ones_like(lengths), lengths


def _backward_rows(lattice: Lattice) -> tuple[Tensor, Tensor, Tensor]:
    first, signs, lengths = _forward_rows(lattice)
    return first + (lengths - 1).clamp(min=0), -signs, lengths


def pack_unary(lattice: Lattice, path: Walk) -> Tensor:
    """-> (L, N), float32 or float64."""
    return full_precision(lattice.unary.flatten(0, 1)[path.token].t().contiguous())


def pack_edges(lattice: Lattice, path: Walk) -> list[Tensor]:
    """-> one (L, L, n) per step, label one step before by label, for the n rows alive.

    One transition matrix for all tokens is laid out once per row, not once per token.
    """
    if is_stationary(lattice.edge):
        edge = _oriented(edges_at(lattice, path.order), path.signs[path.order])
        return [edge[:, :, :n] for n in path.sizes]
    edge = _oriented(edges_at(lattice, path.edge), path.signs[path.row])
    return list(edge.split(path.sizes, 2))


def edges_at(lattice: Lattice, places: Tensor) -> Tensor:
    """-> (N, L, L), the edge scores at places (N,) of the flattened (B * T), float32 or float64."""
    if is_stationary(lattice.edge):
        return full_precision(lattice.edge[0, 0]).expand(len(places), -1, -1)
    return full_precision(lattice.edge.flatten(0, 1)[places])


def _oriented(edge: Tensor, signs: Tensor) -> Tensor:
    """(N, L, L) by label before and label after -> (L, L, N) by the order of the walk."""
    ahead, back = edge.permute(1, 2, 0), edge.permute(2, 1, 0)
    return torch.where(signs > 0, ahead, back).contiguous()


def recurse(unary: Tensor, edges: list[Tensor], sizes: list[int], reduce: Reduce) -> Tensor:
    """-> (L, N), what arrives at each label from the steps before, its own unary score excluded; 0 at the first step.

    a_k(j) = reduce_i ( a_{k-1}(i) + u_{k-1}(i) + e_k(i, j) ).
    The batch is the last dimension, so that additions and reductions run along it.
    """
    arriving = torch.zeros_like(unary)
    states, scores = arriving.split(sizes, 1), unary.split(sizes, 1)
    for k in range(1, len(sizes)):
        state = (states[k - 1] + scores[k - 1]).unsqueeze(1)
        reduce(state[:, :, : sizes[k]] + edges[k], 0, out=states[k])
    return arriving


def arrivals(lattice: Lattice, path: Walk, reduce: Reduce) -> Tensor:
    """-> (L, N), the recursion along a walk."""
    return recurse(pack_unary(lattice, path), pack_edges(lattice, path), path.sizes, reduce)


def completions(lattice: Lattice, reduce: Reduce) -> Tensor:
    """-> (B, T, L), reduction over everything after each label, its own unary score excluded; 0 in the padding."""
    path = backward_walk(lattice)
    flat = full_precision(lattice.unary).new_zeros(lattice.unary.shape).flatten(0, 1)
    flat[path.token] = arrivals(lattice, path, reduce).t()
    return flat.view_as(lattice.unary)


def before_and_after(lattice: Lattice, reduce: Reduce) -> tuple[Tensor, Tensor]:
    """-> two of (B, T, L): reduction over everything before and after each label, its own unary score excluded.

    `before + unary + after` is the max-marginal (amax) or the unnormalised log-marginal (logsumexp). 0 in the padding.
    """
    path = both_ways(lattice)
    B, T, L = lattice.unary.shape
    flat = full_precision(lattice.unary).new_zeros(2 * B * T, L)
    flat[path.token + (path.row >= B) * (B * T)] = arrivals(lattice, path, reduce).t()
    before, after = flat.view(2, B, T, L).unbind()
    return before, after


def live(lattice: Lattice) -> Tensor:
    """-> (B, T) bool, True at real tokens."""
    steps = torch.arange(lattice.unary.shape[1], device=lattice.unary.device)
    return steps < lattice.lengths.to(lattice.unary.device).unsqueeze(1)


def full_precision(x: Tensor) -> Tensor:
    """Half precision is upcast to float32: sums over a sequence lose the score in bfloat16."""
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x


def is_stationary(edge: Tensor) -> bool:
    """Whether one transition matrix is expanded over all sequences and tokens."""
    return all(edge.stride(d) == 0 or edge.shape[d] == 1 for d in (0, 1)) and edge.numel() > 0
