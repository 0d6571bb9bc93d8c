"""Wrappers of optimizers: two in sequence, and averages of the weights."""

from abc import abstractmethod
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer
from torch.optim.swa_utils import get_ema_multi_avg_fn, get_swa_multi_avg_fn

from structperc.errors import InputError
from structperc.optim.base import BaseOptimizer, TrainingProtocol, check_options, training_protocol

add_to_mean, exponential_average = get_swa_multi_avg_fn(), cache(get_ema_multi_avg_fn)  # created once: it takes time
MakeOptimizer = Callable[[Iterable[Any]], Optimizer]


class _Wrapper(BaseOptimizer):
    """Base class of wrappers, whose groups, state and steps are those of the wrapped optimizer, the active one."""

    def __init__(self, params: list[Any], makers: Iterable[MakeOptimizer]) -> None:
        super().__init__(_copy_groups(params), {})
        self.optimizers = [make(_copy_groups(params)) for make in makers]

    @property
    @abstractmethod
    def active(self) -> Optimizer:
        """The optimizer that makes the current steps."""

    @property
    def full_batch(self) -> bool:
        """True if a step of the active optimizer needs the gradient over the whole corpus."""
        return training_protocol(self.active).full_batch

    @property
    def status(self) -> str | None:
        """One line about the last step of the active optimizer, or None."""
        return training_protocol(self.active).status

    @property
    def divergence_hint(self) -> str:
        """Advice for a training that diverges with the active optimizer."""
        return training_protocol(self.active).divergence_hint

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Make a step with the active optimizer."""
        return self.active.step(closure)

    def _share_state(self) -> None:
        """Set groups and state to those of the active optimizer, which replaces them when it loads a state."""
        self.state, self.param_groups = self.active.state, self.active.param_groups


def _copy_groups(params: list[Any]) -> list[Any]:
    """Return groups as new dicts, since optimizers write their options into the dicts that they get."""
    return [dict(p) if isinstance(p, dict) else p for p in params]


class SequentialOptimizers(_Wrapper):
    """Two optimizers in sequence: the second one starts from the evaluation weights of the first.

    Suzuki, McDermott & Isozaki 2006, §5.2, for MCE: ten iterations of GPD, then QuickProp. `begin_epoch` chooses the
    `active` optimizer. If the first one is a full-batch optimizer and converges before its epochs are over, the second
    one starts early.

    Args:
        first: function that creates the first optimizer from the parameters.
        first_epochs: number of epochs of the first optimizer.
        second: function that creates the second optimizer from the parameters.

    Raises:
        InputError: first_epochs < 1, or one of the two is a SequentialOptimizers itself.

    Example:
        >>> from functools import partial
        >>> import torch
        >>> from structperc.optim import LBFGS, Perceptron, SequentialOptimizers
        >>> weight = torch.zeros(1, requires_grad=True)
        >>> optimizer = SequentialOptimizers([weight], partial(Perceptron, lr=0.1), first_epochs=10, second=LBFGS)
        >>> optimizer.begin_epoch(10)
        >>> type(optimizer.active).__name__, optimizer.full_batch
        ('LBFGS', True)
    """

    def __init__(self, params: Iterable[Any], first: MakeOptimizer, first_epochs: int, second: MakeOptimizer) -> None:
        check_options(self, least=1, first_epochs=first_epochs)
        super().__init__(list(params), (first, second))
        self.first_epochs = first_epochs
        if any(isinstance(optimizer, SequentialOptimizers) for optimizer in self.optimizers):
            raise InputError("SequentialOptimizers: first and second must not be SequentialOptimizers")
        self._activate(0)

    @property
    def active(self) -> Optimizer:
        """The optimizer of the current phase."""
        return self.optimizers[self.phase]

    @property
    def can_stop(self) -> bool:
        """True if the second optimizer ends training."""
        return training_protocol(self.optimizers[-1]).can_stop

    @property
    def stop_reason(self) -> str | None:
        """The reason why further steps of the second optimizer change nothing; None while they do."""
        return training_protocol(self.active).stop_reason if self.phase else None

    def begin_epoch(self, epoch: int) -> None:
        """Choose the active optimizer for an epoch, counted from 0."""
        over = epoch >= self.first_epochs or training_protocol(self.active).stop_reason is not None
        if self.phase == 0 and over:
            training_protocol(self.active).keep_evaluation_weights()
            self.active.state.clear()  # not needed any more
            self._activate(1)

    def _evaluation_weights(self, p: Tensor, group: dict[str, Any]) -> Tensor | None:
        return self.active._evaluation_weights(p, group) if isinstance(self.active, BaseOptimizer) else None

    @property
    def evaluating(self) -> bool:
        """True while the parameters are the evaluation weights of the active optimizer."""
        return training_protocol(self.active).evaluating

    def evaluation_state(self) -> dict[Tensor, Tensor]:
        """Return the `evaluation_state` of the active optimizer."""
        return training_protocol(self.active).evaluation_state()

    def use_evaluation_weights(self) -> None:
        """Use the evaluation weights of the active optimizer."""
        training_protocol(self.active).use_evaluation_weights()

    def use_training_weights(self) -> None:
        """Use the training weights of the active optimizer."""
        training_protocol(self.active).use_training_weights()

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the active optimizer and the phase."""
        return {**self.active.state_dict(), "phase": self.phase}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue in the phase in which the state was saved."""
        self._activate(state_dict["phase"])
        self.active.load_state_dict({key: value for key, value in state_dict.items() if key != "phase"})
        self._share_state()

    def _activate(self, phase: int) -> None:
        self.phase = phase
        self._share_state()


class Averaging(_Wrapper):
    """Average of the weights over the steps of another optimizer, as evaluation weights.

    Without `decay` all steps since the beginning of epoch `start` have equal weight (Polyak & Juditsky 1992; stochastic
    weight averaging, Izmailov et al. 2018, averages once per epoch). With `decay` the average is exponential: after N
    averaged steps the last one has weight max(1 - decay, 1 / N). The average of each trained parameter is dense and
    has its dtype.

    Args:
        optimizer: function that creates the other optimizer from the parameters.
        start: first epoch, counted from 0, whose steps are averaged; before it, the training weights are evaluated.
        decay: weight of the average so far at a step, such as 0.999.

    Raises:
        InputError: start < 0, a decay outside 0..1, or an optimizer that already has evaluation weights.

    Example:
        >>> from functools import partial
        >>> import torch
        >>> from structperc.optim import Averaging
        >>> weight = torch.zeros(1, requires_grad=True)
        >>> optimizer = Averaging([weight], partial(torch.optim.SGD, lr=1.0))
        >>> weight.grad = torch.tensor([-1.0])
        >>> for _ in range(3):  # the weight is 1, 2 and 3
        ...     optimizer.step()
        >>> with optimizer.evaluation_weights():
        ...     weight.tolist()
        [2.0]
    """

    def __init__(
        self, params: Iterable[Any], optimizer: MakeOptimizer, start: int = 0, decay: float | None = None
    ) -> None:
        check_options(self, least=0, start=start)
        if decay is not None and not 0 < decay < 1:
            raise InputError(f"Averaging: decay must be > 0 and < 1, got {decay}")
        super().__init__(list(params), (optimizer,))
        self.start, self.decay = start, decay
        if isinstance(self.active, TrainingProtocol):
            name = type(self.active).__name__
            raise InputError(f"Averaging: {name} already has evaluation weights; use it without Averaging")
        self.averages: dict[Tensor, Tensor] = {}
        self.averaged = self.epoch = 0  # number of steps in the averages, current epoch
        self._share_state()

    @property
    def active(self) -> Optimizer:
        """The optimizer whose weights are averaged."""
        return self.optimizers[0]

    def begin_epoch(self, epoch: int) -> None:
        """Set the current epoch, counted from 0."""
        self.epoch = epoch

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Make a step of the other optimizer, and add the resulting weights to the average."""
        if self.averaged:  # the weights of parameters that were frozen so far are their averages
            new = [p for p in self._parameters() if p.requires_grad and p not in self.averages]
            self.averages.update({p: p.detach().clone() for p in new})
        loss = super().step(closure)
        if self.epoch >= self.start:
            self._add_weights()
        return loss

    @torch.no_grad()
    def _add_weights(self) -> None:
        self.averaged += 1
        if self.averaged == 1:
            self.averages = {p: p.detach().clone() for p in self._parameters() if p.requires_grad}
            return
        mean = self.decay is None or 1 / self.averaged > 1 - self.decay
        average = add_to_mean if mean else exponential_average(self.decay)
        average([*self.averages.values()], [*self.averages], self.averaged - 1)

    def _evaluation_weights(self, p: Tensor, group: dict[str, Any]) -> Tensor | None:
        return self.averages.get(p)

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the other optimizer, the average of each parameter and the number of averaged steps."""
        saved = self.active.state_dict()
        keys = [key for group in saved["param_groups"] for key in group["params"]]
        state = {key: dict(own) for key, own in saved["state"].items()}
        for key, p in zip(keys, self._parameters(), strict=True):
            if p in self.averages:
                state.setdefault(key, {})["average"] = self.averages[p]
        return {**self._with_training_weights({**saved, "state": state}), "averaged": self.averaged}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue with the other optimizer's state, the averages and the training weights that were saved."""
        state_dict = self._restore_training_weights(state_dict)
        state = {key: dict(own) for key, own in state_dict["state"].items()}
        averages = {key: own.pop("average") for key, own in state.items() if "average" in own}
        groups = state_dict["param_groups"]
        self.active.load_state_dict({"state": {k: own for k, own in state.items() if own}, "param_groups": groups})
        self._share_state()
        keys = [key for group in groups for key in group["params"]]
        pairs = zip(keys, self._parameters(), strict=True)
        self.averages = {p: averages[key].to(p.device, copy=True) for key, p in pairs if key in averages}
        self.averaged = state_dict["averaged"]

    def _parameters(self) -> list[Tensor]:
        return [p for group in self.param_groups for p in group["params"]]
