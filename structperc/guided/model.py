"""The bidirectional tagger of Shen et al. 2007, its update rules (Algorithm 2) and its averaging optimizer."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, Literal, NamedTuple, get_args

import torch
from torch import Tensor, nn

from structperc.errors import InputError
from structperc.guided.arrays import (
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
from structperc.guided.context import ContextFeatures
from structperc.optim.perceptron import AveragedOptimizer, StepSizeRule, constant_size
from structperc.scorers import SparseLinear
from structperc.structures import Batch, FlatBatch


class LearningCounts(NamedTuple):
    """Counts over the sentences of a mini-batch."""

    updates: int
    decisions: int  # accepted tokens, and candidates that were chosen but not accepted
    errors: int  # chosen candidates whose top hypothesis was not gold


class GuidedRule(ABC):
    """Base class of update rules: when a chosen candidate is accepted, and when the weights are changed.

    The order of inference and the scores of actions are learned together, sentence by sentence.
    """

    @abstractmethod
    def learn(self, data: TrainingData) -> LearningCounts:
        """Learn from each sentence once."""


class Aggressive(GuidedRule):
    """Accept only gold (Algorithm 2): else update, renew the queue and choose again.

    A top hypothesis is gold if it gives all tokens of its span gold's labels. If not, the features of gold's last
    action are promoted and those of the top hypothesis's last action demoted. All accepted spans thus have the gold
    hypothesis on top; their V stay as they were when they were accepted.

    With a margin (Krauth & Mézard 1987) a top hypothesis that is gold counts as an error, too, as long as
    V(gold) <= V(rival) + margin, where the rival is the best hypothesis on the same span, with the present weights,
    among those with another label in the last action. Such an update moves this gap by the squared norm of the
    difference of the two actions' features.

    Args:
        margin: in units of the score; 0 for none.
        limit: a sentence is left after `limit` updates per token of it, as not all data can be separated.

    Raises:
        InputError: margin is negative, or limit < 1.
    """

    def __init__(self, margin: float = 0.0, limit: int = 10) -> None:
        if not margin >= 0:
            raise InputError(f"Aggressive: margin must be >= 0, got {margin}")
        if limit < 1:
            raise InputError(f"Aggressive: limit must be >= 1 update per token, got {limit}")
        self.margin, self.limit = margin, limit

    def learn(self, data: TrainingData) -> LearningCounts:
        """Learn from each sentence once."""
        from structperc.guided import learning  # needs numba

        return LearningCounts(*learning.learn(data, True, float(self.margin), int(self.limit)))


class EarlyUpdate(GuidedRule):
    """Accept each chosen candidate, right or wrong, while some state holds the gold hypothesis (not aggressive).

    Collins & Roark 2004: when no state of the chosen candidate holds it any more, or the sentence is complete and
    it is not on top, the features of all actions of the gold hypothesis on this span are promoted, those of the top
    hypothesis demoted, and the sentence is left. Other spans of the sentence are not compared.
    """

    def learn(self, data: TrainingData) -> LearningCounts:
        """Learn from each sentence once."""
        from structperc.guided import learning  # needs numba

        return LearningCounts(*learning.learn(data, False, 0.0, 0))


class GuidedOptimizer(AveragedOptimizer):
    """Optimizer of guided learning: perceptron updates without gradients, averaged over decisions.

    The average is over the weights after each decision, those included that change nothing; after m decisions that
    sentences of a mini-batch make at the same time, the weights count m times. float32 holds the weights exactly
    below 2**24, float64 the sums.

    Args:
        params: those of a `GuidedModel`.
        average: whether averages are kept, and used for evaluation.
    """

    def __init__(self, params: Iterable[Any], average: bool = True) -> None:
        super().__init__(params, {}, average)

    def step_size_rule(self, group: dict[str, Any]) -> StepSizeRule:
        """Return a step size of 1."""
        return StepSizeRule(constant_size, (1.0,))

    def sums(self, p: Tensor) -> Tensor:
        """Return the sum for the average of a parameter, float64; without rows where none is kept."""
        if not self.param_groups[0]["average"]:
            return p.new_empty(0, *p.shape[1:], dtype=torch.float64)
        return super().sums(p)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Return the value of the closure, if any; `GuidedModel.learn` has already changed the weights."""
        return None if closure is None else closure()


Order = Literal["easiest", "left-to-right"]


class GuidedModel(nn.Module):
    """Bidirectional tagger whose order of inference is learned (Shen, Satta & Joshi 2007).

    U(token i gets label y) = sum_f static.node[f, y] + sum_g context.table[g, y] over the features f of the token and
    the features g of those neighbouring labels that are decided (Eq. 2). V(hypothesis) = V(left context) +
    V(right context) + U (Eq. 1). All labels are tried for all tokens.

    Learning updates the parameters without gradients, with a `GuidedOptimizer`. It runs on a CPU: weights on another
    device are copied for each mini-batch.

    Args:
        static: scores of features that do not depend on the labels of other tokens.
        context: scores of features that do.
        beam: states kept of each span.
        order: "easiest", or "left-to-right" for comparison.
        rule: when learning accepts a candidate and when it changes the weights.

    Raises:
        InputError: beam < 1; the order is unknown; static has transitions.
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
        """Label a batch."""
        from structperc.guided import search  # needs numba

        node, table = to_cpu(self.static.node), to_cpu(self.context.table)
        words = without_padding(batch.words.exact, batch.lengths)
        text, weights = self._text(batch, words), self.context.weights(node.numpy(), table.numpy())
        B, T = batch.words.exact.shape
        found = Decisions.empty(B, T, node.dtype)
        search.decide(sentence_starts(batch), text, weights, self.beam, self.order == "easiest", found)
        return Decisions(*(values.to(batch.lengths.device) for values in found))

    @torch.no_grad()
    def learn(self, batch: FlatBatch, optimizer: GuidedOptimizer) -> LearningCounts:
        """Learn from the sentences of a batch one after the other, each with the weights that the one before left.

        Raises:
            InputError: gold labels are unknown to the model.
        """
        gold = to_cpu(batch.gold).numpy()
        check_range(gold, self.static.node.shape[1], "label")
        starts, easiest, steps = sentence_starts(batch), self.order == "easiest", optimizer.param_groups[0]["steps"]
        text = self._text(batch, to_cpu(batch.words.exact))
        tables = self.static.node, self.context.table
        with writable_arrays(*tables, *map(optimizer.sums, tables)) as (node, table, *sums):
            weights = self.context.weights(node, table)
            data = TrainingData(starts, text, gold, weights, WeightSums(*sums), steps, self.beam, easiest)
            counts = self.rule.learn(data)
        optimizer.count(counts.decisions)
        return counts

    def _text(self, batch: Batch | FlatBatch, words: Tensor) -> TokenArrays:
        """Return the arrays of a batch, whose tokens have these words (n,) on the CPU."""
        if batch.nodes.weights is not None:
            raise InputError("GuidedModel: feature weights are not supported; leave them out, or use a Tagger")
        ids, offsets = to_cpu(batch.nodes.ids), to_cpu(batch.nodes.offsets)
        check_range(ids, self.static.node.shape[0], "feature")
        keys = self.context.keys(words, to_cpu(batch.lengths))
        return TokenArrays(ids.int().numpy(), offsets.long().numpy(), keys.numpy())
