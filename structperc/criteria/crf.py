"""Negative conditional log-likelihood: the criterion of conditional random fields (CRF).

Negative log-likelihood of each label given the one before: the criterion of maximum-entropy taggers.

Negative log-likelihood of each label by itself: the softmax head of neural taggers.
"""

import torch
from torch import Tensor
from torch.nn.functional import log_softmax

from structperc.chain import locally_normalised, log_partition
from structperc.chain.lattices import full_precision
from structperc.criteria.base import Criterion, without_path
from structperc.structures import Lattice, Scored


class CRFLoss(Criterion):
    """loss = log Z - s(y*), Lafferty et al. 2001. Scores become log-probabilities up to log Z.

    Uses local scores only: the sum over all labellings knows no non-local feature.
    """

    probabilistic = needs_lattice = True
    min_candidates = 0

    def losses_and_updates(self, scored: Scored) -> tuple[Tensor, Tensor]:
        """Return losses (B,) >= 0; every sequence changes weights, but for one without any legal path."""
        log_z = log_partition(scored.lattice)
        losses = (log_z - scored.gold_scores).where(log_z != -torch.inf, 0)
        return losses, torch.ones_like(losses, dtype=torch.bool)


class MEMMLoss(Criterion):
    """loss = -log p(y* | x) = -sum over t of log p(y*_t | y*_{t-1}, x), Ratnaparkhi 1996; convex in the weights.

    A sum of softmax cross-entropies, one per token, each given the gold label before. It is the first model of
    Collins (2002, Ranking Algorithms for Named-Entity Extraction), whose candidates have log-probabilities.
    The tagger's lattice is `locally_normalised`: every search finds labellings by their probability. Unlike in a
    CRF, what comes later does not change the probability of the labels before it. Differs: one label of history,
    Ratnaparkhi's tagger has two.

    Uses local scores only.
    """

    probabilistic = needs_lattice = True
    min_candidates = 0

    def transform_lattice(self, lattice: Lattice) -> Lattice:
        """Return the lattice whose path scores are log-probabilities."""
        return locally_normalised(lattice)

    def losses_and_updates(self, scored: Scored) -> tuple[Tensor, Tensor]:
        """Return losses (B,) >= 0; every sequence changes weights, but for one without any legal path."""
        losses = -scored.gold_scores
        losses = losses.where(~without_path(scored.lattice, losses.detach() == torch.inf), 0)
        return losses, torch.ones_like(losses, dtype=torch.bool)


class TokenCrossEntropyLoss(Criterion):
    """loss = -log p(y* | x) = -sum over t of log softmax(unary[t])[y*_t]: cross-entropy, token by token.

    The baseline that a chain is compared with (Huang, Xu & Yu 2015; Reimers & Gurevych 2017): pairs of labels have no
    scores, so that the best labelling is the best label of each token ("greedy"). It may break the rules of the tag
    scheme, from one token to the next; metrics read it by the rule of conlleval. Set `transitions: false`, since a
    transition matrix learns nothing here.

    Uses local scores only.
    """

    probabilistic = needs_lattice = True
    min_candidates = 0

    def transform_lattice(self, lattice: Lattice) -> Lattice:
        """Return the lattice whose path scores are log-probabilities; what is impossible at a token stays so."""
        scores = full_precision(lattice.unary)
        possible = scores.detach().amax(2, keepdim=True) != -torch.inf  # else the softmax is NaN, and so its gradient
        unary = log_softmax(scores.where(possible, 0), 2).where(possible, -torch.inf)
        return lattice._replace(unary=unary, edge=unary.new_zeros(1, 1, *lattice.edge.shape[2:]))

    def losses_and_updates(self, scored: Scored) -> tuple[Tensor, Tensor]:
        """Return losses (B,) >= 0; every sequence changes weights, but for one without any legal path."""
        losses = -scored.gold_scores
        losses = losses.where(~without_path(scored.lattice, losses.detach() == torch.inf), 0)
        return losses, torch.ones_like(losses, dtype=torch.bool)
