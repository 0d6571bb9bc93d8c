"""Random lattices with gold, and what a criterion is given of them."""

import torch

from structperc.chain import kbest, path_score
from structperc.data.labels import LabelSet
from structperc.structures import Lattice, Scored

LABELS = {2: LabelSet(("O", "I-X"), "IOB1"), 3: LabelSet(("O", "B-X", "I-X"))}


def random_lattice(seed, B=5, T=4, L=3, lengths=(4, 3, 1, 2, 4)):
    generator = torch.Generator().manual_seed(seed)
    unary = torch.randn(B, T, L, generator=generator, dtype=torch.float64)
    edge = torch.randn(B, T, L, L, generator=generator, dtype=torch.float64)
    return Lattice(unary, edge, torch.tensor(lengths))


def random_gold(lattice, seed=0):
    B, T, L = lattice.unary.shape
    gold = torch.randint(0, L, (B, T), generator=torch.Generator().manual_seed(seed))
    return gold.where(torch.arange(T) < lattice.lengths[:, None], 0)


def scored_of(lattice, gold, criterion, k):
    """As a tagger gives it; where the criterion asks, the labels are LABELS[L]."""
    if lattice.unary.shape[2] in LABELS:
        criterion.allocate(LABELS[lattice.unary.shape[2]])
    lattice = criterion.transform_lattice(lattice)
    with torch.no_grad():
        candidates = kbest(criterion.augment(lattice, gold), k)
    scores = path_score(lattice, torch.cat([gold[:, None], candidates.labels], 1))
    zeros = torch.zeros_like(scores)
    return Scored(lattice, gold, candidates, scores[:, 0], scores[:, 1:], zeros[:, 0], zeros[:, 1:])


def row(lattice, b):
    """Sequence b alone."""
    edge = lattice.edge if len(lattice.edge) == 1 else lattice.edge[b : b + 1]
    return Lattice(lattice.unary[b : b + 1], edge, lattice.lengths[b : b + 1])
