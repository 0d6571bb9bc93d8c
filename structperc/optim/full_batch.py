"""The contract of optimizers that need objective and gradient over the whole corpus at every step."""

import math
from abc import abstractmethod
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor

from structperc.errors import InputError
from structperc.optim.base import BaseOptimizer


class Diverged(InputError):  # noqa: N818 - what has happened, as a sentence says it
    """An objective or gradient that is not a number, or infinite. The message says where and what to change."""


class FullBatch(BaseOptimizer):
    """Base: a step evaluates objective and full gradient once, then puts the next weights to evaluate in place.

    This is reverse communication: what other libraries write as loops around evaluations (line searches) is kept
    as state between steps, so that every evaluation may be one epoch over a corpus, memory stays constant and
    training resumes after any of them. The weights of the lowest objective so far are kept (state "best") and
    served; after the last step, and after divergence, the parameters hold them.

    A subclass gives `_advance`, which moves the parameters or calls `_finish`, and may give `_value`, the objective
    where the closure returns only a part of it.

    The parameters are one group, of one dtype. A parameter without gradient has gradient zero.
    """

    full_batch = True
    can_stop = True
    divergence_hint = "set a smaller C of the prior"  # against divergence

    def __init__(self, params: Iterable[Any], options: dict[str, Any]) -> None:
        progress = {"evaluations": 0, "objective": None, "lowest": None, "stop_reason": None, "status": None}
        super().__init__(params, {**options, **progress})
        if len(self.param_groups) > 1:
            raise InputError(f"{type(self).__name__} takes one group of parameters, got {len(self.param_groups)}")

    # -- what is reported ------------------------------------------------------------------------------------

    @property
    def stop_reason(self) -> str | None:
        """The reason why there is nothing left to do, in plain words; None while there is.

        Further steps change nothing.
        """
        return self.param_groups[0]["stop_reason"]

    @property
    def status(self) -> str | None:
        """One line about the last step; None before the first."""
        return self.param_groups[0]["status"]

    @property
    def objective(self) -> float | None:
        """The objective at the last evaluation, all its terms included; None before the first."""
        return self.param_groups[0]["objective"]

    @property
    def lowest(self) -> float | None:
        """The lowest objective so far, that of the weights that are served; None before the first."""
        return self.param_groups[0]["lowest"]

    # -- steps -----------------------------------------------------------------------------------------------

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Make one evaluation and the step that follows from it; return what the closure returned.

        The closure is called once: it returns the objective and leaves its gradient in p.grad. Raises RuntimeError
        without a closure, and Diverged when objective or gradient are not finite; the parameters hold the best weights
        by then.
        """
        if closure is None:
            raise RuntimeError(f"{type(self).__name__} needs the objective: call step(closure)")
        with torch.enable_grad():
            returned = closure()
        if self.stop_reason is None:
            self._take(float(returned))
        return returned

    def _take(self, value: float) -> None:
        group, point, gradient = self.param_groups[0], self._point(), self._gradient()
        group["evaluations"] += 1
        objective = self._value(value, point)
        self._check(objective, gradient)
        group["objective"] = objective
        if group["lowest"] is None or objective < group["lowest"]:
            group["lowest"] = objective
            self._keep()
        self._advance(objective, point, gradient)

    def _value(self, value: float, point: Tensor) -> float:
        """The whole objective, from the closure's value."""
        return value

    @abstractmethod
    def _advance(self, objective: float, point: Tensor, gradient: Tensor) -> None:
        """Uses one evaluation: objective and gradient (n,) at the point (n,), which is what the parameters hold."""

    def _report(self, text: str) -> None:
        """Sets the news: the objective, and `text`."""
        group = self.param_groups[0]
        values = f"objective {group['objective']:.9g}, lowest {group['lowest']:.9g}"
        group["status"] = f"evaluation {group['evaluations']}: {values}; {text}"

    def _finish(self, reason: str) -> None:
        self.param_groups[0]["stop_reason"] = reason
        self.use_evaluation_weights()

    def _check(self, objective: float, gradient: Tensor) -> None:
        """Diverged, with the best weights in place, unless both are finite."""
        name = f"{type(self).__name__}, evaluation {self.param_groups[0]['evaluations']}"
        try:
            check_finite(objective, name, self.divergence_hint)
            check_finite(gradient, name, self.divergence_hint, "gradient")
        except Diverged:
            self.use_evaluation_weights()
            raise

    # -- weights ---------------------------------------------------------------------------------------------

    def _keep(self) -> None:
        for p in self._parameters():
            best = self.state[p].get("best")
            if best is None:
                self.state[p]["best"] = p.clone()
            else:
                best.copy_(p)

    def _evaluation_weights(self, p: Tensor, group: dict[str, Any]) -> Tensor | None:
        return self.state[p].get("best")

    def _parameters(self) -> list[Tensor]:
        return self.param_groups[0]["params"]

    def _point(self) -> Tensor:
        """The weights of all parameters in one vector (n,), a copy."""
        return torch.cat([p.reshape(-1) for p in self._parameters()])

    def _gradient(self) -> Tensor:
        """The gradients of all parameters in one vector (n,), a copy."""
        return torch.cat([flat_gradient(p) for p in self._parameters()])

    def _put(self, point: Tensor) -> None:
        """Gives the parameters the weights (n,)."""
        parts = point.split([p.numel() for p in self._parameters()])
        for p, part in zip(self._parameters(), parts, strict=True):
            p.copy_(part.view_as(p))


def flat_gradient(p: Tensor) -> Tensor:
    """Return the dense gradient of the parameter, flattened; zeros where there is none."""
    if p.grad is None:
        return torch.zeros_like(p).reshape(-1)
    return (p.grad.to_dense() if p.grad.is_sparse else p.grad).reshape(-1)


def check_finite(value: float | Tensor, where: str, divergence_hint: str, what: str = "objective") -> None:
    """Raise Diverged, which names `where` and gives `divergence_hint`, unless the value is finite everywhere."""
    ends = value.aminmax() if isinstance(value, Tensor) else (value,)  # NaN where any number is: one pass, no copies
    if not all(math.isfinite(end) for end in ends):
        kind = "not finite" if isinstance(value, Tensor) and value.numel() > 1 else float(value)
        raise Diverged(f"{where}: the {what} is {kind}: {divergence_hint}")


def has_converged(values: list[float], value: float, period: int, tolerance: float) -> bool:
    """Add an objective to the last `period` ones, in place; return whether it fell by too little over them.

    The rule is that of CRFsuite's L-BFGS: (f[k - period] - f[k]) / |f[k]| < tolerance.
    """
    values.append(value)
    if len(values) <= period:
        return False
    before = values.pop(0)
    return before - value <= tolerance * abs(value)
