"""Contract of optimizers that need objective and gradient over the whole corpus at every step."""

import math
from abc import abstractmethod
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor

from structperc.errors import InputError
from structperc.optim.base import BaseOptimizer

TRAINED = "trained"  # state of a parameter: flat indices of the numbers that are trained; missing: all are


class DivergenceError(InputError):
    """Error of an objective or gradient that is not finite; the message names the optimizer and gives advice."""


class FullBatch(BaseOptimizer):
    """Base class of full-batch optimizers, which need objective and gradient over the whole corpus.

    A step evaluates objective and full gradient once, then sets the next weights to evaluate. This is reverse
    communication: line searches keep their state between steps, so that every evaluation may be one epoch over a
    corpus, memory stays constant and training can be resumed after any of them. The evaluation weights are the weights
    of the lowest objective so far (state "best"), also the parameters after the last step and divergence.

    A subclass defines `_advance`, which moves the parameters or calls `_stop`, and may define `_whole_objective` if
    the closure returns only a part of the objective. The parameters are one group, of one dtype. A parameter without
    gradient has gradient zero. If the state of a parameter has "trained", flat indices (n,) int64, only these numbers
    are trained.

    Args:
        options: options of the subclass, stored in the group.

    Raises:
        InputError: more than one group of parameters.

    Example:
        >>> import torch
        >>> from structperc.optim.full_batch import FullBatch
        >>> class GradientDescent(FullBatch):
        ...     def _advance(self, objective, point, gradient):
        ...         self._set_point(point - self.param_groups[0]["lr"] * gradient)
        >>> weight = torch.tensor([4.0], requires_grad=True)
        >>> optimizer = GradientDescent([weight], {"lr": 0.5})
        >>> weight.grad = torch.tensor([8.0])  # of the objective w^2
        >>> optimizer.step(lambda: 16.0), weight.tolist(), optimizer.lowest
        (16.0, [0.0], 16.0)
    """

    full_batch = True
    can_stop = True
    divergence_hint = "set a smaller C of the prior"

    def __init__(self, params: Iterable[Any], options: dict[str, Any]) -> None:
        progress = {"evaluations": 0, "objective": None, "lowest": None, "stop_reason": None, "status": None}
        super().__init__(params, {**options, **progress})
        if len(self.param_groups) > 1:
            raise InputError(f"{type(self).__name__} takes one group of parameters, got {len(self.param_groups)}")

    # -- report ----------------------------------------------------------------------------------------------

    @property
    def stop_reason(self) -> str | None:
        """The reason why further steps change nothing; None while they do."""
        return self.param_groups[0]["stop_reason"]

    @property
    def status(self) -> str | None:
        """One line about the last step; None before the first."""
        return self.param_groups[0]["status"]

    @property
    def objective(self) -> float | None:
        """The objective at the last evaluation, with all its terms; None before the first."""
        return self.param_groups[0]["objective"]

    @property
    def lowest(self) -> float | None:
        """The lowest objective so far, that of the evaluation weights; None before the first."""
        return self.param_groups[0]["lowest"]

    # -- steps -----------------------------------------------------------------------------------------------

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Make one evaluation and the step that follows from it; return the result of the closure.

        `closure`: function that returns the objective and leaves its gradient in p.grad; it is called once.

        Raises:
            RuntimeError: no closure.
            DivergenceError: an infinite or NaN objective or gradient; the best weights are restored.
        """
        if closure is None:
            raise RuntimeError(f"{type(self).__name__} needs the objective: call step(closure)")
        with torch.enable_grad():
            returned = closure()
        if self.stop_reason is None:
            self._evaluate(float(returned))
        return returned

    def _evaluate(self, value: float) -> None:
        group = self.param_groups[0]
        point = torch.cat([self._trained(p, p.reshape(-1)) for p in self._parameters()])  # a copy
        gradient = torch.cat([self._trained(p, flat_gradient(p)) for p in self._parameters()])
        group["evaluations"] += 1
        objective = self._whole_objective(value, point)
        self._check(objective, gradient)
        group["objective"] = objective
        if group["lowest"] is None or objective < group["lowest"]:
            group["lowest"] = objective
            for p in self._parameters():
                best = self.state[p].get("best")
                self.state[p]["best"] = p.clone() if best is None else best.copy_(p)
        self._advance(objective, point, gradient)

    def _whole_objective(self, value: float, point: Tensor) -> float:
        """Return the whole objective, given the result of the closure."""
        return value

    @abstractmethod
    def _advance(self, objective: float, point: Tensor, gradient: Tensor) -> None:
        """Move the parameters, given objective and gradient (n,) at their current point (n,)."""

    def _report(self, text: str) -> None:
        """Set the status: the objective, and `text`."""
        group = self.param_groups[0]
        values = f"objective {group['objective']:.9g}, lowest {group['lowest']:.9g}"
        group["status"] = f"evaluation {group['evaluations']}: {values}; {text}"

    def _stop(self, reason: str) -> None:
        self.param_groups[0]["stop_reason"] = reason
        self.keep_evaluation_weights()

    def _check(self, objective: float, gradient: Tensor) -> None:
        """Restore the best weights and raise DivergenceError unless both are finite."""
        name = f"{type(self).__name__}, evaluation {self.param_groups[0]['evaluations']}"
        try:
            check_finite(objective, name, self.divergence_hint)
            check_finite(gradient, name, self.divergence_hint, "gradient")
        except DivergenceError:
            self.keep_evaluation_weights()
            raise

    # -- weights ---------------------------------------------------------------------------------------------

    def _evaluation_weights(self, p: Tensor, group: dict[str, Any]) -> Tensor | None:
        return self.state[p].get("best")

    def _parameters(self) -> list[Tensor]:
        return self.param_groups[0]["params"]

    def _trained(self, p: Tensor, numbers: Tensor) -> Tensor:
        """Return those of the numbers of a parameter, flattened, that are trained."""
        places = self.state[p].get(TRAINED)
        return numbers if places is None else numbers[places]

    def _set_point(self, point: Tensor) -> None:
        """Set the weights (n,) of the parameters that are trained."""
        start = 0
        for p in self._parameters():
            flat, places = p.view(-1), self.state[p].get(TRAINED, slice(None))
            size = len(flat) if isinstance(places, slice) else len(places)
            flat[places] = point[start : start + size]
            start += size


def flat_gradient(p: Tensor) -> Tensor:
    """Return the dense gradient of a parameter, flattened; zeros if there is none."""
    if p.grad is None:
        return torch.zeros_like(p).reshape(-1)
    return (p.grad.to_dense() if p.grad.is_sparse else p.grad).reshape(-1)


def check_finite(value: float | Tensor, where: str, divergence_hint: str, what: str = "objective") -> None:
    """Raise DivergenceError unless a value is finite everywhere.

    `where` begins the message, such as the name of the optimizer; `divergence_hint` ends it, with advice.
    """
    ends = value.aminmax() if isinstance(value, Tensor) else (value,)  # NaN if any number is; one pass without copies
    if not all(math.isfinite(end) for end in ends):
        kind = "not finite" if isinstance(value, Tensor) and value.numel() > 1 else float(value)
        raise DivergenceError(f"{where}: the {what} is {kind}: {divergence_hint}")


def has_converged(values: list[float], value: float, period: int, tolerance: float) -> bool:
    """Append an objective to the last `period` values, in place; return True if it fell by too little over them.

    The rule is that of CRFsuite's L-BFGS: (f[k - period] - f[k]) / |f[k]| < tolerance.
    """
    values.append(value)
    if len(values) <= period:
        return False
    before = values.pop(0)
    return before - value <= tolerance * abs(value)
