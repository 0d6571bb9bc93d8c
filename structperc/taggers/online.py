"""Which taggers learn sequence by sequence in one compiled call."""

from typing import TYPE_CHECKING

import torch
from torch.optim import Optimizer

from structperc.online import OnlineLearner
from structperc.optim import AveragedOptimizer
from structperc.scorers import SparseLinear

if TYPE_CHECKING:
    from structperc.taggers.tagger import Tagger


def online_learner(tagger: "Tagger", optimizer: Optimizer) -> OnlineLearner | None:
    """Return what learns the sequences of a batch one after the other, or None where they are learned by gradients.

    It takes a scorer of sparse features alone, a criterion that has a rule and an optimizer that has a pace, without a
    prior. What asks for gradients is left to them: clipping, steps over several batches, devices other than a CPU.
    """
    rule = tagger.criterion.rule()
    pace = optimizer.pace() if isinstance(optimizer, AveragedOptimizer) else None
    scorer, trainer = tagger.scorer, tagger.trainer
    if rule is None or pace is None or type(scorer) is not SparseLinear or tagger.nonlocal_features:
        return None
    if tagger.prior is not None or trainer.gradient_clip_val or trainer.accumulate_grad_batches > 1:
        return None
    if trainer.world_size > 1 or scorer.node.device.type != "cpu" or scorer.node.dtype not in (torch.float32, torch.float64):
        return None
    assert isinstance(optimizer, AveragedOptimizer)
    return OnlineLearner(scorer, tagger.constraints, rule, pace, optimizer)
