"""What the kernels of online learning read and write: tensors of a batch and of a tagger, as arrays.

A tagger's weights, learned sequence by sequence: the tensors of a batch go in, what happened comes out.
"""

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
from structperc.optim import AveragedOptimizer, StepSizeRule
from structperc.ragged import Ragged, boundaries
from structperc.scorers import SparseLinear
from structperc.structures import FlatBatch


class UnitArrays(NamedTuple):
    """The stretches of tokens that are learned one after the other: unit u is the tokens bounds[u], ..., n tokens."""

    bounds: ndarray  # (U + 1,) int64
    gold: ndarray  # (n,) int64
    first: ndarray  # (n,) bool, first token of a sentence
    last: ndarray  # (n,) bool, last token of a sentence


class RuleOptions(NamedTuple):
    """The numbers of a rule; see `criteria.UpdateRule`."""

    other: bool
    cost: float
    limit: float


class BatchResult(NamedTuple):
    """What happened while a batch was learned."""

    losses: Tensor  # (U,) float64, of the units in their order, 0 where nothing was asked for
    updates: int  # units that moved the weights
    wrong: int  # tokens whose label in the best candidate is not gold's


def merge_results(parts: list[BatchResult]) -> BatchResult:
    """Return what happened in all parts of a batch."""
    lost, updates, wrong = zip(*parts, strict=True)
    return BatchResult(torch.cat(lost), sum(updates), sum(wrong))


class SequenceLearner(ABC):
    """Base of what learns the sequences of a batch one after the other.

    Each is decided with the weights that the one before left, so that the size of a batch is a matter of speed alone.
    """

    @abstractmethod
    def learn(self, batch: FlatBatch) -> BatchResult:
        """Learn the sequences of a batch in their order, each of which counts as a step of the optimizer."""


class OnlineLearner(SequenceLearner):
    """Learns local weights, all sequences of a batch in one compiled call.

    It leaves in the weights and in the optimizer what as many batches of one sequence would, by the losses' gradients:
    the same bits where weights are whole numbers, else the same to rounding.

    Args:
        scorer: whose weights are learned; on a CPU.
        constraints: of the tag scheme.
        rule: of the criterion.
        optimizer: of all the weights of the scorer, with a pace; it keeps the sums of their averages, counts the steps.
    """

    def __init__(
        self, scorer: SparseLinear, constraints: Constraints, rule: UpdateRule, optimizer: AveragedOptimizer
    ) -> None:
        self.scorer, self.constraints, self.rule, self.optimizer = scorer, constraints, rule, optimizer

    @torch.no_grad()
    def learn(self, batch: FlatBatch) -> BatchResult:
        """Learn the sequences of a batch, or their sentences, in their order; each counts as a step.

        Nothing more is learned after a loss that is no finite number.
        """
        from structperc.online.compiled import learning_pass  # which needs a compiler

        units = units_of(batch, self.rule.unit)
        losses = np.zeros(len(units.bounds) - 1)
        step_size_rule = pace_of(self.optimizer)
        updates, wrong = learning_pass(self.rule.should_update, step_size_rule.size)(
            units,
            features_of(batch),
            weights_of(self.scorer),
            sums_of(self.scorer, self.optimizer),
            moved_of(self.scorer, self.optimizer),
            TagSchemeMasks(*(getattr(self.constraints, name).numpy() for name in TagSchemeMasks._fields)),
            RuleOptions(self.rule.other, float(self.rule.cost), float(self.rule.limit)),
            step_size_rule.numbers,
            self.optimizer.param_groups[0]["steps"],
            losses,
        )
        self.optimizer.count(len(losses))
        return BatchResult(torch.from_numpy(losses), updates, wrong)


def pace_of(optimizer: AveragedOptimizer) -> StepSizeRule:
    """Return the pace of an optimizer that has one, with the learning rate of now."""
    step_size_rule = optimizer.step_size_rule()
    assert step_size_rule is not None
    return step_size_rule


@torch.no_grad()
def update_local_weights(
    batch: FlatBatch,
    rival: Tensor,
    scorer: SparseLinear,
    optimizer: AveragedOptimizer,
    loss: float,
    norm: float,
) -> float:
    """Move the weights of a scorer along Phi(gold) - Phi(rival) of one sequence, and return how far.

    The step is that of the optimizer's pace for this loss, and for a change of which `norm` is the squared norm of
    what is not the scorer's. It is not counted yet. batch: the sequence alone. rival: (T,) int64.
    """
    from structperc.online.compiled import local_update

    step_size_rule = pace_of(optimizer)
    return local_update(step_size_rule.size)(
        units_of(batch, "sequence"),
        features_of(batch),
        weights_of(scorer),
        sums_of(scorer, optimizer),
        moved_of(scorer, optimizer),
        rival.numpy(),
        loss,
        norm,
        step_size_rule.numbers,
        optimizer.param_groups[0]["steps"],
    )


def weights_of(scorer: SparseLinear) -> WeightTables:
    """Return the weights of a scorer, not copied."""
    return _tables(scorer, lambda p: p, scorer.node.dtype)


def sums_of(scorer: SparseLinear, optimizer: AveragedOptimizer) -> WeightTables:
    """Return the sums of the averages of a scorer's weights, not copied; without rows if there is no average."""
    kept = optimizer.param_groups[0]["average"]
    return _tables(scorer, lambda p: optimizer.sums(p) if kept else None, torch.float64)


def moved_of(scorer: SparseLinear, optimizer: AveragedOptimizer) -> WeightTables:
    """Return the marks of a scorer's weights that have moved, not copied; without rows if nobody asks for them."""
    return _tables(scorer, optimizer.moved_marks.get, torch.uint8)


def _tables(scorer: SparseLinear, of: Callable[[Tensor], Tensor | None], dtype: torch.dtype) -> WeightTables:
    """Return what there is `of` each of a scorer's parameters, in this dtype."""
    L = scorer.node.shape[1]
    found = [None if p is None else of(p) for p in (scorer.node, scorer.edge, scorer.transition)]
    absent = [torch.empty(0, width, dtype=dtype) for width in (L, L * L, L)]
    return WeightTables(*((none if x is None else x).detach().numpy() for x, none in zip(found, absent, strict=True)))


def units_of(batch: FlatBatch, unit: ComparisonUnit) -> UnitArrays:
    """Return the sequences of a batch or their sentences, the tokens one after the other."""
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
