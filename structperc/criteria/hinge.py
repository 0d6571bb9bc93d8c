"""The cost-augmented structured hinge."""

import torch
from torch import Tensor

from structperc.criteria.base import Criterion, Rule, Unit, best, check_unit
from structperc.criteria.cost import augmented, costs
from structperc.errors import InputError
from structperc.structures import Lattice, Scored


class Hinge(Criterion):
    """loss = max(0, max_y [s(y) + cost(y)] - s(y*)), cost(y) = cost x number of wrong labels.

    Taskar et al. 2003; with the PassiveAggressive optimizer the 1-best algorithm of Crammer et al. 2006.
    The maximum runs over all labellings: candidates are searched on the lattice with the cost added
    (`augment`), and the best of them by score plus cost is the rival.

    Args:
        cost: margin asked for each wrong token.
        unit: what gold is compared in: each "sequence", or for documents each "sentence" of one by itself. Sentences
            are then independent of each other: a pair of labels on both sides of their boundary scores 0.

    Raises:
        InputError: cost is not positive, unknown unit.
    """

    def __init__(self, cost: float = 1.0, unit: Unit = "sequence") -> None:
        super().__init__()
        if not cost > 0:
            raise InputError(f"Hinge: cost must be > 0, got {cost}")
        check_unit(self, "unit", unit)
        self.cost, self.unit, self.separate = cost, unit, unit == "sentence"

    def rule(self) -> Rule:
        """Return that the best labelling by score plus cost is the rival, and must not lead gold."""
        return Rule(other=False, asks=_violated, cost=self.cost, unit=self.unit)

    def augment(self, lattice: Lattice, gold: Tensor) -> Lattice:
        """Return the lattice with `cost` added to every label that is not gold's."""
        return augmented(lattice, gold, self.cost)

    def costs(self, scored: Scored) -> Tensor:
        """Return the cost of each candidate, (B, K)."""
        return costs(scored, self.cost)

    def violations(self, scored: Scored) -> Tensor:
        """Return s(rival) + cost(rival) - s(gold), (B,), differentiable."""
        weighed = scored._replace(candidate_scores=scored.candidate_scores + self.costs(scored))
        rival = best(weighed, torch.ones_like(scored.candidates.valid))[:, None]
        total = weighed.candidate_scores + weighed.candidate_nonlocal
        return total.gather(1, rival).squeeze(1) - scored.gold_scores - scored.gold_nonlocal

    def judge(self, scored: Scored) -> tuple[Tensor, Tensor]:
        """Return losses (B,) >= 0, and where they are positive."""
        violations = self.violations(scored)
        acts = violations.detach() > 0
        return torch.where(acts, violations, 0.0), acts


def _violated(gap: float, limit: float) -> bool:
    return gap < limit
