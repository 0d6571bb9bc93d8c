"""The optimizer of guided learning: it moves the weights of a guided model by whole numbers and averages them."""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor

from structperc.optim.perceptron import AveragedOptimizer, StepSizeRule, constant_size


class Updates(AveragedOptimizer):
    """Perceptron updates without gradients: weights move by whole numbers, and their average is over decisions.

    The average is over the weights after each decision, those included that change nothing; after m decisions that
    sentences of a mini-batch make at the same time, the weights count m times. float32 holds the weights exactly
    below 2**24, float64 the sums.

    Args:
        params: those of a `GuidedModel`.
        average: whether averages are kept, and served.
    """

    def __init__(self, params: Iterable[Any], average: bool = True) -> None:
        super().__init__(params, {}, average)

    def step_size_rule(self, group: dict[str, Any]) -> StepSizeRule:
        """Return a step size of 1."""
        return StepSizeRule(constant_size, (1.0,))

    def sums(self, p: Tensor) -> Tensor:
        """Return what is added up for the average of a parameter, float64; without rows where no average is kept."""
        if not self.param_groups[0]["average"]:
            return p.new_empty(0, *p.shape[1:], dtype=torch.float64)
        state = self.state[p]
        if "sums" not in state:
            state["sums"] = torch.zeros_like(p, dtype=torch.float64)
        return state["sums"]

    @property
    def decisions(self) -> int:
        """How many decisions were made until now."""
        return self.param_groups[0]["steps"]

    def count(self, decisions: int) -> None:
        """Count decisions that were made with the present weights, for their average."""
        self.param_groups[0]["steps"] += decisions

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Return what the closure gives, if there is one: the weights have already moved when a mini-batch is done."""
        return None if closure is None else closure()
