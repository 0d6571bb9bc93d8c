"""Which taggers learn sequence by sequence."""

from collections.abc import Callable, Sequence

from torch import Tensor
from torch.optim import Optimizer

from structperc.chain import Constraints
from structperc.criteria import Criterion, LocalAndNonlocal, RivalCriterion
from structperc.online import OnlineLearner, SequenceLearner
from structperc.ops.declare import COMPILED
from structperc.optim import AveragedOptimizer
from structperc.scorers import Scorer, SparseLinear
from structperc.structures import Batch, Scored
from structperc.taggers.candidate_learner import CandidateLearner


def online_learner(
    scorer: Scorer,
    constraints: Constraints,
    criterion: Criterion,
    optimizer: Optimizer,
    further: Sequence[Tensor],
    compare: Callable[[Batch], tuple[Scored, Scored]],
) -> SequenceLearner | None:
    """Return what learns the sequences of a batch one after the other, or None where they are learned by gradients.

    It takes a scorer of sparse features alone, on a CPU, an optimizer of all weights that has a pace, and a criterion
    that has a rule or, where there are `further` weights of non-local features, decides between gold and one of the
    candidates that `compare` finds and scores.
    """
    paced = isinstance(optimizer, AveragedOptimizer) and optimizer.pace() is not None
    learned = {p for group in optimizer.param_groups for p in group["params"] if p.requires_grad}
    if not paced or type(scorer) is not SparseLinear or learned != {*scorer.parameters(), *further}:
        return None
    if scorer.node.device.type != "cpu" or scorer.node.dtype not in COMPILED:
        return None
    assert isinstance(optimizer, AveragedOptimizer)
    if not _still_says(optimizer, "pace", "_step_size", "step"):
        return None
    by_candidates = isinstance(criterion, LocalAndNonlocal | RivalCriterion)
    if by_candidates and not _still_says(criterion, "decide", "judge", "weighed"):
        return None
    if isinstance(criterion, LocalAndNonlocal):
        rule = criterion.local_rule()
        local = rule and OnlineLearner(scorer, constraints, rule, optimizer)
        return CandidateLearner(compare, criterion, scorer, further, optimizer, local)
    if further:
        decides = isinstance(criterion, RivalCriterion)
        return CandidateLearner(compare, criterion, scorer, further, optimizer) if decides else None
    rule = criterion.rule()
    others = ("judge", "augment", "reads", "decide", "weighed", "rival", "asks")
    if rule is None or not _still_says(criterion, "rule", *(one for one in others if hasattr(criterion, one))):
        return None
    return OnlineLearner(scorer, constraints, rule, optimizer)


def _still_says(part: object, name: str, *others: str) -> bool:
    """Whether a method speaks for the others: no class derived from the one that gives it has given them anew."""
    classes = type(part).__mro__
    given = {one: next(i for i, cls in enumerate(classes) if one in vars(cls)) for one in (name, *others)}
    return all(given[one] >= given[name] for one in others)
