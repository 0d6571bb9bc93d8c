"""L-BFGS for objectives with an L1 term."""

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

from structperc.errors import InputError
from structperc.optim.base import check_options
from structperc.optim.lbfgs import QuasiNewton, dot
from structperc.optim.line_search import Backtracking


class OWLQN(QuasiNewton):
    """Orthant-wise limited-memory quasi-Newton, Andrew & Gao 2007: minimises f(w) + |w|_1 / C, many weights exactly 0.

    The closure gives the smooth f and its gradient; the L1 term is added here, `objective` and `lowest` include it.
    It is the term of a prior with phi = 1, which must then not be part of f as well. A step stays within one
    orthant; weights that would leave it become 0. Differs: pairs without positive curvature are not remembered.

    Stops as LBFGS does, with the gradient of least length among those that the kink at 0 allows (the paper's
    pseudo-gradient).

    Args:
        params: parameters, one group.
        C: width of the L1 prior; the smaller, the more weights are 0.
        history, c1, max_linesearch, tolerance, period, epsilon: see LBFGS.

    Raises:
        InputError: an option out of its range; more than one group of parameters.
    """

    divergence_hint = "set a smaller C"
    search_type = Backtracking

    def __init__(
        self,
        params: Iterable[Any],
        C: float = 1.0,
        history: int = 10,
        c1: float = 1e-4,
        max_linesearch: int = 20,
        tolerance: float = 1e-5,
        period: int = 10,
        epsilon: float = 1e-5,
    ) -> None:
        check_options(self, above=0, C=C)
        if not 0 < c1 < 1:
            raise InputError(f"OWLQN: c1 must be 0 < c1 < 1, got {c1}")
        super().__init__(params, {"C": C, "c1": c1}, history, max_linesearch, tolerance, period, epsilon)

    def _whole_objective(self, value: float, point: Tensor) -> float:
        return value + float(torch.linalg.vector_norm(point, 1, dtype=torch.float64)) / self.param_groups[0]["C"]

    def _search_options(self, slope: float) -> dict[str, Any]:
        return {"c1": self.param_groups[0]["c1"]}

    def _measure(self, point: Tensor, gradient: Tensor) -> float:
        """Return the change that the pseudo-gradient predicts for the step from start to trial point."""
        return dot(self._steepest_ascent(), point - self._vectors["point"])

    def _steepest_ascent(self) -> Tensor:
        return pseudo_gradient(self._vectors["point"], self._vectors["gradient"], 1 / self.param_groups[0]["C"])

    def _direction(self, ascent: Tensor) -> Tensor:
        direction = super()._direction(ascent)
        return direction.masked_fill_(direction.sign() != -ascent.sign(), 0.0)

    def _trial_point(self, step: float) -> Tensor:
        point = super()._trial_point(step)
        orthant = torch.where(self._vectors["point"] == 0, -self._steepest_ascent(), self._vectors["point"])
        return point.masked_fill_(point.sign() != orthant.sign(), 0.0)


def pseudo_gradient(point: Tensor, gradient: Tensor, strength: float) -> Tensor:
    """Return the pseudo-gradient (n,) of f + strength * |w|_1 at w = point (n,). Andrew & Gao 2007, Eq. 4.

    `gradient` (n,) is that of f.
    """
    smooth = gradient + strength * point.sign()
    at_zero = gradient.sign() * (gradient.abs() - strength).clamp(min=0)
    return torch.where(point == 0, at_zero, smooth)
