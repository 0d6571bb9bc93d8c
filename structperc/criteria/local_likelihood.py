"""Negative log-likelihood of each label given the one before: the criterion of maximum-entropy taggers."""

import torch
from torch import Tensor

from structperc.chain import locally_normalised
from structperc.criteria.base import Criterion, without_path
from structperc.structures import Lattice, Scored


class LocalLikelihood(Criterion):
    """loss = -log p(y* | x) = -sum over t of log p(y*_t | y*_{t-1}, x), Ratnaparkhi 1996; convex in the weights.

    A sum of softmax cross-entropies, one per token, each given the gold label before. It is the first model of
    Collins (2002, Ranking Algorithms for Named-Entity Extraction), whose candidates have log-probabilities.
    The tagger's lattice is `locally_normalised`: every search finds labellings by their probability. Unlike in a
    CRF, what comes later does not change the probability of the labels before it. Differs: one label of history,
    Ratnaparkhi's tagger has two.

    Uses local scores only.
    """

    probabilistic = of_lattice = True
    rivals_needed = 0

    def reads(self, lattice: Lattice) -> Lattice:
        """Return the lattice whose path scores are log-probabilities."""
        return locally_normalised(lattice)

    def judge(self, scored: Scored) -> tuple[Tensor, Tensor]:
        """Return losses (B,) >= 0; every sequence changes weights, but for one without any legal path."""
        losses = -scored.gold_scores
        losses = losses.where(~without_path(scored.lattice, losses.detach() == torch.inf), 0)
        return losses, torch.ones_like(losses, dtype=torch.bool)
