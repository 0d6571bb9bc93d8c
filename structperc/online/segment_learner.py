"""Learning sequence by sequence with scores of labels and of segments."""

from typing import TYPE_CHECKING, cast

import numpy as np
import torch
from torch import Tensor

from structperc.chain import Constraints
from structperc.chain.segment_scores import segment_kinds
from structperc.criteria import UpdateRule
from structperc.criteria.base import ComparisonUnit
from structperc.kernels.arrays import SegmentArrays, TagSchemeMasks
from structperc.online.learner import (
    BatchResult,
    RuleOptions,
    SequenceLearner,
    cost_rows,
    features_of,
    tokens_alone,
    units_of,
    weight_tables,
)
from structperc.optim import AveragedOptimizer
from structperc.scorers import SegmentLinear, SparseLinear
from structperc.scorers.segment_linear import candidate_mask
from structperc.structures import FlatBatch

if TYPE_CHECKING:
    from structperc.online.compiled_segments import SegmentTables


class SegmentLearner(SequenceLearner):
    """Learner of the weights of a `SegmentLinear` over a `SparseLinear`, in one compiled call for each batch.

    The weights and the state of the optimizer are those of training by gradients with one sequence per batch, up to
    rounding.

    Args:
        scorer: scorer to train, on a CPU.
        constraints: constraints of the tag scheme.
        rule: update rule of the criterion.
        optimizer: optimizer of all weights of the scorer.

    Example:
        >>> from structperc import FeatureExtractor, Tagger
        >>> from structperc.chain import KBest
        >>> from structperc.criteria import HingeLoss
        >>> from structperc.data import Corpus, LabelSet
        >>> from structperc.datamodules import EncodedCorpus
        >>> from structperc.online import SegmentLearner
        >>> from structperc.optim import Perceptron
        >>> from structperc.scorers import SegmentFeatures, SegmentLinear, SparseLinear
        >>> corpus = Corpus.from_sentences([{"word": ["in", "New", "York"], "label": ["O", "B-LOC", "I-LOC"]}])
        >>> scorer = SegmentLinear(SparseLinear(), SegmentFeatures(["w[all]"], max_length=2, cutoff=1))
        >>> tagger = Tagger(FeatureExtractor(["w[0]"], cutoff=1), scorer, HingeLoss(), KBest(1))
        >>> scorer.build_vocabulary(corpus)
        >>> tagger.features.fit(corpus)
        >>> tagger.allocate(LabelSet(("O", "B-LOC", "I-LOC")))
        >>> batch = EncodedCorpus(corpus, tagger.features, tagger.labels, tagger.inputs(corpus)).flat([0])
        >>> optimizer = Perceptron(scorer.parameters())
        >>> learner = SegmentLearner(scorer, tagger.constraints, tagger.criterion.rule(), optimizer)
        >>> [learner.learn(batch)[1:] for _ in range(2)]  # updates and wrong tokens
        [(1, 2), (0, 0)]
    """

    def __init__(
        self, scorer: SegmentLinear, constraints: Constraints, rule: UpdateRule, optimizer: AveragedOptimizer
    ) -> None:
        assert isinstance(scorer.labels, SparseLinear)
        self.scorer, self.labels = scorer, scorer.labels
        self.constraints, self.rule, self.optimizer = constraints, rule, optimizer

    @torch.no_grad()
    def learn(self, batch: FlatBatch) -> BatchResult:
        """Learn the sequences of a batch, or their sentences, in their order; each counts as a step."""
        from structperc.online.compiled_segments import segment_learning_pass  # imports numba

        group, rule = self.optimizer.param_groups[0], self.rule
        step_size, units = self.optimizer.step_size_rule(group), units_of(batch, rule.unit)
        losses = np.zeros(len(units.bounds) - 1)
        updates, wrong = segment_learning_pass(rule.should_update, step_size.size)(
            units,
            features_of(batch),
            _segments_of(batch, self.scorer),
            *weight_tables(self.labels, self.optimizer),
            _segment_tables(self.scorer, self.optimizer),
            TagSchemeMasks(*(getattr(self.constraints, name).numpy() for name in TagSchemeMasks._fields)),
            RuleOptions(rule.exclude_gold, float(rule.threshold), rule.costs.least if rule.costs else 0.0),
            cost_rows(batch, rule.costs, self.labels.node.shape[1]),
            step_size.numbers,
            group["steps"],
            losses,
        )
        self.optimizer.count(len(losses))
        return BatchResult(torch.from_numpy(losses), updates, wrong)


@torch.no_grad()
def update_segment_weights(
    batch: FlatBatch,
    rival: Tensor,
    scorer: SegmentLinear,
    optimizer: AveragedOptimizer,
    loss: float,
    norm: float,
    unit: ComparisonUnit = "sequence",
) -> float:
    """Move the weights of labels and segments along Phi(gold) - Phi(rival) for one sequence.

    The arguments and the result are those of `update_local_weights`.

    Example:
        >>> from structperc import FeatureExtractor, Tagger
        >>> from structperc.chain import KBest
        >>> from structperc.criteria import HingeLoss
        >>> from structperc.data import Corpus, LabelSet
        >>> from structperc.datamodules import EncodedCorpus
        >>> from structperc.online import update_segment_weights
        >>> from structperc.optim import Perceptron
        >>> from structperc.scorers import SegmentFeatures, SegmentLinear, SparseLinear
        >>> corpus = Corpus.from_sentences([{"word": ["York"], "label": ["B-LOC"]}])
        >>> scorer = SegmentLinear(SparseLinear(), SegmentFeatures(["w[all]"], max_length=1, cutoff=1))
        >>> tagger = Tagger(FeatureExtractor(["w[0]"], cutoff=1), scorer, HingeLoss(), KBest(1))
        >>> scorer.build_vocabulary(corpus)
        >>> tagger.features.fit(corpus)
        >>> tagger.allocate(LabelSet(("O", "B-LOC", "I-LOC")))
        >>> batch = EncodedCorpus(corpus, tagger.features, tagger.labels, tagger.inputs(corpus)).flat([0])
        >>> outside, optimizer = torch.tensor([0]), Perceptron(scorer.parameters())
        >>> size = update_segment_weights(batch, outside, scorer, optimizer, loss=0.0, norm=0.0)
        >>> size, scorer.weight.tolist(), scorer.labels.node.tolist()
        (1.0, [[1.0]], [[-1.0, 1.0, 0.0]])
    """
    from structperc.online.compiled_segments import segment_update  # imports numba

    assert isinstance(scorer.labels, SparseLinear)
    group = optimizer.param_groups[0]
    step_size = optimizer.step_size_rule(group)
    return segment_update(step_size.size)(
        units_of(batch, "sequence"),
        features_of(batch),
        _segments_of(batch, scorer),
        *weight_tables(scorer.labels, optimizer),
        _segment_tables(scorer, optimizer),
        rival.numpy(),
        tokens_alone(batch, unit),
        loss,
        norm,
        step_size.numbers,
        group["steps"],
    )


def _segments_of(batch: FlatBatch, scorer: SegmentLinear) -> SegmentArrays:
    """Return the features of all segments of a batch."""
    own, D = scorer.labels.n_inputs, scorer.segments.max_length
    inputs, pruned = batch.inputs[own : own + D], batch.inputs[own + D :]
    before = np.cumsum([0, *(len(one.ids) for one in inputs)])[:-1]
    ends = np.stack([one.offsets.numpy() + first for one, first in zip(inputs, before, strict=True)])
    kinds, begins = segment_kinds(scorer.table, cast(SparseLinear, scorer.labels).node.shape[1])
    ids = torch.cat([one.ids for one in inputs]).numpy()
    candidates = candidate_mask(pruned[0], D, training=True) if pruned else torch.ones(0, D, dtype=torch.bool)
    labels = scorer.table.numpy(), kinds.numpy(), begins.numpy()
    return SegmentArrays(ids, ends.astype(np.int64), candidates.numpy(), *labels)


def _segment_tables(scorer: SegmentLinear, optimizer: AveragedOptimizer) -> "SegmentTables":
    """Return tables of weights of segments, sums of their averages and marks of moved weights."""
    from structperc.online.compiled_segments import SegmentTables

    weight, none = scorer.weight, torch.empty(0, 1)
    sums = optimizer.sums(weight) if optimizer.param_groups[0]["average"] else none.double()
    moved = optimizer.moved_marks.get(weight, none.byte())
    return SegmentTables(*(x.detach().numpy() for x in (weight, sums, moved)))
