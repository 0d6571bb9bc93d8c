"""The two best labellings of each sequence: what margin training asks for at every step."""

import math

import torch
from torch import Tensor
from torch.nn.functional import pad

from structperc.chain.path import path_score
from structperc.chain.recursion import before_and_after, full_precision, live
from structperc.structures import Candidates, Lattice


@torch.no_grad()
def two_best(lattice: Lattice) -> Candidates:
    """-> Candidates of width 2, as `kbest` with k = 2 (which calls this for small L), for T >= 1.

    One forward and one backward pass, taken together.

    A labelling other than the best one v has some label y != v_t, and the best labelling through (t, y) scores the
    max-marginal m(t, y): so the second best goes through the (t, y), y != v_t, of highest m. Both labellings are
    read off tables of best neighbours, in about 2 sqrt(T) dependent steps.
    """
    before, after = before_and_after(lattice, torch.amax)
    unary, real = full_precision(lattice.unary), live(lattice)
    edge = full_precision(lattice.edge)
    ahead = (edge + (unary + after).unsqueeze(2)).argmax(
        3
    )  # (B, T, L): best label at t after label i at t - 1
    arriving = (unary + before)[:, :-1].unsqueeze(2)
    behind = (edge[:, 1:].mT.contiguous() + arriving).argmax(3)  # best label at t before label j at t + 1
    behind = pad(behind, (0, 0, 0, 1))
    through = (before + unary + after).where(real.unsqueeze(2), -torch.inf)

    start = torch.zeros_like(lattice.lengths)
    best = _follow(ahead, start, through[:, 0].argmax(1))
    others = through.scatter(2, best.unsqueeze(2), -torch.inf).flatten(1)
    _, T, L = through.shape
    place, label = others.argmax(1) // L, others.argmax(1) % L
    right = _follow(ahead, place, label)
    left = _follow(behind.flip(1), T - 1 - place, label).flip(1)
    steps = torch.arange(T, device=place.device)
    second = torch.where(steps < place.unsqueeze(1), left, right)

    labels = torch.stack([best, second], 1).where(real.unsqueeze(1), 0)
    possible = torch.stack([through[:, 0].amax(1), others.amax(1)], 1) > -torch.inf
    possible[:, 0] |= lattice.lengths == 0
    return _sorted(lattice, labels, possible)


def _follow(maps: Tensor, place: Tensor, label: Tensor) -> Tensor:
    """Labels (B, T) at and after `place` (B,), where `label` stands; maps[b, t] leads from label t - 1 to label t.

    Maps are composed within pieces of about sqrt(T) tokens, all pieces at once, and the pieces are then joined: some
    2 sqrt(T) dependent steps. The constant map at `place` forgets what came before it.
    """
    B, T, L = maps.shape
    at = torch.arange(T, device=maps.device) == place.unsqueeze(1)
    size = math.isqrt(T) + 1
    maps = pad(torch.where(at.unsqueeze(2), label.view(-1, 1, 1), maps), (0, 0, 0, -T % size))
    pieces = maps.view(B, -1, size, L).unbind(2)
    within = [pieces[0]]
    for piece in pieces[1:]:
        within.append(piece.gather(2, within[-1]))
    entry = [torch.zeros_like(label).unsqueeze(1)]
    for last in within[-1].unbind(1):
        entry.append(last.gather(1, entry[-1]))
    entries = torch.stack(entry[:-1], 1)
    return torch.stack([piece.gather(2, entries).squeeze(2) for piece in within], 2).flatten(1)[:, :T]


def _sorted(lattice: Lattice, labels: Tensor, possible: Tensor) -> Candidates:
    """Scores of the lattice itself, best first: max-marginals may order rivals within rounding differently."""
    labels = labels.where(possible.unsqueeze(2), 0)
    scores = path_score(lattice, labels).where(possible, -torch.inf)
    scores, order = scores.sort(dim=1, descending=True, stable=True)
    labels = labels.gather(1, order.unsqueeze(2).expand_as(labels))
    return Candidates(labels, scores, possible.gather(1, order))
