"""Negative log-likelihood of each label by itself: the softmax head of neural taggers."""

import torch
from torch import Tensor
from torch.nn.functional import log_softmax

from structperc.chain.lattices import full_precision
from structperc.criteria.base import Criterion, without_path
from structperc.structures import Lattice, Scored


class TokenLikelihood(Criterion):
    """loss = -log p(y* | x) = -sum over t of log softmax(unary[t])[y*_t]: cross-entropy, token by token.

    The baseline that a chain is compared with (Huang, Xu & Yu 2015; Reimers & Gurevych 2017): pairs of labels have no
    scores, so that the best labelling is the best label of each token ("greedy"). It may break the rules of the tag
    scheme, from one token to the next; metrics read it by the rule of conlleval. Set `transitions: false`, since a
    transition matrix learns nothing here.

    Uses local scores only.
    """

    probabilistic = of_lattice = True
    rivals_needed = 0

    def reads(self, lattice: Lattice) -> Lattice:
        """Return the lattice whose path scores are log-probabilities; what is impossible at a token stays so."""
        scores = full_precision(lattice.unary)
        possible = scores.detach().amax(2, keepdim=True) != -torch.inf  # else the softmax is NaN, and so its gradient
        unary = log_softmax(scores.where(possible, 0), 2).where(possible, -torch.inf)
        return lattice._replace(unary=unary, edge=unary.new_zeros(1, 1, *lattice.edge.shape[2:]))

    def judge(self, scored: Scored) -> tuple[Tensor, Tensor]:
        """Return losses (B,) >= 0; every sequence changes weights, but for one without any legal path."""
        losses = -scored.gold_scores
        losses = losses.where(~without_path(scored.lattice, losses.detach() == torch.inf), 0)
        return losses, torch.ones_like(losses, dtype=torch.bool)
