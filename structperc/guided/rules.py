"""Update rules of guided learning (Algorithm 2 of Shen et al. 2007), and the optimizer that averages the weights."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from structperc.errors import InputError
from structperc.guided.arrays import TrainingData
from structperc.optim.perceptron import AveragedOptimizer, StepSizeRule, constant_size


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

        return LearningCounts(*learning.learn_aggressively(data, float(self.margin), int(self.limit)))


class EarlyUpdate(GuidedRule):
    """Accept each chosen candidate, right or wrong, while some state holds the gold hypothesis (not aggressive).

    Collins & Roark 2004: when no state of the chosen candidate holds it any more, or the sentence is complete and
    it is not on top, the features of all actions of the gold hypothesis on this span are promoted, those of the top
    hypothesis demoted, and the sentence is left. Other spans of the sentence are not compared.
    """

    def learn(self, data: TrainingData) -> LearningCounts:
        """Learn from each sentence once."""
        from structperc.guided import learning  # needs numba

        return LearningCounts(*learning.learn_early(data))


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
        state = self.state[p]
        if "sums" not in state:
            state["sums"] = torch.zeros_like(p, dtype=torch.float64)
        return state["sums"]

    @property
    def decisions(self) -> int:
        """Number of decisions so far."""
        return self.param_groups[0]["steps"]

    def count(self, decisions: int) -> None:
        """Add decisions of the present weights, for their average."""
        self.param_groups[0]["steps"] += decisions

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Return the value of the closure, if any; `GuidedModel.learn` has already changed the weights."""
        return None if closure is None else closure()
