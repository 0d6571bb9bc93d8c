"""The additive step of the perceptron, as an optimizer."""

from collections.abc import Iterable
from typing import Any

from torch import Tensor

from structperc.errors import InputError
from structperc.optim.averaged import AveragedOptimizer, Pace


class Perceptron(AveragedOptimizer):
    """The perceptron's step, w <- w - lr * gradient: of summed losses of the perceptron family, with lr = 1.

    Collins 2002, "Discriminative training methods for hidden Markov models". Fed one sequence per step it is
    the paper's algorithm; fed m sequences per step their updates, all decided with the same weights, are summed.
    Weights stay integers in float32 with lr = 1, exact below 2**24. `structperc.criteria.Perceptron` is the loss.

    Args:
        params: parameters or groups.
        lr: step size. It only scales the weights of a plain perceptron that starts from zero; with a margin
            it is the margin's unit.
        average: keep the average over every step (Collins' averaged perceptron); use it through `averaged()`.

    Raises:
        InputError: lr is not positive.
    """

    def __init__(self, params: Iterable[Any], lr: float = 1.0, average: bool = True) -> None:
        if not lr > 0:
            raise InputError(f"Perceptron: lr must be > 0, got {lr}")
        super().__init__(params, {"lr": lr}, average)

    def pace(self) -> Pace:
        """Return the step size, which depends on nothing."""
        return Pace(_constant, (float(self.param_groups[0]["lr"]),))

    def _step_size(self, group: dict[str, Any], loss: Tensor | None) -> float:
        return float(group["lr"])


def _constant(loss: float, norm: float, lr: float) -> float:
    return lr
