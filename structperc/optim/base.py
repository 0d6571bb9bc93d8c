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
    """Methods of optimizers that training calls in addition to those of torch.

    The defaults suit the optimizers of torch; `training_protocol` returns them for such an optimizer.

    Example:
        >>> import torch
        >>> from structperc.optim import Perceptron
        >>> weight = torch.zeros(1, requires_grad=True)
        >>> optimizer = Perceptron([weight])
        >>> for gradient in (-1.0, -2.0):  # the weight is 1, then 3
        ...     weight.grad = torch.tensor([gradient])
        ...     optimizer.step()
        >>> with optimizer.evaluation_weights():
        ...     weight.tolist()
        [2.0]
        >>> weight.tolist()
        [3.0]
    """

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
        """Copy the evaluation weights to the parameters; return the training weights for `restore`."""
        return {}

    @staticmethod
    @torch.no_grad()
    def restore(training_weights: dict[Tensor, Tensor]) -> None:
        """Copy training weights back to the parameters, bit for bit."""
        for p, weights in training_weights.items():
            p.copy_(weights)

    @contextmanager
    def evaluation_weights(self) -> Iterator[None]:
        """Return a context in which the parameters are the evaluation weights; it restores the training weights."""
        training_weights = self.use_evaluation_weights()
        try:
            yield
        finally:
            self.restore(training_weights)


def training_protocol(optimizer: Optimizer) -> TrainingProtocol:
    """Return the training protocol of an optimizer: the optimizer itself if it implements it, else the defaults.

    Args:
        optimizer: an optimizer of this package or of torch.

    Example:
        >>> import torch
        >>> from structperc.optim import LBFGS, training_protocol
        >>> weight = torch.zeros(1, requires_grad=True)
        >>> [training_protocol(one).full_batch for one in (torch.optim.Adam([weight]), LBFGS([weight]))]
        [False, True]
    """
    return optimizer if isinstance(optimizer, TrainingProtocol) else TrainingProtocol()


class BaseOptimizer(Optimizer, TrainingProtocol, ABC):
    """Base class of optimizers whose evaluation weights may differ from the training weights.

    Averaging optimizers evaluate the average over all steps, full-batch methods the weights of lowest objective.
    A subclass defines `step` and `_evaluation_weights`.

    Args:
        params: Parameters, or groups of parameters.
        defaults: Options of groups that do not set them.

    Example:
        >>> import torch
        >>> from structperc.optim import BaseOptimizer
        >>> class RoundedSGD(BaseOptimizer):
        ...     @torch.no_grad()
        ...     def step(self, closure=None):
        ...         for p in self.param_groups[0]["params"]:
        ...             p.sub_(p.grad)
        ...     def _evaluation_weights(self, p, group):
        ...         return p.round()
        >>> weight = torch.tensor([1.5], requires_grad=True)
        >>> weight.grad = torch.tensor([0.25])
        >>> optimizer = RoundedSGD([weight], {})
        >>> optimizer.step()
        >>> with optimizer.evaluation_weights():
        ...     weight.tolist()
        [1.0]
    """

    @abstractmethod
    def _evaluation_weights(self, p: Tensor, group: dict[str, Any]) -> Tensor | None:
        """Return the evaluation weights of a parameter, in its dtype; None if they are the parameter itself."""

    @torch.no_grad()
    def use_evaluation_weights(self) -> dict[Tensor, Tensor]:
        """Copy the evaluation weights to the parameters; return the training weights for `restore`."""
        training_weights = {}
        for group in self.param_groups:
            for p in group["params"]:
                weights = self._evaluation_weights(p, group)
                if weights is not None:
                    training_weights[p] = p.clone()
                    p.copy_(weights)
        return training_weights

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load a state; its tensors keep their dtype, which torch would change to that of the parameter."""
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
