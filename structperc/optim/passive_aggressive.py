"""Passive-aggressive updates: the smallest step that repairs the loss."""

import math
from collections.abc import Iterable
from typing import Any, Literal

import torch
from torch import Tensor

from structperc.errors import InputError
from structperc.optim.perceptron import AveragedOptimizer, StepSizeRule, squared_norm


class PassiveAggressive(AveragedOptimizer):
    """Crammer et al. 2006, §3: w <- w - tau * gradient, with l the loss and g its gradient over all parameters.

    PA: tau = l / |g|^2; PA-I: tau = min(C, l / |g|^2); PA-II: tau = l / (|g|^2 + 1/(2C)).

    With the hinge criterion and one sequence per step this is the structured 1-best algorithm (MIRA with one
    constraint). Differs: no kernel; for several sequences per step l and g are the sums over them, one common tau.

    Args:
        params: parameters or groups (the norm runs over all of them).
        variant: "PA", "PA-I" or "PA-II".
        C: aggressiveness; not used by "PA".
        average: keep the average over every step; use it through `averaged()`.

    Raises:
        InputError: unknown variant or C not positive.
        RuntimeError: step() without a closure, since the update needs the loss.
    """

    def __init__(
        self,
        params: Iterable[Any],
        variant: Literal["PA", "PA-I", "PA-II"] = "PA-I",
        C: float = 1.0,
        average: bool = True,
    ) -> None:
        if variant not in ("PA", "PA-I", "PA-II"):
            raise InputError(f"PassiveAggressive: variant must be PA, PA-I or PA-II, got {variant!r}")
        if not C > 0:
            raise InputError(f"PassiveAggressive: C must be > 0, got {C}")
        super().__init__(params, {"variant": variant, "C": C}, average)

    def step_size_rule(self) -> StepSizeRule:
        """Return the step size of the variant."""
        group = self.param_groups[0]
        variant, C = group["variant"], float(group["C"])
        return StepSizeRule(_size, (1 / (2 * C) if variant == "PA-II" else 0.0, C if variant == "PA-I" else math.inf))

    def _step_size(self, group: dict[str, Any], loss: Tensor | None) -> float | Tensor:
        if loss is None:
            raise RuntimeError("PassiveAggressive needs the loss: call step(closure) with a closure that returns it")
        norm = squared_norm(p.grad for g in self.param_groups for p in g["params"] if p.grad is not None)
        value = torch.as_tensor(loss, dtype=torch.float64).detach()
        tau = value / (norm + 1 / (2 * group["C"]) if group["variant"] == "PA-II" else norm)
        if group["variant"] == "PA-I":
            tau = tau.where(tau < group["C"], float(group["C"]))
        tau = torch.where((norm == 0) | (value <= 0), 0.0, tau)
        return tau.item() if tau.device.type == "cpu" else tau


def _size(loss: float, norm: float, more: float, most: float) -> float:
    return min(loss / (norm + more), most) if norm > 0 and loss > 0 else 0.0
