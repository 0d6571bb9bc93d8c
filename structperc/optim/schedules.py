"""Schedules of learning rates, in addition to those of `torch.optim.lr_scheduler`."""

import math
from abc import abstractmethod
from typing import Any, Literal

from torch.optim import Optimizer
from torch.optim.lr_scheduler import CyclicLR, LRScheduler, OneCycleLR

from structperc.errors import InputError

Interval = Literal["step", "epoch"]


class Schedule(LRScheduler):
    """Base class of schedules that multiply the learning rate by a function of the number of steps or epochs.

    A subclass defines `factor`, and sets `interval` to the unit that it counts, "step" or "epoch".

    Args:
        optimizer: optimizer whose groups have learning rates.
    """

    interval: Interval = "epoch"

    @abstractmethod
    def factor(self, done: int) -> float:
        """Return the factor of the learning rate after `done` steps or epochs."""

    def get_last_lr(self) -> list[Any]:
        """Return the current learning rate of each group of the optimizer."""
        return [group["lr"] for group in self.optimizer.param_groups]

    def get_lr(self) -> list[Any]:
        """Return the learning rate of each group of the optimizer."""
        return [float(base) * self.factor(self.last_epoch) for base in self.base_lrs]


class WarmupDecay(Schedule):
    """Linear warm-up of the learning rate, then decay until training ends: the usual schedule of transformers.

    With N steps in all, of which W are warm-up, the factor of lr at step s = 0, 1, ... is (s + 1) / W while s < W, and
    then end + (1 - end) * f(r), where r = (s - W) / (N - W) and f(r) is 1 - r (linear), (1 + cos(pi r)) / 2 (cosine)
    or 1 (constant). No step has a rate of 0. N follows from the smaller one of the trainer's max_epochs
    and max_steps.

    Args:
        warmup: W as a share of all steps.
        decay: name of f.
        end: factor of lr at the end of training.

    Raises:
        InputError: a share outside 0..1, or an unknown decay.

    Example:
        >>> import torch
        >>> from structperc.optim import WarmupDecay
        >>> schedule = WarmupDecay(torch.optim.SGD([torch.zeros(1)], lr=0.1), warmup=0.5)
        >>> schedule.plan(total_steps=8)  # the tagger calls this
        >>> [schedule.factor(step) for step in range(8)]
        [0.25, 0.5, 0.75, 1.0, 1.0, 0.75, 0.5, 0.25]
    """

    interval: Interval = "step"

    def __init__(
        self,
        optimizer: Optimizer,
        warmup: float = 0.1,
        decay: Literal["linear", "cosine", "constant"] = "linear",
        end: float = 0.0,
    ) -> None:
        for name, value in {"warmup": warmup, "end": end}.items():
            if not 0 <= value <= 1:
                raise InputError(f"WarmupDecay: {name} must be >= 0 and <= 1, got {value}")
        if decay not in _FALLS:
            raise InputError(f"WarmupDecay: decay must be one of {', '.join(_FALLS)}, got {decay!r}")
        self.warmup, self.decay, self.end = warmup, decay, end
        self.total_steps: int | None = None
        super().__init__(optimizer)

    def plan(self, total_steps: int) -> None:
        """Set the number of steps of the training, before the first step or when training is resumed."""
        self.total_steps = total_steps
        self._set_rates()

    def factor(self, done: int) -> float:
        """Return the factor of the next step after `done` steps; 1 before `plan`."""
        if self.total_steps is None:
            return 1.0
        rising = round(self.warmup * self.total_steps)
        if done < rising:
            return (done + 1) / rising
        share = min(1.0, (done - rising) / max(1, self.total_steps - rising))
        return self.end + (1 - self.end) * _FALLS[self.decay](share)

    def state_dict(self) -> dict[str, Any]:
        """Return the state without the number of all steps, which `plan` sets again when training is resumed."""
        return {name: value for name, value in super().state_dict().items() if name != "total_steps"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue from a state, with the rates of the current plan."""
        super().load_state_dict(state_dict)
        self._set_rates()

    def _set_rates(self) -> None:
        for group, lr in zip(self.optimizer.param_groups, self.get_lr(), strict=True):
            group["lr"] = lr


_FALLS = {
    "linear": lambda share: 1 - share,
    "cosine": lambda share: (1 + math.cos(math.pi * share)) / 2,
    "constant": lambda share: 1.0,
}


class InverseTime(Schedule):
    """Schedule with the learning rate lr / (1 + rate * e) in epoch e = 0, 1, ...

    Ma & Hovy 2016, §3.2, use it for BiLSTMs trained by SGD, with rate 0.05.

    Args:
        rate: speed of the decay.

    Raises:
        InputError: rate is negative.
    """

    def __init__(self, optimizer: Optimizer, rate: float = 0.05) -> None:
        if not rate >= 0:
            raise InputError(f"InverseTime: rate must be >= 0, got {rate}")
        self.rate = rate
        super().__init__(optimizer)

    def factor(self, done: int) -> float:
        """Return the factor after `done` epochs."""
        return 1 / (1 + self.rate * done)


def step_interval(schedule: LRScheduler) -> Interval:
    """Return the unit that a schedule counts, "step" or "epoch".

    `schedule`: a schedule of this package, or one of torch, where OneCycleLR and CyclicLR count steps.
    """
    return getattr(schedule, "interval", "step" if isinstance(schedule, OneCycleLR | CyclicLR) else "epoch")
