"""Passive-aggressive updates: the smallest step that repairs the loss."""

import math
from collections.abc import Iterable
from typing import Any, Literal

from structperc.errors import InputError
from structperc.optim.averaged_perceptron import AveragedOptimizer, StepSizeRule, where
from structperc.optim.base import check_options


class PassiveAggressive(AveragedOptimizer):
    """Passive-aggressive optimizer: the smallest step that repairs the loss. Crammer et al. 2006, §3.

    A step is w <- w - tau * g, with l the loss and g its gradient over all parameters. PA: tau = l / |g|^2; PA-I: tau =
    min(C, l / |g|^2); PA-II: tau = l / (|g|^2 + 1/(2C)). With the hinge criterion and one sequence per step this is the
    structured 1-best algorithm (MIRA with one constraint). Differs: no kernel; with several sequences per step, l and g
    are sums over them, with one common tau.

    Args:
        params: parameters or groups (the norm is that of all groups together).
        variant: "PA", "PA-I" or "PA-II".
        C: aggressiveness; not used by "PA".

    Raises:
        InputError: the variant is unknown, or C is not positive.
        RuntimeError: step() without a closure, since the update needs the loss.

    Example:
        >>> import torch
        >>> from structperc.optim import PassiveAggressive
        >>> weight = torch.zeros(2, requires_grad=True)
        >>> optimizer = PassiveAggressive([weight])
        >>> weight.grad = torch.tensor([-2.0, 0.0])
        >>> loss = optimizer.step(lambda: torch.tensor(1.0))  # tau = 1 / 2^2
        >>> weight.tolist()
        [0.5, 0.0]
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
        check_options(self, above=0, C=C)
        super().__init__(params, {"variant": variant, "C": C}, average)

    def step_size_rule(self, group: dict[str, Any]) -> StepSizeRule:
        """Return tau of the variant."""
        variant, C = group["variant"], float(group["C"])
        numbers = 1 / (2 * C) if variant == "PA-II" else 0.0, C if variant == "PA-I" else math.inf
        return StepSizeRule(tau, numbers, needs_loss=True, needs_norm=True)


def tau(loss: Any, norm: Any, slack: Any, most: Any) -> Any:
    """Return min(most, loss / (norm + slack)); 0 without a loss or a gradient."""
    size = loss / (norm + slack + (norm == 0))
    return where((norm > 0) & (loss > 0), where(size < most, size, most), 0.0)
