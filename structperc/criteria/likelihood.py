"""Negative conditional log-likelihood: the criterion of conditional random fields (CRF)."""

import torch
from torch import Tensor

from structperc.chain import log_partition
from structperc.criteria.base import Criterion
from structperc.structures import Scored


class Likelihood(Criterion):
    """loss = log Z - s(y*), Lafferty et al. 2001. Scores become log-probabilities up to log Z.

    Uses local scores only: the sum over all labellings knows no non-local feature.
    """

    probabilistic = of_lattice = True
    rivals_needed = 0

    def judge(self, scored: Scored) -> tuple[Tensor, Tensor]:
        """Return losses (B,) >= 0; every sequence changes weights, but for one without any legal path."""
        log_z = log_partition(scored.lattice)
        losses = (log_z - scored.gold_scores).where(log_z != -torch.inf, 0)
        return losses, torch.ones_like(losses, dtype=torch.bool)
