"""Losses of wrong candidates: perceptron, margin perceptron, cost-augmented hinge, exponential."""

from typing import Any

import torch
from torch import Tensor

from structperc.criteria.base import ComparisonUnit, Criterion, PairwiseLoss, check_candidates, checked_unit, is_gold
from structperc.criteria.costs import Costs
from structperc.errors import InputError
from structperc.structures import Scored


class PerceptronLoss(PairwiseLoss):
    """Perceptron loss. Collins 2002.

    loss = [y' != y*] (s(y') - s(y*)), y* the gold sequence, y' the candidate of highest total score. On a separable
    set, one sequence per step, there are at most R^2 / delta^2 updates (R: longest difference of feature vectors,
    delta: margin of the best unit vector). Use it with `structperc.optim.Perceptron`.
    """

    @staticmethod
    def should_update(gap: Any, threshold: Any) -> bool:
        """Return True: every rival is a mistake."""
        return True


class MarginLoss(PairwiseLoss):
    """Perceptron loss with a margin. Kazama & Torisawa 2007, Algorithms 3.1 and 4.1.

    loss = [gap <= C] (s(rival) - s(y*)), gap = s(y*) - s(rival). The rival is the best wrong candidate. With
    local features and a search for the two best paths it is the margin perceptron (3.1); with non-local features and a
    search for the n best by local score it is the candidate algorithm (4.1): scores are total scores, and updates move
    all weights. The loss may be negative: only its gradient is meaningful.

    On a separable set the number of updates is at most (2C + R^2) / delta^2 and the margin reached at least
    delta C / (2C + R^2), one sequence per step. For steps that sum the updates of up to m sequences decoded
    with the same weights w: let step k update U_k <= m sequences with sum g_k of their differences. Then
    w.u grows by >= U_k delta for the best unit vector u, and |w|^2 by 2 w.g_k + |g_k|^2 <= 2C U_k + (U_k R)^2
    <= U_k (2C + m R^2). With N = sum U_k: (N delta)^2 <= |w|^2 <= N (2C + m R^2), so N <= (2C + m R^2) / delta^2.

    Args:
        C: margin in units of the score; the paper tries 500 ... 32000 with whole documents as sequences.
        unit: unit of comparison: each "sequence", or each "sentence" of a document. Sentences are then independent
            of each other: a pair of labels on both sides of their boundary scores 0.

    Raises:
        InputError: C is negative, or the unit is unknown.
        ValueError: the search gives fewer than two candidates.
    """

    exclude_gold = True

    def __init__(self, C: float, unit: ComparisonUnit = "sequence") -> None:
        super().__init__()
        if not C >= 0:
            raise InputError(f"MarginLoss: C must be >= 0, got {C}")
        self.unit = checked_unit(self, "unit", unit)
        self.C = self.threshold = C

    @staticmethod
    def should_update(gap: Any, threshold: Any) -> Any:
        """Return gap <= threshold."""
        return gap <= threshold


class HingeLoss(PairwiseLoss):
    """Structured hinge loss with a cost of wrong labels or segments. Taskar et al. 2003.

    loss = max(0, max_y [s(y) + cost(y)] - s(y*)); a number is the cost of each wrong label. With the optimizer
    PassiveAggressive it is the 1-best algorithm of Crammer et al. 2006. The maximum runs over all paths: candidates are
    searched in the lattice with the cost added, and the best by score plus cost is the rival.

    Args:
        cost: margin for each wrong token, or costs, whose `terms` are summed over the tokens.
        unit: unit of comparison: each "sequence", or each "sentence" of a document. Sentences are then independent
            of each other: a pair of labels on both sides of their boundary scores 0.

    Raises:
        InputError: cost is not positive, or the unit is unknown.

    Example:
        >>> import torch
        >>> from structperc.chain import kbest
        >>> from structperc.criteria import HingeLoss
        >>> from structperc.criteria.base import score_candidates
        >>> from structperc.structures import Lattice
        >>> lattice = Lattice(torch.tensor([[[0.0, 1.0], [2.0, 0.0]]]), torch.zeros(1, 1, 2, 2), torch.tensor([2]))
        >>> criterion, gold = HingeLoss(cost=1.5), torch.tensor([[1, 0]])
        >>> candidates = kbest(criterion.augment(lattice, gold), k=1)
        >>> criterion(score_candidates(lattice, gold, candidates))  # 2 + 1.5 for one wrong label - 3
        tensor([0.5000])
    """

    def __init__(self, cost: float | Costs = 1.0, unit: ComparisonUnit = "sequence") -> None:
        super().__init__()
        if not isinstance(cost, Costs) and not cost > 0:
            raise InputError(f"HingeLoss: cost must be > 0, got {cost}")
        self.unit = checked_unit(self, "unit", unit)
        self.cost = cost

    @staticmethod
    def should_update(gap: Any, threshold: Any) -> Any:
        """Return gap < threshold: True if the rival leads the gold sequence."""
        return gap < threshold


class ExponentialLoss(Criterion):
    """Exponential loss of boosting. Collins 2002, section 4.2.

    loss = sum over wrong candidates y of exp(s(y) - s(y*)), with total scores s and the gold sequence y*. It is an
    upper bound on the number of candidates that score higher than y* ("Ranking Algorithms for Named-Entity Extraction",
    after Freund et al. 1998). It grows without bound: use it for scores of the size of log-probabilities.

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
        # -inf before exp() and not a product after it: scores of invalid candidates may be infinite
        leads = leads.masked_fill(~wrong, -torch.inf)
        infinite = leads.detach() == torch.inf  # the gold path is impossible: gradient 0
        return leads.masked_fill(infinite, 0).exp().masked_fill(infinite, torch.inf).sum(1), wrong.any(1)
