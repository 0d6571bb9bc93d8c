"""What L-BFGS and its variant for L1 share: iterations of direction, line search and memory, one evaluation a step."""

import math
from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

import torch
from torch import Tensor

from structperc.errors import InputError
from structperc.optim.full_batch import FullBatch, settled
from structperc.optim.limited_memory import LimitedMemory, dot
from structperc.optim.line_search import Backtracking, Outcome, StrongWolfe


class QuasiNewton(FullBatch):
    """Base: direction = -(inverse Hessian) times gradient, then a line search along it, from evaluation to evaluation.

    The first trial step of all has length 1; the later ones try the quasi-Newton step itself first. A line search
    that fails is repeated once along the steepest descent, with nothing remembered. Between steps the state of the
    first parameter holds the point (n,) where the line search began, its gradient, the direction and the memory;
    the group holds the numbers.

    A subclass gives `_start_search`, `_resume_search` and `_measure`, and may give `_uphill`, `_direction` and `_at`.

    Args:
        options: of the subclass.
        history: m, pairs of vectors that stand for the Hessian.
        max_linesearch: largest number of evaluations of one line search.
        tolerance: relative decrease of the objective that is too little.
        period: iterations over which it is measured.
        epsilon: relative length of the gradient that is too little.
    """

    def __init__(
        self,
        params: Iterable[Any],
        options: dict[str, Any],
        history: int,
        max_linesearch: int,
        tolerance: float,
        period: int,
        epsilon: float,
    ) -> None:
        name = type(self).__name__
        for option, count in {"history": history, "max_linesearch": max_linesearch, "period": period}.items():
            if count < 1:
                raise InputError(f"{name}: {option} must be >= 1, got {count}")
        for option, bound in {"tolerance": tolerance, "epsilon": epsilon}.items():
            if not bound >= 0:
                raise InputError(f"{name}: {option} must be >= 0, got {bound}")
        stops = {"max_linesearch": max_linesearch, "tolerance": tolerance, "period": period, "epsilon": epsilon}
        numbers = {"iteration": 0, "pairs": 0, "values": [], "search": None}
        super().__init__(params, {**options, "history": history, **stops, **numbers})

    # -- what distinguishes the methods ----------------------------------------------------------------------

    @abstractmethod
    def _start_search(self, objective: float, slope: float, step: float) -> StrongWolfe | Backtracking:
        raise NotImplementedError

    @abstractmethod
    def _resume_search(self, numbers: dict[str, Any]) -> StrongWolfe | Backtracking:
        raise NotImplementedError

    @abstractmethod
    def _measure(self, point: Tensor, gradient: Tensor) -> float:
        """What the line search asks about a trial point (n,) beside the objective."""

    def _uphill(self) -> Tensor:
        """The direction (n,) in which the objective rises most from the kept point."""
        return self._kept["gradient"]

    def _direction(self, uphill: Tensor) -> Tensor:
        return self._memory.inverse_times(uphill).neg_()

    def _at(self, step: float) -> Tensor:
        """The trial point (n,)."""
        return torch.add(self._kept["point"], self._kept["direction"], alpha=step)

    def _noise(self, objective: float) -> float:
        """By how much two equal objectives may differ: sums over a corpus lose about a digit."""
        return 10 * torch.finfo(self._parameters()[0].dtype).eps * abs(objective)

    # -- one evaluation --------------------------------------------------------------------------------------

    def _advance(self, objective: float, point: Tensor, gradient: Tensor) -> None:
        group = self.param_groups[0]
        if group["search"] is None:
            self._allocate(point)
            self._report("start")
            self._accept(objective, point, gradient)
            return
        search = self._resume_search(group["search"])
        step = search.step
        outcome = search.observe(objective, self._measure(point, gradient))
        group["search"] = asdict(search)
        self._report(f"iteration {group['iteration'] + 1}, step {step:.3g}: {outcome.value}")
        if outcome is Outcome.ACCEPTED:
            group["iteration"] += 1
            self._remember(point, gradient)
            self._accept(objective, point, gradient)
        elif outcome is Outcome.AGAIN:
            self._put(self._at(search.step))
        else:
            self._retry(search.value)

    def _accept(self, objective: float, point: Tensor, gradient: Tensor) -> None:
        """Ends an iteration, and begins the next one unless it was the last."""
        self._kept.update(point=point, gradient=gradient)
        uphill = self._uphill()
        reason = self._reason(objective, norm(uphill), norm(point))
        if reason is None:
            self._begin(objective, uphill)
        else:
            self._finish(reason)

    def _reason(self, objective: float, slope: float, size: float) -> str | None:
        """Why this iteration was the last one, or None."""
        group = self.param_groups[0]
        if settled(group["values"], objective, group["period"], group["tolerance"]):
            return f"converged: in {group['period']} iterations the objective fell by less than {group['tolerance']:g}"
        if slope <= group["epsilon"] * max(1.0, size):
            return f"converged: the gradient's length is {slope:.3g} at weights of length {size:.3g}"
        return None

    def _begin(self, objective: float, uphill: Tensor) -> None:
        """From the kept point: a direction, and the first trial point on it."""
        direction = self._direction(uphill)
        slope = dot(direction, uphill)
        if not slope < 0:  # rounding has spoilt the memory
            self.param_groups[0]["pairs"] = 0
            direction = self._direction(uphill)
            slope = dot(direction, uphill)
        self._kept["direction"] = direction
        step = 1.0 if self.param_groups[0]["pairs"] else 1 / norm(uphill)
        self.param_groups[0]["search"] = asdict(self._start_search(objective, slope, step))
        self._put(self._at(step))

    def _retry(self, objective: float) -> None:
        """After a failed line search: along the steepest descent, unless it was that."""
        if self.param_groups[0]["pairs"]:
            self.param_groups[0]["pairs"] = 0
            self._begin(objective, self._uphill())
        else:
            self._finish("line search failed: no lower objective was found along the steepest descent")

    # -- memory ----------------------------------------------------------------------------------------------

    def _allocate(self, point: Tensor) -> None:
        rows = 2 * self.param_groups[0]["history"]
        table = torch.zeros(rows, rows, dtype=torch.float64)
        self._kept.update(vectors=point.new_zeros(rows, len(point)), table=table)

    def _remember(self, point: Tensor, gradient: Tensor) -> None:
        memory = self._memory
        memory.remember(point - self._kept["point"], gradient - self._kept["gradient"])
        self.param_groups[0]["pairs"] = memory.pairs

    @property
    def _memory(self) -> LimitedMemory:
        return LimitedMemory(self._kept["vectors"], self._kept["table"], self.param_groups[0]["pairs"])

    @property
    def _kept(self) -> dict[str, Tensor]:
        return self.state[self._parameters()[0]]


def norm(vector: Tensor) -> float:
    """Return the Euclidean length of the vector (n,)."""
    return math.sqrt(dot(vector, vector))
