"""Limited-memory BFGS."""

from collections.abc import Iterable
from typing import Any

from torch import Tensor

from structperc.errors import InputError
from structperc.optim.limited_memory import dot
from structperc.optim.line_search import StrongWolfe
from structperc.optim.quasi_newton import QuasiNewton


class LBFGS(QuasiNewton):
    """Liu & Nocedal 1989, with a line search for the strong Wolfe conditions; for smooth objectives.

    Converges to a point of zero gradient: the minimum where the objective is convex. Keeps 2 * history + 4 vectors
    as long as all parameters together.

    Stops when over `period` iterations the objective f fell by no more than `tolerance` * |f| (the rule of CRFsuite),
    when |gradient| <= `epsilon` * max(1, |weights|) (the rule of liblbfgs), or when no line search finds a lower point.

    Args:
        params: parameters, one group.
        history: pairs of vectors that stand for the Hessian.
        c1: sufficient decrease of a step.
        c2: its curvature, c1 < c2 < 1.
        max_linesearch: largest number of evaluations of one line search.
        tolerance: see above.
        period: see above.
        epsilon: see above.

    Raises:
        InputError: an option out of its range; more than one group of parameters.
    """

    def __init__(
        self,
        params: Iterable[Any],
        history: int = 10,
        c1: float = 1e-4,
        c2: float = 0.9,
        max_linesearch: int = 20,
        tolerance: float = 1e-5,
        period: int = 10,
        epsilon: float = 1e-5,
    ) -> None:
        if not 0 < c1 < c2 < 1:
            raise InputError(f"LBFGS: c1 and c2 must be 0 < c1 < c2 < 1, got {c1} and {c2}")
        super().__init__(params, {"c1": c1, "c2": c2}, history, max_linesearch, tolerance, period, epsilon)

    def _start_search(self, objective: float, slope: float, step: float) -> StrongWolfe:
        group = self.param_groups[0]
        limits = (group["c1"], group["c2"], group["max_linesearch"], self._noise(objective))
        return StrongWolfe(*limits, objective, slope, step)

    def _resume_search(self, numbers: dict[str, Any]) -> StrongWolfe:
        return StrongWolfe(**numbers)

    def _measure(self, point: Tensor, gradient: Tensor) -> float:
        """The slope along the direction."""
        return dot(gradient, self._kept["direction"])
