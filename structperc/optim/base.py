"""The protocol between training and optimizers, and the base class of this package's optimizers."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from structperc.errors import InputError


class TrainingProtocol:
    """The methods that training calls beyond those of torch; the defaults suit the optimizers of torch."""

    @property
    def divergence_hint(self) -> str:
        """Advice in messages about a training that diverges."""
        return "set a smaller lr of the optimizer"

    @property
    def full_batch(self) -> bool:
        """True if a step needs objective and gradient over the whole corpus."""
        return False

    @property
    def can_stop(self) -> bool:
        """True if the optimizer ends training, with a `stop_reason`."""
        return False

    @property
    def stop_reason(self) -> str | None:
        """The reason why further steps change nothing; None while they do."""
        return None

    @property
    def status(self) -> str | None:
        """One line about the last step, or None."""
        return None

    def begin_epoch(self, epoch: int) -> None:
        """Start an epoch, counted from 0; called on the optimizer itself, not on a wrapper."""

    def use_evaluation_weights(self) -> dict[Tensor, Tensor]:
        """Put the evaluation weights into the parameters; return the training weights for `restore`."""
        return {}

    @staticmethod
    @torch.no_grad()
    def restore(training_weights: dict[Tensor, Tensor]) -> None:
        """Put training weights back, bit for bit."""
        for p, weights in training_weights.items():
            p.copy_(weights)

    @contextmanager
    def evaluation_weights(self) -> Iterator[None]:
        """Let the parameters hold the evaluation weights within a `with` block, and restore the training weights."""
        training_weights = self.use_evaluation_weights()
        try:
            yield
        finally:
            self.restore(training_weights)


def training_protocol(optimizer: Optimizer) -> TrainingProtocol:
    """Return the optimizer itself if it implements the protocol, else the defaults."""
    return optimizer if isinstance(optimizer, TrainingProtocol) else TrainingProtocol()


class BaseOptimizer(Optimizer, TrainingProtocol, ABC):
    """Base class of optimizers whose evaluation weights may differ from the weights that the next step starts from.

    Averaging optimizers evaluate the average over all steps, full-batch methods the weights of lowest objective.
    """

    @abstractmethod
    def _evaluation_weights(self, p: Tensor, group: dict[str, Any]) -> Tensor | None:
        """Return the evaluation weights of a parameter, in its dtype; None where they are the parameter itself."""

    @torch.no_grad()
    def use_evaluation_weights(self) -> dict[Tensor, Tensor]:
        """Put the evaluation weights into the parameters; return the training weights for `restore`."""
        training_weights = {}
        for group in self.param_groups:
            for p in group["params"]:
                weights = self._evaluation_weights(p, group)
                if weights is not None:
                    training_weights[p] = p.clone()
                    p.copy_(weights)
        return training_weights

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load a state; its tensors keep their dtype, where torch would cast them to that of the parameter."""
        super().load_state_dict({**state_dict, "state": {}})
        for group, saved in zip(self.param_groups, state_dict["param_groups"], strict=True):
            for p, key in zip(group["params"], saved["params"], strict=True):
                if key in state_dict["state"]:
                    state = state_dict["state"][key].items()
                    self.state[p] = {name: value.to(p.device, copy=True) for name, value in state}


def check_options(
    optimizer: Optimizer, *, above: float | None = None, least: float | None = None, **options: float
) -> None:
    """Raise InputError for an option that is not > `above`, or not >= `least`."""
    for name, value in options.items():
        if above is not None and not value > above:
            raise InputError(f"{type(optimizer).__name__}: {name} must be > {above:g}, got {value}")
        if least is not None and not value >= least:
            raise InputError(f"{type(optimizer).__name__}: {name} must be >= {least:g}, got {value}")
