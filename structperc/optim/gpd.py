"""Generalised probabilistic descent."""

from collections.abc import Iterable
from typing import Any

from torch import Tensor

from structperc.errors import InputError
from structperc.optim.perceptron import AveragedOptimizer


class GPD(AveragedOptimizer):
    """w <- w - eps_t * gradient with eps_t = lr / (1 + t / decay_steps), t = 0, 1, ... counting mini-batches.

    Katagiri, Lee & Juang 1991: descent on the smoothed loss of single examples; with steps whose sum is infinite and
    whose sum of squares is finite (Robbins & Monro 1951), as these are, it converges to a local minimum with
    probability 1. Losses are summed over a batch: larger batches ask for a smaller lr.

    Args:
        params: parameters or groups.
        lr: the first step size.
        decay_steps: after so many steps the step size is half the first one.
        average: keep the average over every step; use it through `averaged()`.

    Raises:
        InputError: lr or decay_steps is not positive.
    """

    divergence_hint = "set a smaller lr"  # against divergence

    def __init__(self, params: Iterable[Any], lr: float, decay_steps: float, average: bool = False) -> None:
        for name, value in {"lr": lr, "decay_steps": decay_steps}.items():
            if not value > 0:
                raise InputError(f"GPD: {name} must be > 0, got {value}")
        super().__init__(params, {"lr": lr, "decay_steps": decay_steps}, average)

    def _step_size(self, group: dict[str, Any], loss: Tensor | None) -> float:
        return float(group["lr"]) / (1 + group["steps"] / group["decay_steps"])
