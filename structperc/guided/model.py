"""The bidirectional tagger of Shen et al. 2007, its update rules (Algorithm 2) and its averaging optimizer."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import torch
from torch import Tensor, nn

from structperc.errors import InputError
from structperc.guided.context_features import ContextFeatures
from structperc.guided.training_arrays import (
    Decisions,
    TokenArrays,
    TrainingData,
    WeightSums,
    check_range,
    sentence_starts,
    to_cpu,
    without_padding,
    writable_arrays,
)
from structperc.optim.averaged_perceptron import AveragedOptimizer, StepSizeRule, constant_size
from structperc.scorers import SparseLinear
from structperc.structures import Batch, FlatBatch


class LearningCounts(NamedTuple):
    """Counts over the sentences of a mini-batch.

    Attributes:
        updates: number of updates of the weights.
        decisions: number of chosen candidates, accepted or not.
        errors: number of chosen candidates whose best hypothesis was wrong.
    """

    updates: int
    decisions: int
    errors: int


class GuidedRule(ABC):
    """Base class of update rules: when a chosen candidate is accepted, and when the weights are changed.

    The order of inference and the scores of actions are learned together, sentence by sentence.
    """

    supports_incomplete = False  # True if it learns from sets of allowed labels, `TrainingData.allowed`

    @abstractmethod
    def learn(self, data: TrainingData) -> LearningCounts:
        """Learn from each sentence once."""


class Aggressive(GuidedRule):
    """Update rule that accepts only right hypotheses. Shen, Satta & Joshi 2007, Algorithm 2.

    If the best hypothesis of the chosen candidate is not the gold hypothesis, which has the gold labels on all tokens
    of the span, the weights of the features of its last action decrease, those of the last gold action increase, the
    queue is renewed and a candidate is chosen again. The best hypothesis of all accepted spans is thus the gold
    hypothesis; V of a span is not recomputed after it is accepted.

    With a margin (Krauth & Mézard 1987) there is also an update if the best hypothesis is the gold hypothesis, but
    V(gold) <= V(rival) + margin, where the rival is the best hypothesis on the same span, with the present weights,
    among those with another label in the last action. Such an update increases this gap by the squared norm of the
    difference of the features of the two actions.

    With sets of allowed labels, a hypothesis is right if all its labels are allowed. The best hypothesis is the gold
    hypothesis if it is right. Otherwise the gold action is the best one with an allowed label, in the context of the
    best hypotheses of the neighbouring spans, which are right. The rival of a margin has a label that is not allowed.

    Args:
        margin: margin in units of the score; 0 for none.
        limit: maximal number of updates per token of a sentence, as not all data are separable; learning then
            continues with the next sentence.

    Raises:
        InputError: margin is negative, or limit < 1.
    """

    supports_incomplete = True

    def __init__(self, margin: float = 0.0, limit: int = 10) -> None:
        if not margin >= 0:
            raise InputError(f"Aggressive: margin must be >= 0, got {margin}")
        if limit < 1:
            raise InputError(f"Aggressive: limit must be >= 1 update per token, got {limit}")
        self.margin, self.limit = margin, limit

    def learn(self, data: TrainingData) -> LearningCounts:
        """Learn from each sentence once."""
        from structperc.guided import updates  # needs numba

        return LearningCounts(*updates.learn(data, True, float(self.margin), int(self.limit)))


class EarlyUpdate(GuidedRule):
    """Update rule that accepts each chosen candidate while the gold hypothesis is in its beam. Collins & Roark 2004.

    If no state of the chosen candidate contains the gold hypothesis, or if the sentence is complete and another
    hypothesis is best, the weights of the features of all actions of the gold hypothesis on this span increase, those
    of the best hypothesis decrease, and learning continues with the next sentence. Other spans of the sentence are not
    compared.

    With sets of allowed labels, a hypothesis is right if all its labels are allowed. The chosen candidate is accepted
    while the best hypothesis of one of its states is right. The gold hypothesis is then the best one that adds an
    allowed label to right hypotheses in the beams of the neighbouring spans.
    """

    supports_incomplete = True

    def learn(self, data: TrainingData) -> LearningCounts:
        """Learn from each sentence once."""
        from structperc.guided import updates  # needs numba

        return LearningCounts(*updates.learn(data, False, 0.0, 0))


class GuidedOptimizer(AveragedOptimizer):
    """Optimizer of guided learning: perceptron updates without gradients, averaged over decisions.

    The average is over the weights after each decision, also the decisions that change nothing. Weights are integers if
    those of the sentences are, exact in float32 below 2**24; the sums of the average are float64. `GuidedModel.learn`
    changes weights and sums.

    Args:
        params: parameters of a `GuidedModel`.
        average: evaluate the average over all decisions, see `evaluation_weights()`.
    """

    def __init__(self, params: Iterable[Any], average: bool = True) -> None:
        super().__init__(params, {}, average)

    def step_size_rule(self, group: dict[str, Any]) -> StepSizeRule:
        """Return a step size of 1."""
        return StepSizeRule(constant_size, (1.0,))

    def sums(self, p: Tensor) -> Tensor:
        """Return the sums for the average of a parameter, float64; without rows if weights are not averaged."""
        if not self.param_groups[0]["average"]:
            return p.new_empty(0, *p.shape[1:], dtype=torch.float64)
        return super().sums(p)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Return the result of the closure, if any; `GuidedModel.learn` has already changed the weights."""
        return None if closure is None else closure()


Order = Literal["easiest", "left-to-right"]


class GuidedModel(nn.Module):
    """Bidirectional tagger whose order of inference is learned. Shen, Satta & Joshi 2007.

    U(token i gets label y) = sum_f static.node[f, y] + sum_g context.table[g, y] over the features f of the token and
    the features g of those neighbouring labels that are decided (Eq. 2). V(hypothesis) = V(left context) +
    V(right context) + U (Eq. 1). All labels are tried for all tokens.

    Learning updates the parameters without gradients, with a `GuidedOptimizer`. It runs on a CPU: weights on another
    device are copied for each mini-batch. `structperc.taggers.GuidedTagger` trains and applies the model.

    Args:
        static: scores of features that do not depend on the labels of other tokens.
        context: scores of features that depend on the labels of other tokens.
        beam: number of states of each span.
        order: "easiest", or "left-to-right" for comparison.
        rule: when learning accepts a candidate and when it changes the weights; by default Aggressive().

    Raises:
        InputError: beam < 1, an unknown order, or static has transitions.

    Example:
        >>> import torch
        >>> from structperc.guided import ContextFeatures, GuidedModel
        >>> from structperc.guided.model import GuidedOptimizer
        >>> from structperc.nn.inputs import TokenPositions, build_batch
        >>> from structperc.ragged import Ragged
        >>> from structperc.scorers import SparseLinear
        >>> from structperc.structures import FlatBatch, Words
        >>> model = GuidedModel(SparseLinear(transitions=False), ContextFeatures(["t[-1]", "t[1]"]))
        >>> model.allocate(n_node=2, n_labels=2)
        >>> nodes = Ragged.from_counts(torch.tensor([0, 1]), torch.tensor([1, 1]))  # one feature at each token
        >>> lengths, gold, zeros = torch.tensor([2]), torch.tensor([1, 0]), torch.zeros(2, dtype=torch.int64)
        >>> first, last = torch.tensor([True, False]), torch.tensor([False, True])
        >>> batch = FlatBatch(nodes, None, lengths, gold, zeros, first, last, torch.tensor([0]), Words(*[zeros] * 4))
        >>> optimizer = GuidedOptimizer(model.parameters())
        >>> [model.learn(batch, optimizer).errors for _ in range(2)]
        [1, 0]
        >>> padded = build_batch(TokenPositions.from_mask(torch.tensor([[True, True]])), None, None, None)
        >>> model.decode(padded._replace(nodes=nodes)).labels
        tensor([[1, 0]])
    """

    def __init__(
        self,
        static: SparseLinear,
        context: ContextFeatures,
        beam: int = 3,
        order: Order = "easiest",
        rule: GuidedRule | None = None,
    ) -> None:
        super().__init__()
        if beam < 1:
            raise InputError(f"GuidedModel: beam must be >= 1, got {beam}")
        if order not in get_args(Order):
            raise InputError(f"GuidedModel: order must be one of {', '.join(get_args(Order))}, got {order!r}")
        if static.transitions:
            raise InputError("GuidedModel: set static.transitions: false; labels of neighbours belong to context")
        self.static, self.context = static, context
        self.beam, self.order, self.rule = beam, order, rule or Aggressive()

    def allocate(self, n_node: int, n_labels: int) -> None:
        """Create all weights, zero, once features and labels are known."""
        self.static.allocate(n_node, 0, n_labels)
        self.context.allocate(n_labels)

    @torch.no_grad()
    def decode(self, batch: Batch) -> Decisions:
        """Return the best hypothesis of each sentence of a batch and the order of its decisions."""
        from structperc.guided import beam_search  # needs numba

        node, table = to_cpu(self.static.node), to_cpu(self.context.table)
        words = without_padding(batch.words.exact, batch.lengths)
        text, weights = self._text(batch, words), self.context.weights(node.numpy(), table.numpy())
        B, T = batch.words.exact.shape
        found = Decisions.empty(B, T, node.dtype)
        beam_search.decide(sentence_starts(batch), text, weights, self.beam, self.order == "easiest", found)
        return Decisions(*(values.to(batch.lengths.device) for values in found))

    @torch.no_grad()
    def learn(self, batch: FlatBatch, optimizer: GuidedOptimizer) -> LearningCounts:
        """Learn from the sentences of a batch one after the other, each with the weights after the previous one.

        Args:
            batch: sentences with gold labels, or with sets of allowed labels. Updates are multiplied by the weight of
                the sentence; sentences of weight 0 are left out.
            optimizer: optimizer of the parameters, whose sums and steps are updated.

        Returns:
            Numbers of updates, decisions and errors.

        Raises:
            InputError: gold labels that are unknown to the model; sets of labels for a rule that does not support them.
        """
        gold, L = to_cpu(batch.gold).numpy(), self.static.node.shape[1]
        check_range(gold, L, "label")
        if batch.allowed is not None and not self.rule.supports_incomplete:
            raise InputError(f"{type(self.rule).__name__} needs complete labels; use Aggressive")
        allowed = gold[:, None] == np.arange(L) if batch.allowed is None else to_cpu(batch.allowed).numpy()
        gold = gold if batch.allowed is None else gold[:0]
        starts, easiest, steps = sentence_starts(batch), self.order == "easiest", optimizer.param_groups[0]["steps"]
        factors = to_cpu(torch.zeros(0) if batch.weights is None else batch.weights).double().numpy()
        text = self._text(batch, to_cpu(batch.words.exact))
        tables = self.static.node, self.context.table
        with writable_arrays(*tables, *map(optimizer.sums, tables)) as (node, table, *sums):
            weights = self.context.weights(node, table)
            data = TrainingData(
                starts, text, gold, allowed, factors, weights, WeightSums(*sums), steps, self.beam, easiest
            )
            counts = self.rule.learn(data)
        optimizer.count(counts.decisions)
        return counts

    def _text(self, batch: Batch | FlatBatch, words: Tensor) -> TokenArrays:
        """Return the arrays of a batch, given the ids of its words (n,) on the CPU."""
        if batch.nodes.weights is not None:
            raise InputError("GuidedModel: feature weights are not supported; leave them out, or use a Tagger")
        ids, offsets = to_cpu(batch.nodes.ids), to_cpu(batch.nodes.offsets)
        check_range(ids, self.static.node.shape[0], "feature")
        keys = self.context.keys(words, to_cpu(batch.lengths))
        return TokenArrays(ids.int().numpy(), offsets.long().numpy(), keys.numpy())
