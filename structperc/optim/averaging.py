"""Averages of the weights that any optimizer learns: a mean over steps, or one that forgets."""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from structperc.errors import InputError
from structperc.optim.learner import Learner, learner
from structperc.optim.phases import copies
from structperc.optim.served import ServedWeights


class Averaging(ServedWeights):
    """Steps of another optimizer; what is served is the average of the weights after each of them.

    Without `decay` all steps since the beginning of epoch `start` count alike (Polyak & Juditsky 1992; stochastic
    weight averaging, Izmailov et al. 2018, takes one of each epoch). With it a step counts 1 - decay, and those before
    it as much less; the first ones, as long as that is more, count alike. Groups and state are those of the other
    optimizer, beside which each parameter that learns has its average, dense and of its own dtype.

    Args:
        params: parameters or groups.
        of: makes the other optimizer.
        start: the epoch, from 0, whose steps are the first to count; before, the raw weights are served.
        decay: how much of the average stays at a step, such as 0.999.

    Raises:
        InputError: start < 0, a decay outside of 0..1, an optimizer that serves weights of its own.
    """

    def __init__(
        self,
        params: Iterable[Any],
        of: Callable[[Iterable[Any]], Optimizer],
        start: int = 0,
        decay: float | None = None,
    ) -> None:
        if start < 0:
            raise InputError(f"Averaging: start must be >= 0, got {start}")
        if decay is not None and not 0 < decay < 1:
            raise InputError(f"Averaging: decay must be > 0 and < 1, got {decay}")
        given = [dict(p) if isinstance(p, dict) else p for p in params]
        super().__init__(copies(given), {})
        self.inner, self.start, self.decay = of(copies(given)), start, decay
        if isinstance(self.inner, Learner):
            raise InputError(f"Averaging: {type(self.inner).__name__} serves weights of its own; use it by itself")
        self.averages: dict[Tensor, Tensor] = {}
        self.averaged = self.epoch = 0  # steps, the present epoch
        self._share()

    @property
    def advice(self) -> str:
        """The advice what to change when training diverges."""
        return learner(self.inner).advice

    def begin_epoch(self, epoch: int) -> None:
        """Take note of the epoch, from 0, that begins."""
        self.epoch = epoch

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Make a step of the other optimizer, and count the weights that it leaves."""
        loss = self.inner.step(closure)
        if self.epoch >= self.start:
            self._count()
        return loss

    @torch.no_grad()
    def _count(self) -> None:
        self.averaged += 1
        share = max(1 / self.averaged, 0.0 if self.decay is None else 1 - self.decay)
        if self.averaged == 1:
            self.averages = {p: p.detach().clone() for p in self._parameters() if p.requires_grad}
        else:
            torch._foreach_lerp_([*self.averages.values()], [*self.averages], share)

    def _served(self, p: Tensor, group: dict[str, Any]) -> Tensor | None:
        return self.averages.get(p)

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the other optimizer, with the average of each parameter and the number of steps in it."""
        saved = self.inner.state_dict()
        keys = [key for group in saved["param_groups"] for key in group["params"]]
        averages = {
            key: self.averages[p] for key, p in zip(keys, self._parameters(), strict=True) if p in self.averages
        }
        state = {key: dict(saved["state"].get(key, {})) for key in keys if key in saved["state"] or key in averages}
        for key, average in averages.items():
            state[key]["average"] = average
        return {**saved, "state": state, "averaged": self.averaged}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on with the other optimizer's state and the averages that were saved."""
        state, averages = {}, {}
        for key, own in state_dict["state"].items():
            state[key] = {name: value for name, value in own.items() if name != "average"}
            averages[key] = own.get("average")
        groups = state_dict["param_groups"]
        self.inner.load_state_dict({"state": {k: own for k, own in state.items() if own}, "param_groups": groups})
        self._share()
        keys = [key for group in groups for key in group["params"]]
        found = {p: averages.get(key) for key, p in zip(keys, self._parameters(), strict=True)}
        self.averages = {p: own.to(p.device, copy=True) for p, own in found.items() if own is not None}
        self.averaged = state_dict["averaged"]

    def _parameters(self) -> list[Tensor]:
        return [p for group in self.param_groups for p in group["params"]]

    def _share(self) -> None:
        """What is read from an optimizer from outside is the other one's; loading a state makes it anew."""
        self.state, self.param_groups = self.inner.state, self.inner.param_groups
