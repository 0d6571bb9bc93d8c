"""A cost for each wrong label, by which the margin that is asked for grows with the error.

The cost-augmented structured hinge.
"""

import torch
from torch import Tensor

from structperc.criteria.base import ComparisonUnit, Criterion, UpdateRule, best, check_unit
from structperc.errors import InputError
from structperc.structures import Lattice, Scored, real_tokens


def add_cost_to_labels(lattice: Lattice, gold: Tensor, cost: float) -> Lattice:
    """Return the lattice with `cost` added to every label that is not that of gold (B, T) int64."""
    right = torch.nn.functional.one_hot(gold, lattice.unary.shape[-1]).bool()
    return lattice._replace(unary=lattice.unary + cost * ~right)


def candidate_costs(scored: Scored, cost: float) -> Tensor:
    """Return `cost` times the number of wrong labels of each candidate, (B, K)."""
    live = real_tokens(scored.lattice.lengths, scored.gold.shape[1])
    wrong = (scored.candidates.labels != scored.gold[:, None]) & live[:, None]
    return cost * wrong.sum(-1).to(scored.gold_scores.dtype)


class HingeLoss(Criterion):
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

    def __init__(self, cost: float = 1.0, unit: ComparisonUnit = "sequence") -> None:
        super().__init__()
        if not cost > 0:
            raise InputError(f"HingeLoss: cost must be > 0, got {cost}")
        check_unit(self, "unit", unit)
        self.cost, self.unit, self.independent_sentences = cost, unit, unit == "sentence"

    def rule(self) -> UpdateRule:
        """Return that the best labelling by score plus cost is the rival, and must not lead gold."""
        return UpdateRule(other=False, should_update=_violated, cost=self.cost, unit=self.unit)

    def augment(self, lattice: Lattice, gold: Tensor) -> Lattice:
        """Return the lattice with `cost` added to every label that is not gold's."""
        return add_cost_to_labels(lattice, gold, self.cost)

    def candidate_costs(self, scored: Scored) -> Tensor:
        """Return the cost of each candidate, (B, K)."""
        return candidate_costs(scored, self.cost)

    def violations(self, scored: Scored) -> Tensor:
        """Return s(rival) + cost(rival) - s(gold), (B,), differentiable."""
        add_cost = scored._replace(candidate_scores=scored.candidate_scores + self.candidate_costs(scored))
        rival = best(add_cost, torch.ones_like(scored.candidates.valid))[:, None]
        total = add_cost.candidate_scores + add_cost.candidate_nonlocal
        return total.gather(1, rival).squeeze(1) - scored.gold_scores - scored.gold_nonlocal

    def losses_and_updates(self, scored: Scored) -> tuple[Tensor, Tensor]:
        """Return losses (B,) >= 0, and where they are positive."""
        violations = self.violations(scored)
        updates = violations.detach() > 0
        return torch.where(updates, violations, 0.0), updates


def _violated(gap: float, limit: float) -> bool:
    return gap < limit
