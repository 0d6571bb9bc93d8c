"""Criteria that compare gold with candidates by total scores, learned sequence by sequence."""

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from structperc.batching.parts import one_by_one
from structperc.criteria import Decision
from structperc.criteria.base import best, losses
from structperc.online import Learned, OnlineLearner, move
from structperc.optim import AveragedOptimizer, Pace
from structperc.scorers import SparseLinear
from structperc.structures import Batch, Scored

if TYPE_CHECKING:
    from structperc.taggers.tagger import Tagger


class CandidateLearner:
    """Learns local and non-local weights of a batch sequence by sequence, as batches of one sequence by gradients do.

    Candidates are searched for and scored as the tagger does it; the few weights by which gold and its rival differ are
    moved in a compiled call. Where the criterion asks for local updates sentence by sentence, they are learned by
    `local`, if the criterion leaves the whole sequence as it is.

    Args:
        tagger: whose weights are learned.
        optimizer: of all these weights.
        pace: of the optimizer.
        local: learns the sentences of a sequence; None: the criterion decides by candidates alone.
    """

    def __init__(
        self, tagger: "Tagger", optimizer: AveragedOptimizer, pace: Pace, local: OnlineLearner | None = None
    ) -> None:
        assert isinstance(tagger.scorer, SparseLinear)
        self.tagger, self.scorer = tagger, tagger.scorer
        self.optimizer, self.pace, self.local = optimizer, pace, local

    def learn(self, batch: Batch) -> Learned:
        """Learn the sequences of a batch in their order."""
        return joined([self._learn(part) for part in one_by_one(batch)])

    def _learn(self, batch: Batch) -> Learned:
        with torch.no_grad():
            lattice = self.tagger(batch)
            candidates = self.tagger.search(lattice)
        scored = self.tagger.score(batch, lattice, candidates)
        decision = self.tagger.criterion.decide(scored)
        assert decision is not None
        wrong = self._wrong(scored)
        if bool(decision.acts):
            loss = self._move(batch, scored, decision)
            self._count(batch)
            return Learned(loss, 1, wrong)
        if self.local is None:
            self._count(batch)
            return Learned(torch.zeros(1, dtype=torch.float64), 0, wrong)
        return self.local.learn(batch)._replace(wrong=wrong)

    def _move(self, batch: Batch, scored: Scored, decision: Decision) -> Tensor:
        """Move the weights as the decision asks, and return the loss (1,)."""
        loss = losses(scored, decision).detach().double()
        if not loss.isfinite().all():
            return loss
        gradients = self._gradients(scored, decision)
        norm = sum(float(g.double().square().sum()) for g in gradients.values())
        rival = scored.candidates.labels[0, int(decision.rival)]
        size = move(batch, rival, self.scorer, self.pace, self.optimizer, float(loss), norm)
        for p, gradient in gradients.items():
            self.optimizer.move(p, gradient, size)
        return loss

    def _gradients(self, scored: Scored, decision: Decision) -> dict[Tensor, Tensor]:
        """The gradient of each non-local weight that moves."""
        lead = scored.candidate_nonlocal[0, int(decision.rival)] - scored.gold_nonlocal[0]
        if not bool(decision.whole) or not lead.requires_grad:
            return {}
        weights = list(self.tagger.nonlocal_features.parameters())
        found = torch.autograd.grad(lead, weights, allow_unused=True)
        return {p: g for p, g in zip(weights, found, strict=True) if g is not None}

    def _count(self, batch: Batch) -> None:
        """Count the steps that a sequence stands for: one, or one for each of its sentences."""
        self.optimizer.param_groups[0]["steps"] += 1 if self.local is None else int(batch.first.sum())

    def _wrong(self, scored: Scored) -> int:
        """The tokens whose label in the best candidate by total score is not gold's."""
        chosen = scored.candidates.labels[0, best(scored, scored.candidates.valid)]
        return int((chosen != scored.gold).sum())


def joined(parts: list[Learned]) -> Learned:
    """Return what happened in all parts of a batch."""
    lost, updates, wrong = zip(*parts, strict=True)
    return Learned(torch.cat(lost), sum(updates), sum(wrong))
