"""Criteria that compare gold with candidates by total scores, learned sequence by sequence."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from structperc.batching.parts import one_by_one
from structperc.criteria import Criterion, Decision
from structperc.criteria.base import best, losses
from structperc.online import Learned, OnlineLearner, SequenceLearner, joined, move
from structperc.optim import AveragedOptimizer
from structperc.scorers import SparseLinear
from structperc.structures import Batch, Scored


class CandidateLearner(SequenceLearner):
    """Learns local and non-local weights of a batch sequence by sequence, as batches of one sequence by gradients do.

    The few weights by which gold and its rival differ are moved in a compiled call. Where the criterion asks for local
    updates sentence by sentence, they are then learned by `local`, and each sentence counts as a step.

    Args:
        compare: finds and scores gold and candidates of a batch, with gradients of the non-local weights alone; beside
            them those that it would find without the criterion's cost.
        criterion: decides between gold and one of the candidates.
        scorer: has the local weights.
        further: the non-local weights.
        optimizer: of all these weights, with a pace.
        local: learns the sentences of a sequence; None: the criterion decides by candidates alone.
    """

    def __init__(
        self,
        compare: Callable[[Batch], tuple[Scored, Scored]],
        criterion: Criterion,
        scorer: SparseLinear,
        further: Sequence[Tensor],
        optimizer: AveragedOptimizer,
        local: OnlineLearner | None = None,
    ) -> None:
        self.compare, self.criterion, self.scorer, self.further = compare, criterion, scorer, further
        self.optimizer, self.local = optimizer, local

    def learn(self, batch: Batch) -> Learned:
        """Learn the sequences of a batch in their order."""
        return joined([self._learn(part) for part in one_by_one(batch)])

    def _learn(self, batch: Batch) -> Learned:
        scored, without_cost = self.compare(batch)
        scored = self.criterion.weighed(scored)
        decision = self.criterion.decide(scored)
        assert decision is not None
        wrong, updates = self._wrong(without_cost), int(decision.acts)
        loss = self._move(batch, scored, decision) if updates else torch.zeros(1, dtype=torch.float64)
        if self.local is None:
            self.optimizer.count(1)
            return Learned(loss, updates, wrong)
        local = self.local.learn(batch)
        return Learned(torch.cat([loss, local.losses]), updates + local.updates, wrong)

    def _move(self, batch: Batch, scored: Scored, decision: Decision) -> Tensor:
        """Move the weights as the decision asks, and return the loss (1,)."""
        loss = losses(scored, decision).detach().double()
        if not loss.isfinite().all():
            return loss
        gradients = self._gradients(scored, decision)
        norm = sum(float(g.double().square().sum()) for g in gradients.values())
        rival = scored.candidates.labels[0, int(decision.rival)]
        size = move(batch, rival, self.scorer, self.optimizer, float(loss), norm)
        for p, gradient in gradients.items():
            self.optimizer.move(p, gradient, size)
        return loss

    def _gradients(self, scored: Scored, decision: Decision) -> dict[Tensor, Tensor]:
        """The gradient of each non-local weight that moves."""
        lead = scored.candidate_nonlocal[0, int(decision.rival)] - scored.gold_nonlocal[0]
        if not bool(decision.whole) or not lead.requires_grad:
            return {}
        found = torch.autograd.grad(lead, self.further, allow_unused=True)
        return {p: g for p, g in zip(self.further, found, strict=True) if g is not None}

    def _wrong(self, scored: Scored) -> int:
        """The tokens whose label in the best candidate by total score is not gold's."""
        chosen = scored.candidates.labels[0, best(scored, scored.candidates.valid)]
        return int((chosen != scored.gold).sum())
