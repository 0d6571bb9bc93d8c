"""Joint learning of local and non-local weights from n-best candidates."""

from typing import Literal

import torch

from structperc.criteria.base import (
    CandidateLoss,
    ComparisonUnit,
    Decision,
    UpdateRule,
    best,
    check_candidates,
    checked_unit,
    highest,
    is_gold,
    local_gap,
    total_gap,
)
from structperc.criteria.costs import Costs
from structperc.criteria.perceptron import MarginLoss
from structperc.errors import InputError
from structperc.structures import Scored


class LocalAndNonlocal(CandidateLoss):
    """Loss with a margin of the total model and one of the local model. Kazama & Torisawa 2007, Algorithm 4.2.

    (A) The rival is the best wrong candidate by total score, and gap = s(y*) - s(rival) in total scores. If
        gap <= C, loss = -gap: the weights of all features move along Phi(y*) - Phi(rival).
    (B) The rival is the best wrong candidate by local score, and gap = s(y*) - s(rival) in local scores. If
        gap <= C_local, loss = -gap: only the weights of the local features move.

    A sequence has at most one of the two updates: the second is tried only if the first makes none. (B) keeps the gold
    sequence y* among the candidates: without it (`MarginLoss`, the paper's Algorithm 4.1) y* may remain outside the
    list, where no total score can choose it.

    With incomplete labels, y* is the allowed label sequence with the highest total score of the candidates and of the
    best one by local score; a candidate is wrong if one of its labels is not allowed.

    On a set that local features separate by delta, one sequence per step, there are at most
    (2 max(C, C_local) + R^2) / delta^2 updates, and y* then leads all other candidates by a total margin of at
    least delta C / (2C + R^2) for C = C_local (the paper's appendix A).

    Args:
        C: total margin, the paper's C^a.
        C_local: local margin, the paper's C^l; by default equal to C, as in the paper.
        local: condition of (B). "aggressive": gap <= C_local; "conservative": the gold sequence is not among the
            candidates.
        first: the update that is tried first, (A) "total" or (B) "local".
        local_unit: unit of comparison of (B): the "sequence", as in the paper, or each "sentence" of a document, one
            after the other, after (A) and independently of it, since an update of a document changes little for most
            of its sentences. Sentences are then independent of each other for the local model: a pair of labels on
            both sides of their boundary scores 0.
        cost: number added to the score of every rival for each of its wrong labels, or costs, so that the required
            margins grow with the error, as in `HingeLoss`; candidates are searched with it. 0 is the paper's algorithm.
            With the optimizer PassiveAggressive set C to 0: its steps restore the margin.

    Raises:
        InputError: a margin or the cost is negative, an option has an invalid value.
        ValueError: the search gives fewer than two candidates.

    Example:
        >>> import torch
        >>> from structperc.chain import kbest
        >>> from structperc.criteria import LocalAndNonlocal
        >>> from structperc.criteria.base import score_candidates
        >>> from structperc.structures import Lattice
        >>> lattice = Lattice(torch.tensor([[[0.0, 1.0], [2.0, 0.0]]]), torch.zeros(1, 1, 2, 2), torch.tensor([2]))
        >>> scored = score_candidates(lattice, torch.tensor([[1, 0]]), kbest(lattice, k=2))  # scores 3 and 2
        >>> scored = scored._replace(gold_nonlocal=torch.tensor([5.0]))
        >>> criterion = LocalAndNonlocal(C=4.0)  # the total gap is 6, the local gap is 1
        >>> criterion(scored), criterion.decide(scored).updates_nonlocal
        (tensor([-1.]), tensor([False]))
    """

    min_candidates = 2

    def __init__(
        self,
        C: float,
        C_local: float | None = None,
        local: Literal["aggressive", "conservative"] = "aggressive",
        first: Literal["total", "local"] = "total",
        local_unit: ComparisonUnit = "sequence",
        cost: float | Costs = 0.0,
    ) -> None:
        super().__init__()
        for name, value in (("C", C), ("C_local", C if C_local is None else C_local), ("cost", cost)):
            if not isinstance(value, Costs) and not value >= 0:
                raise InputError(f"LocalAndNonlocal: {name} must be >= 0, got {value}")
        if local not in ("aggressive", "conservative"):
            raise InputError(f"LocalAndNonlocal: local must be aggressive or conservative, got {local!r}")
        if first not in ("total", "local"):
            raise InputError(f"LocalAndNonlocal: first must be total or local, got {first!r}")
        if local_unit == "sentence" and (local, first) != ("aggressive", "total"):
            raise InputError("LocalAndNonlocal: local_unit sentence requires local aggressive and first total")
        self.C, self.C_local, self.local, self.first = C, C_local, local, first
        self.local_unit: ComparisonUnit = checked_unit(self, "local_unit", local_unit)
        self.cost = cost
        self.supports_incomplete = local_unit == "sequence"  # sentences need learning sequence by sequence

    def local_rule(self) -> UpdateRule | None:
        """Return the rule of (B) if it compares sentences; None if `decide` applies it."""
        if self.local_unit == "sequence":
            return None
        return UpdateRule(True, MarginLoss.should_update, self._local_margin, self.costs, "sentence")

    def decide(self, scored: Scored) -> Decision:
        """Return the rival and the updates of (A) or (B); only those of (A) if (B) compares sentences."""
        check_candidates(self, scored)
        valid = scored.candidates.valid
        gold = is_gold(scored) & valid
        rivals = ~gold & valid
        exists = rivals.any(1)
        in_all = best(scored, rivals)
        total = exists & MarginLoss.should_update(total_gap(scored, in_all).detach(), self.C)
        if self.local_unit == "sentence":
            return Decision(in_all, total, torch.ones_like(total))
        by_local = highest(scored.candidate_scores, rivals)
        if self.local == "conservative":
            local = exists & ~gold.any(1)
        else:
            local = exists & MarginLoss.should_update(local_gap(scored, by_local).detach(), self._local_margin)
        whole = total if self.first == "total" else total & ~local
        return Decision(torch.where(whole, in_all, by_local), total | local, whole)

    @property
    def _local_margin(self) -> float:
        return self.C if self.C_local is None else self.C_local
