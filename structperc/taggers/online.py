"""Which taggers learn sequence by sequence in one compiled call."""

from typing import TYPE_CHECKING

import torch
from torch.optim import Optimizer

from structperc.criteria import LocalAndNonlocal, RivalCriterion
from structperc.online import OnlineLearner
from structperc.optim import AveragedOptimizer
from structperc.scorers import SparseLinear
from structperc.taggers.candidate_learner import CandidateLearner

if TYPE_CHECKING:
    from structperc.taggers.tagger import Tagger


def online_learner(tagger: "Tagger", optimizer: Optimizer) -> OnlineLearner | CandidateLearner | None:
    """Return what learns the sequences of a batch one after the other, or None where they are learned by gradients.

    It takes a scorer of sparse features alone, an optimizer that has a pace, and a criterion that has a rule or, for
    candidates with total scores, decides between gold and one of them; without a prior. What asks for gradients is left
    to them: clipping, steps over several batches, devices other than a CPU.
    """
    pace = optimizer.pace() if isinstance(optimizer, AveragedOptimizer) else None
    scorer, criterion = tagger.scorer, tagger.criterion
    if pace is None or type(scorer) is not SparseLinear or not _alone(tagger, scorer):
        return None
    assert isinstance(optimizer, AveragedOptimizer)
    if isinstance(criterion, LocalAndNonlocal):
        local = criterion.local_rule()
        sentences = local and OnlineLearner(scorer, tagger.constraints, local, pace, optimizer)
        return CandidateLearner(tagger, optimizer, pace, sentences)
    if tagger.nonlocal_features:
        return CandidateLearner(tagger, optimizer, pace) if isinstance(criterion, RivalCriterion) else None
    rule = criterion.rule()
    return rule and OnlineLearner(scorer, tagger.constraints, rule, pace, optimizer)


def _alone(tagger: "Tagger", scorer: SparseLinear) -> bool:
    """Whether nothing but the step of the optimizer moves the weights, on a CPU."""
    trainer = tagger.trainer
    if tagger.prior is not None or trainer.gradient_clip_val or trainer.accumulate_grad_batches > 1:
        return False
    here = scorer.node.device.type == "cpu" and scorer.node.dtype in (torch.float32, torch.float64)
    return here and trainer.world_size == 1
