"""Brute force: every labelling of a chain, scored term by term. The reference all searches must match."""

import itertools
import math

import torch

from structperc.structures import Lattice


def labellings(length: int, size: int) -> list[tuple[int, ...]]:
    return list(itertools.product(range(size), repeat=length))


def score(lattice: Lattice, row: int, labelling: tuple[int, ...]) -> float:
    edge = lattice.edge.expand(*lattice.unary.shape, -1)
    total = 0.0
    for t, y in enumerate(labelling):
        total += float(lattice.unary[row, t, y])
        if t > 0:
            total += float(edge[row, t, labelling[t - 1], y])
    return total


def ranked(lattice: Lattice, row: int) -> list[tuple[float, tuple[int, ...]]]:
    """All possible labellings of a sequence with their scores, best first."""
    size = lattice.unary.shape[2]
    scored = [(score(lattice, row, y), y) for y in labellings(int(lattice.lengths[row]), size)]
    return sorted((pair for pair in scored if pair[0] > -math.inf), key=lambda pair: -pair[0])


def log_partition(lattice: Lattice, row: int) -> float:
    scores = torch.tensor([s for s, _ in ranked(lattice, row)], dtype=torch.float64)
    return float(scores.logsumexp(0)) if len(scores) else -math.inf


def probabilities(lattice: Lattice, row: int) -> list[tuple[float, tuple[int, ...]]]:
    log_z = log_partition(lattice, row)
    return [(math.exp(s - log_z), y) for s, y in ranked(lattice, row)]


def best(scored: list[tuple[float, tuple[int, ...]]]) -> float:
    return max((s for s, _ in scored), default=-math.inf)
