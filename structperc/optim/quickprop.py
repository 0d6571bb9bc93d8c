"""QuickProp: each weight steps to the minimum of a parabola."""

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

from structperc.optim.base import check_options
from structperc.optim.full_batch import FullBatch, has_converged


class QuickProp(FullBatch):
    """QuickProp optimizer. Fahlman 1988, "An empirical study of learning speed in back-propagation networks".

    Per weight w, with the slope S = gradient + decay * w now, S' one step ago and d' the step between:

    * where d' = 0 (and at first): step -lr * S;
    * else to the minimum of the parabola through both slopes: step S / (S' - S) * d', at most growth * |d'| and
      exactly growth * d' where the parabola opens downwards or has its minimum farther away (S has the sign of S'
      and is larger than growth / (1 + growth) of it);
    * and -lr * S in addition where S still points to a step in the direction of d'.

    Of the variants in use this is Fahlman's own program: the last condition compares d' with S, while the paper
    requires equal signs of S and S'. Differs: one lr for all weights, not divided by fan-in.

    The objective is a sum over the corpus, and so is its gradient: twice the data need half the lr. Start with
    0.1 / number of sequences. The steps ignore the objective, which may rise now and then; the weights of the lowest
    objective are kept. It stops when the lowest objective since the first step fell by no more than `tolerance`
    times itself in `period` evaluations.

    Args:
        lr: factor of the slope.
        growth: longest step relative to the previous one.
        decay: weight decay, in addition to a prior of the objective.
        tolerance: minimal relative decrease of the lowest objective.
        period: number of evaluations for `tolerance`.

    Raises:
        InputError: an option is out of range; more than one group of parameters.

    Example:
        >>> import torch
        >>> from structperc.optim import QuickProp
        >>> weight = torch.zeros(1, requires_grad=True)
        >>> optimizer = QuickProp([weight], lr=0.25)
        >>> def closure():
        ...     optimizer.zero_grad()
        ...     objective = ((weight - 1) ** 2).sum()
        ...     objective.backward()
        ...     return objective
        >>> [(optimizer.step(closure).item(), weight.item()) for _ in range(2)]
        [(1.0, 0.5), (0.25, 1.25)]
    """

    divergence_hint = "set a smaller lr"

    def __init__(
        self,
        params: Iterable[Any],
        lr: float,
        growth: float = 1.75,
        decay: float = 0.0,
        tolerance: float = 1e-5,
        period: int = 10,
    ) -> None:
        check_options(self, above=0, lr=lr, growth=growth)
        check_options(self, least=0, decay=decay, tolerance=tolerance)
        check_options(self, least=1, period=period)
        options = {"lr": lr, "growth": growth, "decay": decay, "tolerance": tolerance, "period": period}
        super().__init__(params, {**options, "values": []})

    def _advance(self, objective: float, point: Tensor, gradient: Tensor) -> None:
        group, kept = self.param_groups[0], self.state[self._parameters()[0]]
        self._report(f"step {group['evaluations']}")
        if self._has_converged(objective):
            rise = group["objective"] - group["lowest"]
            if rise > group["tolerance"] * abs(group["lowest"]):
                reason = f"no progress in {group['period']} evaluations, above the lowest objective: try a smaller lr"
            else:
                fall = f"in {group['period']} evaluations the objective fell by less than {group['tolerance']:g}"
                reason = f"converged: {fall}"
            self._stop(reason)
            return
        slope = gradient.add_(point, alpha=group["decay"])
        if "slope" in kept:
            step = quickprop_step(slope, kept["slope"], kept["step"], group["lr"], group["growth"])
        else:
            step = slope * -group["lr"]
        kept.update(slope=slope, step=step)
        self._set_point(point + step)

    def _has_converged(self, objective: float) -> bool:
        """Return True if the lowest objective since the first step has converged.

        The start does not count: if all paths have equal scores, as at weights of zero, an objective may rise first.
        """
        group = self.param_groups[0]
        if group["evaluations"] == 1:
            return False
        lowest = min([objective, *group["values"][-1:]])
        return has_converged(group["values"], lowest, group["period"], group["tolerance"])


def quickprop_step(slope: Tensor, before: Tensor, step: Tensor, lr: float, growth: float) -> Tensor:
    """Return the next step (n,) from the slope S (n,), the one before S' (n,) and the step d' (n,) between."""
    downhill = slope * step.sign()  # below 0 where S points to the direction of d'
    flat = downhill <= growth / (1 + growth) * before * step.sign()
    parabola = torch.where(flat, growth, slope / (before - slope)).clamp_(-growth, growth)
    linear = torch.where(downhill < 0, slope, 0.0).where(step != 0, slope)
    return torch.where(step != 0, parabola * step, 0.0).sub_(linear, alpha=lr)
