"""Averages of the weights that any optimizer learns: a mean over steps, or one that forgets.

An optimizer that is made of two, one after the other.
"""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from structperc.errors import InputError
from structperc.optim.base import BaseOptimizer, TrainingProtocol, learner


class Phases(BaseOptimizer):
    """The first optimizer for some epochs, then the second, which starts from the weights that the first serves.

    Suzuki et al. 2006, §5.2, for MCE: ten iterations of GPD, then QuickProp. `begin_epoch` chooses which one is
    `active`; groups, state, steps, `full_batch`, `stop_reason`, `status` and what is served are those of the active
    one. A full-batch optimizer that is finished before its epochs are over makes way for the second early.

    Args:
        params: parameters or groups.
        first: makes the first optimizer from the parameters.
        epochs: how long it is active.
        then: makes the second one.

    Raises:
        InputError: epochs < 1; one of the two is Phases itself.
    """

    def __init__(
        self,
        params: Iterable[Any],
        first: Callable[[Iterable[Any]], Optimizer],
        epochs: int,
        then: Callable[[Iterable[Any]], Optimizer],
    ) -> None:
        if epochs < 1:
            raise InputError(f"Phases: epochs must be >= 1, got {epochs}")
        given = [dict(p) if isinstance(p, dict) else p for p in params]
        super().__init__(copy_groups(given), {})
        self.epochs = epochs
        self.optimizers = [make(copy_groups(given)) for make in (first, then)]
        if any(isinstance(optimizer, Phases) for optimizer in self.optimizers):
            raise InputError("Phases: first and then must be optimizers of another kind")
        self._activate(0)

    @property
    def active(self) -> Optimizer:
        """The optimizer of the present phase."""
        return self.optimizers[self.phase]

    @property
    def full_batch(self) -> bool:
        """Whether a step needs the gradient over the whole corpus."""
        return learner(self.active).full_batch

    @property
    def can_stop(self) -> bool:
        """Whether the second optimizer will come to an end by itself."""
        return learner(self.optimizers[-1]).can_stop

    @property
    def stop_reason(self) -> str | None:
        """The reason why the second optimizer has nothing left to do; None while there is something to do."""
        return learner(self.active).stop_reason if self.phase else None

    @property
    def status(self) -> str | None:
        """One line about the last step; None of optimizers that give none."""
        return learner(self.active).status

    @property
    def divergence_hint(self) -> str:
        """The advice of the active optimizer what to change when training diverges."""
        return learner(self.active).divergence_hint

    def begin_epoch(self, epoch: int) -> None:
        """Choose the active optimizer for the epoch, from 0, that begins.

        Called on the optimizer itself, not on a wrapper.
        """
        over = epoch >= self.epochs or learner(self.active).stop_reason is not None
        if self.phase == 0 and over:
            learner(self.active).use_evaluation_weights()
            self.active.state.clear()  # of no more use
            self._activate(1)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Make a step with the active optimizer."""
        return self.active.step(closure)

    def _evaluation_weights(self, p: Tensor, group: dict[str, Any]) -> Tensor | None:
        return self.active._evaluation_weights(p, group) if isinstance(self.active, BaseOptimizer) else None

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the active optimizer, and which it is: the other one has none, or none of use."""
        return {**self.active.state_dict(), "phase": self.phase}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on in the phase in which the state was saved."""
        self._activate(state_dict["phase"])
        self.active.load_state_dict({key: value for key, value in state_dict.items() if key != "phase"})
        self._activate(self.phase)

    def _activate(self, phase: int) -> None:
        """What is read from an optimizer from outside is the active one's; loading a state makes it anew."""
        self.phase = phase
        self.state, self.param_groups = self.active.state, self.active.param_groups


def copy_groups(params: list[Any]) -> list[Any]:
    """Return groups as new dicts, since optimizers write their options into those they get."""
    return [dict(p) if isinstance(p, dict) else p for p in params]


class Averaging(BaseOptimizer):
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
        super().__init__(copy_groups(given), {})
        self.inner, self.start, self.decay = of(copy_groups(given)), start, decay
        if isinstance(self.inner, TrainingProtocol):
            raise InputError(f"Averaging: {type(self.inner).__name__} serves weights of its own; use it by itself")
        self.averages: dict[Tensor, Tensor] = {}
        self.averaged = self.epoch = 0  # steps, the present epoch
        self._share()

    @property
    def divergence_hint(self) -> str:
        """The advice what to change when training diverges."""
        return learner(self.inner).divergence_hint

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

    def _evaluation_weights(self, p: Tensor, group: dict[str, Any]) -> Tensor | None:
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
