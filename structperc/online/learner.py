"""Learning sequence by sequence with a sparse scorer: tensors of a batch in, numbers of updates and errors out."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from numpy import ndarray
from torch import Tensor

from structperc.chain import Constraints
from structperc.criteria import Costs, UpdateRule
from structperc.criteria.base import ComparisonUnit
from structperc.kernels.arrays import FeatureArrays, TagSchemeMasks, WeightTables
from structperc.optim import AveragedOptimizer
from structperc.ragged import Ragged, boundaries
from structperc.scorers import SparseLinear
from structperc.structures import FlatBatch

NO_WEIGHTS = np.empty(0)


class UnitArrays(NamedTuple):
    """Sequences or sentences in the order of learning: unit u has the tokens bounds[u], ..., bounds[u + 1] - 1."""

    bounds: ndarray  # (U + 1,) int64
    gold: ndarray  # (n,) int64
    first: ndarray  # (n,) bool, first token of a sentence
    last: ndarray  # (n,) bool, last token of a sentence
    weights: ndarray = NO_WEIGHTS  # (n,) float64, equal within units; (0,): 1 each


class CostRows(NamedTuple):
    """Costs of the labels of all tokens, as rows of a table without rows if there are no costs."""

    table: ndarray  # (m, L) float64
    rows: ndarray  # (n,) int64


class RuleOptions(NamedTuple):
    """Numbers of an `UpdateRule`."""

    exclude_gold: bool
    threshold: float
    least_cost: float  # of a wrong label


class BatchResult(NamedTuple):
    """Losses, updates and errors of a batch.

    Example:
        >>> import torch
        >>> from structperc.online import BatchResult
        >>> result = BatchResult(torch.tensor([0.0, 2.5]), updates=1, wrong=3)
        >>> result.losses.sum().item(), result.updates
        (2.5, 1)
    """

    losses: Tensor  # (U,) float64, of the units in their order, 0 without an update
    updates: int  # units that moved the weights
    wrong: int  # tokens whose label in the best candidate is wrong


def merge_results(parts: list[BatchResult]) -> BatchResult:
    """Merge the results of the parts of a batch.

    Args:
        parts: results of one or more parts, in their order.

    Returns:
        The concatenated losses and the summed numbers.

    Example:
        >>> import torch
        >>> from structperc.online import BatchResult, merge_results
        >>> merge_results([BatchResult(torch.tensor([0.0]), 0, 0), BatchResult(torch.tensor([2.5]), 1, 3)])
        BatchResult(losses=tensor([0.0000, 2.5000]), updates=1, wrong=3)
    """
    losses, updates, wrong = zip(*parts, strict=True)
    return BatchResult(torch.cat(losses), sum(updates), sum(wrong))


class SequenceLearner(ABC):
    """Base class of learners that update the weights after each sequence, so that the batch size affects only speed.

    Example:
        >>> import torch
        >>> from structperc.online import BatchResult, SequenceLearner
        >>> from structperc.structures import FlatBatch
        >>> class NoLearner(SequenceLearner):  # leaves all weights as they are
        ...     def learn(self, batch):
        ...         return BatchResult(torch.zeros(len(batch.lengths)), updates=0, wrong=0)
        >>> NoLearner().learn(FlatBatch(*[None] * 9)._replace(lengths=torch.tensor([5, 7])))
        BatchResult(losses=tensor([0., 0.]), updates=0, wrong=0)
    """

    @abstractmethod
    def learn(self, batch: FlatBatch) -> BatchResult:
        """Learn the sequences of a batch in their order, each of which counts as a step of the optimizer."""


class OnlineLearner(SequenceLearner):
    """Learner of local weights, which processes all sequences of a batch in one compiled call.

    The weights and the state of the optimizer are those of training by gradients with one sequence per batch: the same
    bits if weights are whole numbers, otherwise the same up to rounding.

    Args:
        scorer: scorer to train, on a CPU.
        constraints: constraints of the tag scheme.
        rule: update rule of the criterion.
        optimizer: optimizer of all weights of the scorer; it stores the sums of their averages and counts the steps.

    Example:
        >>> import torch
        >>> from structperc.chain import Constraints
        >>> from structperc.criteria import PerceptronLoss
        >>> from structperc.data import LabelSet
        >>> from structperc.online import OnlineLearner
        >>> from structperc.optim import Perceptron
        >>> from structperc.ragged import Ragged
        >>> from structperc.scorers import SparseLinear
        >>> from structperc.structures import FlatBatch, Words
        >>> scorer, constraints = SparseLinear(), Constraints()
        >>> scorer.allocate(n_node=2, n_edge=0, n_labels=2)
        >>> constraints.allocate(LabelSet(("O", "B-PER"), "IOB2"))
        >>> learner = OnlineLearner(scorer, constraints, PerceptronLoss().rule(), Perceptron(scorer.parameters()))
        >>> nodes = Ragged.from_counts(torch.tensor([0, 1]), torch.tensor([1, 1]))  # one feature at each token
        >>> lengths, gold, zeros = torch.tensor([2]), torch.tensor([1, 0]), torch.zeros(2, dtype=torch.int64)
        >>> first, last = torch.tensor([True, False]), torch.tensor([False, True])
        >>> batch = FlatBatch(nodes, None, lengths, gold, zeros, first, last, torch.tensor([0]), Words(*[zeros] * 4))
        >>> [learner.learn(batch)[1:] for _ in range(2)]  # updates and wrong tokens
        [(1, 1), (0, 0)]
    """

    def __init__(
        self, scorer: SparseLinear, constraints: Constraints, rule: UpdateRule, optimizer: AveragedOptimizer
    ) -> None:
        self.scorer, self.constraints, self.rule, self.optimizer = scorer, constraints, rule, optimizer

    @torch.no_grad()
    def learn(self, batch: FlatBatch) -> BatchResult:
        """Learn the sequences of a batch, or their sentences, in their order; each counts as a step.

        Learning stops after a loss that is not finite.

        Args:
            batch: sequences with gold labels, on a CPU.

        Returns:
            Losses, and numbers of updates and of wrong tokens.
        """
        from structperc.online.compiled import learning_pass  # imports numba

        group, rule = self.optimizer.param_groups[0], self.rule
        step_size, units = self.optimizer.step_size_rule(group), units_of(batch, rule.unit)
        losses = np.zeros(len(units.bounds) - 1)
        costs = cost_rows(batch, rule.costs, self.scorer.node.shape[1])
        updates, wrong = learning_pass(rule.should_update, step_size.size)(
            units,
            features_of(batch),
            *weight_tables(self.scorer, self.optimizer),
            TagSchemeMasks(*(getattr(self.constraints, name).numpy() for name in TagSchemeMasks._fields)),
            RuleOptions(rule.exclude_gold, float(rule.threshold), rule.costs.least if rule.costs else 0.0),
            costs,
            step_size.numbers,
            group["steps"],
            losses,
        )
        self.optimizer.count(len(losses))
        return BatchResult(torch.from_numpy(losses), updates, wrong)


@torch.no_grad()
def update_local_weights(
    batch: FlatBatch,
    rival: Tensor,
    scorer: SparseLinear,
    optimizer: AveragedOptimizer,
    loss: float,
    norm: float,
    unit: ComparisonUnit = "sequence",
) -> float:
    """Move the weights of a scorer along Phi(gold) - Phi(rival) for one sequence.

    The optimizer computes the step size from the loss and the squared norm of the whole change. The step is not counted
    yet: call `optimizer.count(1)` when all weights have moved.

    Args:
        batch: one sequence with gold labels.
        rival: labels of the rival (T,) int64.
        scorer: scorer whose weights move, on a CPU.
        optimizer: optimizer of the weights.
        loss: loss of the sequence.
        norm: squared norm of the change of other weights.
        unit: unit whose local scores are independent of others: the "sequence" or each "sentence".

    Returns:
        The step size, with the weight of the sequence as a factor.

    Example:
        >>> import torch
        >>> from structperc.online import update_local_weights
        >>> from structperc.optim import Perceptron
        >>> from structperc.ragged import Ragged
        >>> from structperc.scorers import SparseLinear
        >>> from structperc.structures import FlatBatch, Words
        >>> scorer = SparseLinear(transitions=False)
        >>> scorer.allocate(n_node=1, n_edge=0, n_labels=2)
        >>> nodes = Ragged.from_counts(torch.tensor([0]), torch.tensor([1]))
        >>> one, zero, true = torch.tensor([1]), torch.tensor([0]), torch.tensor([True])
        >>> batch = FlatBatch(nodes, None, one, one, zero, true, true, zero, Words(*[zero] * 4))  # one token of label 1
        >>> size = update_local_weights(batch, zero, scorer, Perceptron(scorer.parameters()), loss=0.0, norm=0.0)
        >>> size, scorer.node.tolist()
        (1.0, [[-1.0, 1.0]])
    """
    from structperc.online.compiled import local_update  # imports numba

    group = optimizer.param_groups[0]
    step_size = optimizer.step_size_rule(group)
    batch = scorer.add_features(batch)
    return local_update(step_size.size)(
        units_of(batch, "sequence"),
        features_of(batch),
        *weight_tables(scorer, optimizer),
        rival.numpy(),
        tokens_alone(batch, unit),
        loss,
        norm,
        step_size.numbers,
        group["steps"],
    )


def weight_tables(
    scorer: SparseLinear, optimizer: AveragedOptimizer
) -> tuple[WeightTables, WeightTables, WeightTables]:
    """Return tables of weights, sums of their averages and marks of moved weights; views, empty if not stored."""
    kept = optimizer.param_groups[0]["average"]
    return (
        _tables(scorer, lambda p: p, scorer.node.dtype),
        _tables(scorer, lambda p: optimizer.sums(p) if kept else None, torch.float64),
        _tables(scorer, optimizer.moved_marks.get, torch.uint8),
    )


def _tables(scorer: SparseLinear, get: Callable[[Tensor], Tensor | None], dtype: torch.dtype) -> WeightTables:
    """Return the tensors of a scorer's parameters as arrays, without rows if there is no such parameter."""
    L = scorer.node.shape[1]
    tables = [None if p is None else get(p) for p in (scorer.node, scorer.edge, scorer.transition)]
    empty = [torch.empty(0, width, dtype=dtype) for width in (L, L * L, L)]
    return WeightTables(*((none if x is None else x).detach().numpy() for x, none in zip(tables, empty, strict=True)))


def cost_rows(batch: FlatBatch, costs: Costs | None, L: int) -> CostRows:
    """Return the costs of the labels of all tokens.

    Sequences without padding are one row of gold labels: legal gold segments do not cross the boundaries of sentences.
    """
    if costs is None:
        return CostRows(np.empty((0, L)), batch.gold.numpy())
    return CostRows(*(part.numpy() for part in costs.rows(batch.gold, L)))


def units_of(batch: FlatBatch, unit: ComparisonUnit) -> UnitArrays:
    """Return the sequences of a batch, or their sentences."""
    ends, first = boundaries(batch.lengths).numpy(), batch.first.numpy()
    bounds = ends if unit == "sequence" else np.append(first.nonzero()[0], ends[-1])
    weights = NO_WEIGHTS if batch.weights is None else batch.weights.double().numpy()
    return UnitArrays(bounds, batch.gold.numpy(), first, batch.last.numpy(), weights)


def tokens_alone(batch: FlatBatch, unit: ComparisonUnit) -> ndarray:
    """Return a mask (n,) of the tokens of one sequence whose pairs with the tokens before have no features."""
    return batch.first.numpy() if unit == "sentence" else np.arange(len(batch.gold)) == 0


def features_of(batch: FlatBatch) -> FeatureArrays:
    """Return the features of all tokens of a batch."""
    none = Ragged(batch.nodes.ids[:0], torch.zeros_like(batch.nodes.offsets))
    return FeatureArrays(*_arrays(batch.nodes), *_arrays(none if batch.edges is None else batch.edges))


def _arrays(features: Ragged) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    weights = torch.empty(0, dtype=torch.float32) if features.weights is None else features.weights
    return features.ids.numpy(), features.offsets.numpy(), weights.numpy()
