"""Learning sequence by sequence with sparse scores: tensors of a batch in, numbers of updates and errors out."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy import ndarray
from torch import Tensor

from structperc.chain.segment_scores import segment_kinds
from structperc.criteria.base import ComparisonUnit, UpdateRule
from structperc.criteria.costs import Costs
from structperc.data.labels import AllowedTransitions
from structperc.kernels.array_types import FeatureArrays, SegmentArrays, WeightTables
from structperc.optim.averaged_perceptron import AveragedOptimizer
from structperc.ragged import Ragged, boundaries
from structperc.scorers.base import LinearForm, SegmentForm
from structperc.scorers.segment_linear import candidate_mask
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


class FlatWeights(NamedTuple):
    """Weights that change, with sums of their averages and marks of moved ones; each a tuple as in `WeightTables`."""

    sizes: tuple[int, ...]  # numbers of weights of nodes, edges and transitions, and number of labels
    weights: tuple[ndarray, ...]  # (N,)
    sums: tuple[ndarray, ...]  # (N,) float64, or (0,)
    moved: tuple[ndarray, ...]  # (N,) uint8, or (0,)


class BatchResult(NamedTuple):
    """Losses, updates and errors of a batch."""

    losses: Tensor  # (U,) float64, of the units in their order, 0 without an update
    updates: int  # units that moved the weights
    wrong: int  # tokens whose label in the best candidate is wrong


def merge_results(parts: list[BatchResult]) -> BatchResult:
    """Merge the results of the parts of a batch.

    Args:
        parts: results of one or more parts, in their order.

    Returns:
        The concatenated losses and the summed numbers.
    """
    losses, updates, wrong = zip(*parts, strict=True)
    return BatchResult(torch.cat(losses), sum(updates), sum(wrong))


class SequenceLearner(ABC):
    """Base class of learners that update the weights after each sequence, so that the batch size affects only speed.

    Example:
        >>> import torch
        >>> from structperc.online.learner import BatchResult, SequenceLearner
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
        form: compiled form of the scorer to train, with weights on a CPU.
        scheme: what the tag scheme allows.
        rule: update rule of the criterion.
        optimizer: optimizer of all weights of the scorer; it stores the sums of their averages and counts the steps.
    """

    def __init__(
        self, form: LinearForm, scheme: AllowedTransitions, rule: UpdateRule, optimizer: AveragedOptimizer
    ) -> None:
        self.form, self.scheme, self.rule, self.optimizer = form, scheme, rule, optimizer

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
        step_size, units = self.optimizer.step_size_rule(group), _units(batch, rule.unit)
        losses, (kernels, segments) = np.zeros(len(units.bounds) - 1), _kernels(batch, self.form)
        weights, changed = _weight_tables(self.form, self.optimizer)
        updates, wrong = learning_pass(rule.should_update, step_size.size, kernels, rule.exclude_gold)(
            units,
            _features(batch),
            segments,
            weights,
            changed,
            self.scheme,
            RuleOptions(rule.exclude_gold, float(rule.threshold), rule.costs.least if rule.costs else 0.0),
            _cost_rows(batch, rule.costs, weights.node.shape[1]),
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
    form: LinearForm,
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
        form: compiled form of the scorer whose weights move, as for `OnlineLearner`.
        optimizer: optimizer of the weights.
        loss: loss of the sequence.
        norm: squared norm of the change of other weights.
        unit: unit whose local scores are independent of others: the "sequence" or each "sentence".

    Returns:
        The step size, with the weight of the sequence as a factor.
    """
    from structperc.online.compiled import local_update  # imports numba

    group = optimizer.param_groups[0]
    step_size = optimizer.step_size_rule(group)
    batch = form.with_features(batch)
    return local_update(step_size.size)(
        _units(batch, "sequence"),
        _features(batch),
        _kernels(batch, form)[1],
        _weight_tables(form, optimizer)[1],
        rival.numpy(),
        _sequence_starts(batch, unit),
        loss,
        norm,
        step_size.numbers,
        group["steps"],
    )


def _kernels(batch: FlatBatch, form: LinearForm) -> tuple[Any, SegmentArrays | None]:
    """Return the kernels for the scores of a form, and the features of segments of a batch, if any."""
    from structperc.online.compiled import CHAIN  # imports numba
    from structperc.online.compiled_segments import SEGMENTS

    if form.segments is None:
        return CHAIN, None
    return SEGMENTS, _segments(batch, form.segments, form.node.shape[1])


def _weight_tables(form: LinearForm, optimizer: AveragedOptimizer) -> tuple[WeightTables, FlatWeights]:
    """Return the weights as tables, and all that learning changes; views, empty if not stored."""
    kept, L = optimizer.param_groups[0]["average"], form.node.shape[1]
    parameters = [form.weights.get(name) for name in WeightTables._fields]

    def tables(get: Callable[[Tensor], Tensor | None], dtype: torch.dtype) -> WeightTables:
        found = [None if p is None else get(p) for p in parameters]
        empty = [torch.empty(0, width, dtype=dtype) for width in (L, L * L, L, 1)]
        return WeightTables(
            *((none if x is None else x).detach().numpy() for x, none in zip(found, empty, strict=True))
        )

    weights = tables(lambda p: p, form.node.dtype)
    sums = tables(lambda p: optimizer.sums(p) if kept else None, torch.float64)
    stored = (
        tuple(x.reshape(-1) for x in part) for part in (weights, sums, tables(optimizer.moved_weights.get, torch.uint8))
    )
    return weights, FlatWeights((*(x.size for x in weights[:3]), L), *stored)


def _cost_rows(batch: FlatBatch, costs: Costs | None, L: int) -> CostRows:
    """Return the costs of the labels of all tokens.

    Sequences without padding are one row of gold labels: legal gold segments do not cross the boundaries of sentences.
    """
    if costs is None:
        return CostRows(np.empty((0, L)), batch.gold.numpy())
    return CostRows(*(part.numpy() for part in costs.rows(batch.gold, L)))


def _units(batch: FlatBatch, unit: ComparisonUnit) -> UnitArrays:
    """Return the sequences of a batch, or their sentences."""
    ends, first = boundaries(batch.lengths).numpy(), batch.first.numpy()
    bounds = ends if unit == "sequence" else np.append(first.nonzero()[0], ends[-1])
    weights = NO_WEIGHTS if batch.weights is None else batch.weights.double().numpy()
    return UnitArrays(bounds, batch.gold.numpy(), first, batch.last.numpy(), weights)


def _sequence_starts(batch: FlatBatch, unit: ComparisonUnit) -> ndarray:
    """Return a mask (n,) of the tokens of one sequence whose pairs with the tokens before have no features."""
    return batch.first.numpy() if unit == "sentence" else np.arange(len(batch.gold)) == 0


def _features(batch: FlatBatch) -> FeatureArrays:
    """Return the features of all tokens of a batch."""
    none = Ragged(batch.nodes.ids[:0], torch.zeros_like(batch.nodes.offsets))
    return FeatureArrays(*_arrays(batch.nodes), *_arrays(none if batch.edges is None else batch.edges))


def _arrays(features: Ragged) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    weights = torch.empty(0, dtype=torch.float32) if features.weights is None else features.weights
    return features.ids.numpy(), features.offsets.numpy(), weights.numpy()


def _segments(batch: FlatBatch, form: SegmentForm, L: int) -> SegmentArrays:
    """Return the features of all segments of a batch, for L labels."""
    own, D = form.first_input, form.max_length
    inputs, pruned = batch.inputs[own : own + D], batch.inputs[own + D :]
    before = np.cumsum([0, *(len(one.ids) for one in inputs)])[:-1]
    ends = np.stack([one.offsets.numpy() + first for one, first in zip(inputs, before, strict=True)])
    kinds, begins = segment_kinds(form.table, L)
    ids = torch.cat([one.ids for one in inputs]).numpy()
    candidates = candidate_mask(pruned[0], D, training=True) if pruned else torch.ones(0, D, dtype=torch.bool)
    masks = np.repeat(candidates.numpy()[:, :, None], len(form.table) - 1, 2)
    return SegmentArrays(ids, ends.astype(np.int64), masks, form.table.numpy(), kinds.numpy(), begins.numpy())
