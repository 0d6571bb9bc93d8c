"""Learning sequence by sequence with a sparse scorer: tensors of a batch in, numbers of updates and errors out."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from numpy import ndarray
from torch import Tensor

from structperc.chain import Constraints
from structperc.criteria import UpdateRule
from structperc.criteria.base import ComparisonUnit
from structperc.kernels.arrays import FeatureArrays, TagSchemeMasks, WeightTables
from structperc.optim import AveragedOptimizer
from structperc.ragged import Ragged, boundaries
from structperc.scorers import SparseLinear
from structperc.structures import FlatBatch


class UnitArrays(NamedTuple):
    """Sequences or sentences in the order of learning: unit u has the tokens bounds[u], ..., bounds[u + 1] - 1."""

    bounds: ndarray  # (U + 1,) int64
    gold: ndarray  # (n,) int64
    first: ndarray  # (n,) bool, first token of a sentence
    last: ndarray  # (n,) bool, last token of a sentence


class RuleOptions(NamedTuple):
    """The numbers of an `UpdateRule`."""

    exclude_gold: bool
    cost: float
    threshold: float


class BatchResult(NamedTuple):
    """Losses, updates and errors of a batch."""

    losses: Tensor  # (U,) float64, of the units in their order, 0 without an update
    updates: int  # units that moved the weights
    wrong: int  # tokens whose label in the best candidate is not gold's


def merge_results(parts: list[BatchResult]) -> BatchResult:
    """Return the result of all parts of a batch."""
    losses, updates, wrong = zip(*parts, strict=True)
    return BatchResult(torch.cat(losses), sum(updates), sum(wrong))


class SequenceLearner(ABC):
    """Base class of learners that update the weights after each sequence, so that the batch size affects only speed."""

    @abstractmethod
    def learn(self, batch: FlatBatch) -> BatchResult:
        """Learn the sequences of a batch in their order, each of which counts as a step of the optimizer."""


class OnlineLearner(SequenceLearner):
    """Learns local weights, all sequences of a batch in one compiled call.

    Weights and optimizer end up as after training by gradients with one sequence per batch: the same bits
    where weights are whole numbers, otherwise the same up to rounding.

    Args:
        scorer: scorer to learn, on a CPU.
        constraints: constraints of the tag scheme.
        rule: update rule of the criterion.
        optimizer: optimizer of all weights of the scorer; it keeps the sums of their averages and counts the steps.
    """

    def __init__(
        self, scorer: SparseLinear, constraints: Constraints, rule: UpdateRule, optimizer: AveragedOptimizer
    ) -> None:
        self.scorer, self.constraints, self.rule, self.optimizer = scorer, constraints, rule, optimizer

    @torch.no_grad()
    def learn(self, batch: FlatBatch) -> BatchResult:
        """Learn the sequences of a batch, or their sentences, in their order; each counts as a step.

        Learning stops after a loss that is not finite.
        """
        from structperc.online.compiled import learning_pass  # imports numba

        group, rule = self.optimizer.param_groups[0], self.rule
        step_size, units = self.optimizer.step_size_rule(group), units_of(batch, rule.unit)
        losses = np.zeros(len(units.bounds) - 1)
        updates, wrong = learning_pass(rule.should_update, step_size.size)(
            units,
            features_of(batch),
            *weight_tables(self.scorer, self.optimizer),
            TagSchemeMasks(*(getattr(self.constraints, name).numpy() for name in TagSchemeMasks._fields)),
            RuleOptions(rule.exclude_gold, float(rule.cost), float(rule.threshold)),
            step_size.numbers,
            group["steps"],
            losses,
        )
        self.optimizer.count(len(losses))
        return BatchResult(torch.from_numpy(losses), updates, wrong)


@torch.no_grad()
def update_local_weights(
    batch: FlatBatch, rival: Tensor, scorer: SparseLinear, optimizer: AveragedOptimizer, loss: float, norm: float
) -> float:
    """Move the weights of a scorer along Phi(gold) - Phi(rival) of one sequence, and return the step size.

    The step size is the optimizer's for this loss and the squared norm of the whole change, of which `norm` is the part
    of other weights. The step is not counted yet. batch: one sequence. rival: (T,) int64.
    """
    from structperc.online.compiled import local_update  # imports numba

    group = optimizer.param_groups[0]
    step_size = optimizer.step_size_rule(group)
    return local_update(step_size.size)(
        units_of(batch, "sequence"),
        features_of(batch),
        *weight_tables(scorer, optimizer),
        rival.numpy(),
        loss,
        norm,
        step_size.numbers,
        group["steps"],
    )


def weight_tables(
    scorer: SparseLinear, optimizer: AveragedOptimizer
) -> tuple[WeightTables, WeightTables, WeightTables]:
    """Return weights of a scorer, sums of their averages and marks of moved ones, not copied; empty where not kept."""
    kept = optimizer.param_groups[0]["average"]
    return (
        _tables(scorer, lambda p: p, scorer.node.dtype),
        _tables(scorer, lambda p: optimizer.sums(p) if kept else None, torch.float64),
        _tables(scorer, optimizer.moved_marks.get, torch.uint8),
    )


def _tables(scorer: SparseLinear, get: Callable[[Tensor], Tensor | None], dtype: torch.dtype) -> WeightTables:
    """Return the tensors of a scorer's parameters as arrays, without rows where there is none."""
    L = scorer.node.shape[1]
    found = [None if p is None else get(p) for p in (scorer.node, scorer.edge, scorer.transition)]
    absent = [torch.empty(0, width, dtype=dtype) for width in (L, L * L, L)]
    return WeightTables(*((none if x is None else x).detach().numpy() for x, none in zip(found, absent, strict=True)))


def units_of(batch: FlatBatch, unit: ComparisonUnit) -> UnitArrays:
    """Return the sequences of a batch, or their sentences."""
    ends, first = boundaries(batch.lengths).numpy(), batch.first.numpy()
    bounds = ends if unit == "sequence" else np.append(first.nonzero()[0], ends[-1])
    return UnitArrays(bounds, batch.gold.numpy(), first, batch.last.numpy())


def features_of(batch: FlatBatch) -> FeatureArrays:
    """Return the features of all tokens of a batch."""
    none = Ragged(batch.nodes.ids[:0], torch.zeros_like(batch.nodes.offsets))
    return FeatureArrays(*_arrays(batch.nodes), *_arrays(none if batch.edges is None else batch.edges))


def _arrays(features: Ragged) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    weights = torch.empty(0, dtype=torch.float32) if features.weights is None else features.weights
    return features.ids.numpy(), features.offsets.numpy(), weights.numpy()
