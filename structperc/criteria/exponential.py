"""The exponential ranking loss, which boosting lowers one feature at a time."""

import torch
from torch import Tensor

from structperc.criteria.base import Criterion, check_candidates, is_gold
from structperc.structures import Scored


class ExponentialLoss(Criterion):
    """loss = sum over wrong candidates y of exp(s(y) - s(y*)), total scores; Collins 2002, section 4.2.

    An upper bound on the number of candidates that score higher than gold ("Ranking Algorithms for Named-Entity
    Extraction", after Freund et al. 1998). It grows without bound: meant for scores of the size of log-probabilities.

    Raises:
        ValueError: the search gives fewer than two candidates.
    """

    min_candidates = 2

    def losses_and_updates(self, scored: Scored) -> tuple[Tensor, Tensor]:
        """Return losses (B,) >= 0, and the update mask (B,) bool: True where there is a wrong candidate."""
        check_candidates(self, scored)
        wrong = scored.candidates.valid & ~is_gold(scored)
        gold = scored.gold_scores + scored.gold_nonlocal
        leads = scored.candidate_scores + scored.candidate_nonlocal - gold.unsqueeze(1)
        # -inf before exp() and not a product after it: scores of other places of the list may be infinite
        leads = leads.masked_fill(~wrong, -torch.inf)
        infinite = leads.detach() == torch.inf  # over impossible gold: without a slope
        return leads.masked_fill(infinite, 0).exp().masked_fill(infinite, torch.inf).sum(1), wrong.any(1)
