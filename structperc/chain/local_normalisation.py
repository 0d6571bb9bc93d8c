"""Local normalisation: each label's probability given the one before, the chain of a maximum-entropy tagger."""

import torch
from torch import Tensor

from structperc.chain.lattices import checked
from structperc.ops import log_following
from structperc.structures import Lattice


def locally_normalised(lattice: Lattice) -> Lattice:
    """Return the lattice whose path scores are log p(y | x) = sum over t of log p(y_t | y_{t-1}, x). Ratnaparkhi 1996.

    p(y_0 = j) is the softmax over j of unary[0, j], p(y_t = j | y_{t-1} = i) that of unary[t, j] + edge[t, i, j].
    A log-sum over what may follow label i at t - 1 depends on t and i alone: it is taken off unary[t - 1, i], and the
    edges stay as they are, stationary ones too. So only whole paths have log-probabilities, single entries have not,
    and to normalise the result again gives another model. Half precision is upcast to float32.

    What is impossible stays so and has no share. A label that nothing may follow, at a token that is not the last, is
    impossible, too: its share is lost, and the probabilities of all labellings sum to less than 1. In the lattice of
    a tag scheme there is none. A sequence without any legal labelling has none afterwards.
    """
    unary, edge, lengths = lattice = checked(lattice)
    taken = log_following(*lattice)
    if unary.shape[1]:
        real = lengths > 0
        start = torch.where(real, _log_sum(torch.where(real.unsqueeze(1), unary[:, 0], 0)), 0).view(-1, 1, 1)
        taken = torch.cat([taken[:, :1] + start, taken[:, 1:]], 1)
    return Lattice(unary - taken, edge, lengths)


def _log_sum(scores: Tensor) -> Tensor:
    """torch.logsumexp along the last dimension; +inf, without a gradient, where all are impossible."""
    possible = scores.amax(-1) != -torch.inf
    return torch.where(possible, torch.where(possible.unsqueeze(-1), scores, 0).logsumexp(-1), torch.inf)
