"""The exponential ranking loss, which boosting lowers one feature at a time."""

import torch
from torch import Tensor

from structperc.criteria.base import Criterion, check_candidates, is_gold
from structperc.structures import Scored


class ExponentialLoss(Criterion):
    """loss = sum over candidates y that are not gold of exp(s(y) - s(y*)), total scores; Collins 2002, section 4.2.

    An upper bound on the number of candidates that score higher than gold ("Ranking Algorithms for Named-Entity
    Extraction", after Freund et al. 1998). It grows without bound: meant for scores of the size of log-probabilities.

    Raises:
        ValueError: the search gives fewer than two candidates.
    """

    min_candidates = 2

    def losses_and_updates(self, scored: Scored) -> tuple[Tensor, Tensor]:
        """Return losses (B,) >= 0, and which sequences have a rival and so change weights (B,) bool."""
        check_candidates(self, scored)
        rivals = scored.candidates.valid & ~is_gold(scored)
        gold = scored.gold_scores + scored.gold_nonlocal
        leads = scored.candidate_scores + scored.candidate_nonlocal - gold.unsqueeze(1)
        # -inf before exp() and not a product after it: scores of candidates that are none may be infinite
        leads = leads.masked_fill(~rivals, -torch.inf)
        infinite = leads.detach() == torch.inf  # over gold that is impossible: without a slope
        return leads.masked_fill(infinite, 0).exp().masked_fill(infinite, torch.inf).sum(1), rivals.any(1)
