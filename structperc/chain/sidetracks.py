"""Where the k best labellings can differ: all other labels follow.

An edge costs a loss, at least 0, against the best continuation of the label before it; some edge is free. A
labelling that leaves a given one once, and takes free edges from there, is told from others of that kind by where
and with which label it leaves: so the given one and the k - 1 cheapest of them bound the loss of the k best. Edges
that only dearer labellings take are dropped, and at most tokens all labels before leave one choice, the free edge.
The tokens with a choice are the forks; with the free edges between them taken, they are a short lattice.
"""

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from structperc.chain.recursion import (
    before_and_after,
    completions,
    edges_at,
    forwards,
    full_precision,
    is_stationary,
    live,
)
from structperc.structures import Lattice


class Forks(NamedTuple):
    """The lattice of the forks, its losses packed fork after fork.

    Sequences are in the order of `order`, most forks first: those that have an s-th fork are a prefix.
    """

    order: Tensor  # (B,) which sequence is at which place
    counts: Tensor  # (B,) forks of each, in this order
    sizes: list[int]  # how many sequences have a first, second, ... fork
    losses: list[Tensor]  # per fork (n * L at the fork before, L), (n, L) for the first; +inf where dropped
    number: Tensor | None = None  # (B, T) which fork is the last up to each token, the first also before it
    labels: Tensor | None = None  # (B, T, L) of each token given the label of that fork; 0 in the padding


def every_token(lattice: Lattice) -> Forks:
    """Return all tokens as forks, whatever the number of labellings."""
    walk = forwards(lattice)
    onward = (full_precision(lattice.unary) + completions(lattice, torch.amax)).flatten(0, 1)
    onward = onward.index_select(0, walk.tokens[0])
    first, *rest = walk.sizes or [0]
    through = edges_at(lattice, walk.edges[0, first:]) + onward[first:].unsqueeze(1)
    losses = _below_best(through).flatten(0, 1).split([n * onward.shape[1] for n in rest])
    counts = lattice.lengths.to(onward.device)[walk.order]
    return Forks(walk.order, counts, walk.sizes, [_below_best(onward[:first]), *losses])


def forks(lattice: Lattice, k: int) -> Forks:
    """Return the forks of the k >= 2 best labellings, for B, T >= 1; a sequence without a legal labelling has one."""
    lattice = _levelled(lattice)
    before, after = before_and_after(lattice, torch.amax)
    real = live(lattice)
    onward = (lattice.unary + after).where(real.unsqueeze(2), -torch.inf)
    through = before + onward
    best = through[:, 0].amax(1)
    limit = _bound(lattice, onward, through.argmax(2), k) + _rounding(before, lattice.unary, after)

    spent = pad(best.view(-1, 1, 1) - through[:, :-1], (0, 0, 1, 0))  # by the best labelling up to the label before
    within = (spent <= limit.view(-1, 1, 1)) & (spent < torch.inf) & real.unsqueeze(2)
    sources = within.flatten().nonzero().squeeze(1)
    losses = _losses(lattice, onward, sources)
    left = limit[sources // through[0].numel()] - spent.flatten()[sources]
    losses.masked_fill_(losses > left.unsqueeze(1), torch.inf)

    fork = torch.zeros_like(real)
    fork.view(-1)[sources[(losses < torch.inf).sum(1) > 1] // through.shape[2]] = True
    fork[:, 0] |= (best == -torch.inf) & real[:, 0]
    free = torch.zeros_like(within, dtype=torch.int64)
    free.view(-1)[sources] = losses.argmin(1)
    return _packed(fork, _composed(free, fork), sources, losses)


def at_every_token(found: Forks, at_forks: Tensor) -> Tensor:
    """Return labels (B, W, T) at all tokens, from labels (B, W, S or T) at the forks."""
    if found.labels is None or found.number is None:
        return at_forks
    B, T, L = found.labels.shape
    known = at_forks.gather(2, found.number.unsqueeze(1).expand(-1, at_forks.shape[1], -1))
    place = L * torch.arange(B * T, device=known.device).view(B, 1, T)
    return found.labels.flatten().index_select(0, known.add_(place).flatten()).view_as(known)


def _levelled(lattice: Lattice) -> Lattice:
    """The highest unary score of each token moved to 0: no loss changes, and sums stay small, so does rounding."""
    unary = full_precision(lattice.unary)
    highest = unary.amax(2, keepdim=True)
    return lattice._replace(unary=unary - highest.where(highest > -torch.inf, 0))


def _bound(lattice: Lattice, onward: Tensor, path: Tensor, k: int) -> Tensor:
    """-> (B,), a loss that k labellings do not exceed: `path` (B, T), best or not, and those that leave it once."""
    B, T, L = onward.shape
    if k > T * L:
        return onward.new_full((B,), torch.inf)
    before = pad(path[:, :-1], (1, 0)).flatten()
    token = torch.arange(B * T, device=path.device)
    losses = _losses(lattice, onward, token * L + before).view(B, T, L)
    own = losses.gather(2, path.unsqueeze(2))
    sidetracks = losses + pad(own[:, :-1].cumsum(1), (0, 0, 1, 0))
    sidetracks.scatter_(2, path.unsqueeze(2), torch.inf)
    return sidetracks.flatten(1).topk(k - 1, 1, largest=False, sorted=False)[0].amax(1)


def _rounding(before: Tensor, unary: Tensor, after: Tensor) -> Tensor:
    """-> (B,), by how much rounding may falsify the difference of two sums over a sequence.

    Each token adds two scores to each sum, and an addition is wrong by at most half an eps of its result.
    """
    sizes = before.abs() + unary.abs() + after.abs()
    largest = sizes.where(sizes < torch.inf, 0).amax(2)
    return 2 * torch.finfo(sizes.dtype).eps * (largest.sum(1) + 4 * largest.amax(1))


def _losses(lattice: Lattice, onward: Tensor, sources: Tensor) -> Tensor:
    """-> (N, L), of each label after sources (N,) = token * L + label before, +inf where impossible.

    At the first token no label before matters.
    """
    _, T, L = onward.shape
    token = sources // L
    if is_stationary(lattice.edge):
        edge = lattice.edge[0, 0].index_select(0, sources % L)
    else:
        edge = lattice.edge.flatten(0, 2).index_select(0, sources)
    edge = full_precision(edge).masked_fill((token % T == 0).unsqueeze(1), 0)
    return _below_best(edge + onward.flatten(0, 1).index_select(0, token))


def _below_best(scores: Tensor) -> Tensor:
    best = scores.amax(-1, keepdim=True)
    return (best - scores).where(scores > -torch.inf, torch.inf)


def _composed(free: Tensor, fork: Tensor) -> Tensor:
    """Maps (B, T, L) from the label before to each token's -> maps from the label of the last fork up to it.

    Each map is composed with that of 1, 2, 4, ... tokens before, but not across a fork, whose own is the identity.
    Before the first fork all maps start from that of the first token, which is constant.
    """
    B, T, L = free.shape
    steps = torch.arange(T, device=fork.device)
    last = steps.where(fork, 0).cummax(1)[0]
    start = T * torch.arange(B, device=fork.device).unsqueeze(1)
    maps = torch.arange(L, device=fork.device).where(fork.unsqueeze(2), free).flatten(0, 1)
    hop, longest = 1, int((steps - last).max())
    while hop <= longest:
        back = (steps - hop).maximum(last) + start
        maps = maps.gather(1, maps.index_select(0, back.flatten()))
        hop *= 2
    return maps.view(B, T, L)


def _packed(fork: Tensor, labels: Tensor, sources: Tensor, losses: Tensor) -> Forks:
    """Losses (N, L) of sources (N,), read from the labels of the fork before."""
    B, T, L = labels.shape
    counts, order = fork.sum(1).sort(descending=True, stable=True)
    number = fork.cumsum(1).sub_(1).clamp_(min=0)
    tokens = fork.flatten().nonzero().squeeze(1)
    step = number.flatten()[tokens]
    tokens = tokens[(step * B + order.argsort()[tokens // T]).argsort()]
    sizes = step.bincount().tolist()
    first, *rest = sizes or [0]

    rows = sources.new_full((labels.numel(),), len(sources))  # the last row stands for all that is dropped
    rows[sources] = torch.arange(len(sources), device=sources.device)
    losses = torch.cat([losses, losses.new_full((1, L), torch.inf)])
    before = rows[tokens.unsqueeze(1) * L + labels.flatten(0, 1)[tokens - 1]]
    steps = losses[before[first:].flatten()].split([n * L for n in rest])
    return Forks(order, counts, sizes, [losses[before[:first, 0]], *steps], number, labels)
