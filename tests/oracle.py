"""Brute force: all label sequences of a chain with their scores. The reference for all searches and sums."""

import itertools
import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from structperc.structures import Lattice


def label_sequences(length: int, labels: int | Sequence[Any]) -> list[tuple[Any, ...]]:
    """All label sequences of a length in lexicographic order, of the labels given or of 0..labels-1."""
    return list(itertools.product(range(labels) if isinstance(labels, int) else labels, repeat=length))


def tables(lattice: Lattice) -> tuple[Tensor, Tensor, Tensor]:
    """The three tensors that operators take."""
    return lattice.unary, lattice.edge, lattice.lengths


# -- one sequence, term by term --------------------------------------------------------------------------------


def score(lattice: Lattice, row: int, path: tuple[int, ...]) -> float:
    edge = lattice.edge.expand(*lattice.unary.shape, -1)
    total = 0.0
    for t, y in enumerate(path):
        total += float(lattice.unary[row, t, y])
        if t > 0:
            total += float(edge[row, t, path[t - 1], y])
    return total


def sorted_paths(lattice: Lattice, row: int) -> list[tuple[float, tuple[int, ...]]]:
    """Score and labels of all possible paths of a sequence, best first, ties in lexicographic order."""
    size = lattice.unary.shape[2]
    scored = [(score(lattice, row, y), y) for y in label_sequences(int(lattice.lengths[row]), size)]
    return sorted((pair for pair in scored if pair[0] > -math.inf), key=lambda pair: -pair[0])


def log_partition(lattice: Lattice, row: int) -> float:
    scores = torch.tensor([s for s, _ in sorted_paths(lattice, row)], dtype=torch.float64)
    return float(scores.logsumexp(0)) if len(scores) else -math.inf


def probabilities(lattice: Lattice, row: int) -> list[tuple[float, tuple[int, ...]]]:
    log_z = log_partition(lattice, row)
    return [(math.exp(s - log_z), y) for s, y in sorted_paths(lattice, row)]


def best(scored: list[tuple[float, tuple[int, ...]]]) -> float:
    return max((s for s, _ in scored), default=-math.inf)


# -- batches, in float64 ---------------------------------------------------------------------------------------


class Enumeration:
    """All paths (N, T) in lexicographic order, and their scores (B, N): -inf for those with labels in the padding."""

    def __init__(self, unary: Tensor, edge: Tensor, lengths: Tensor):
        self.B, self.T, self.L = unary.shape
        self.lengths = lengths
        self.paths = torch.tensor(label_sequences(self.T, self.L), dtype=torch.int64).view(-1, self.T)
        self.real = torch.arange(self.T) < lengths.unsqueeze(1)
        self.own, self.steps = self._terms(unary.double(), edge.double().expand(self.B, self.T, -1, -1))
        listed = ((self.paths == 0) | self.real.unsqueeze(1)).all(2)
        self.scores = (self.own + self.steps).sum(2).where(listed, -torch.inf)
        self.legal = self.scores > -torch.inf

    def _terms(self, unary: Tensor, edge: Tensor) -> tuple[Tensor, Tensor]:
        """-> (B, N, T) unary and edge score of each path at each token, 0 in the padding."""
        token = torch.arange(self.T)
        own = unary[:, token, self.paths].where(self.real.unsqueeze(1), 0)
        before = self.paths.roll(1, 1)
        steps = edge[:, token, before, self.paths].where((self.real & (token > 0)).unsqueeze(1), 0)
        return own, steps

    def kbest(self, k: int) -> tuple[Tensor, Tensor, Tensor]:
        """-> labels (B, k, T), scores, valid (B, k)."""
        scores, order = self.scores.sort(dim=1, descending=True, stable=True)
        missing = max(0, k - scores.shape[1])
        scores = torch.nn.functional.pad(scores[:, :k], (0, missing), value=-torch.inf)
        labels = torch.nn.functional.pad(self.paths[order[:, :k]], (0, 0, 0, missing))
        valid = scores > -torch.inf
        return labels.where(valid.unsqueeze(2), 0), scores, valid

    def forward_backward(self) -> tuple[Tensor, Tensor, Tensor]:
        """-> log-partition (B,), probabilities of labels (B, T, L) and of pairs (B, T, L, L)."""
        total = self.scores.logsumexp(1)
        p = (self.scores - total.unsqueeze(1)).exp().where(self.legal, 0)
        hot = torch.nn.functional.one_hot(self.paths, self.L).double()
        nodes = torch.einsum("bn,ntl->btl", p, hot) * self.real.unsqueeze(2)
        pairs = torch.zeros(self.B, self.T, self.L, self.L, dtype=torch.float64)
        pairs[:, 1:] = torch.einsum("bn,nti,ntj->btij", p, hot[:, :-1], hot[:, 1:]) * self.real[:, 1:, None, None]
        return total, nodes, pairs

    def best(self) -> tuple[Tensor, Tensor]:
        """-> (B, T, L) each, the best score of all before and of all after each label."""
        own, steps = (x.where(x > -torch.inf, 0) for x in (self.own, self.steps))
        terms = own + steps
        before = (terms.cumsum(2) - own).where(self._legal_before(), -torch.inf)
        after = (terms.flip(2).cumsum(2).flip(2) - terms).where(self._legal_after(), -torch.inf)
        return self._best_of(before), self._best_of(after)

    def _legal_before(self) -> Tensor:
        possible = (self.own > -torch.inf) & (self.steps > -torch.inf)
        earlier = possible.cumprod(2).bool()
        return torch.cat([torch.ones_like(earlier[..., :1]), earlier[..., :-1]], 2) & (self.steps > -torch.inf)

    def _legal_after(self) -> Tensor:
        possible = ((self.own > -torch.inf) & (self.steps > -torch.inf)).flip(2).cumprod(2).flip(2).bool()
        return torch.cat([possible[..., 1:], torch.ones_like(possible[..., :1])], 2)

    def _best_of(self, scores: Tensor) -> Tensor:
        found = torch.full((self.B, self.T, self.L), -torch.inf, dtype=torch.float64)
        for j in range(self.L):
            found[:, :, j] = scores.where((self.paths == j).unsqueeze(0), -torch.inf).amax(1)
        return found.where(self.real.unsqueeze(2), 0)
