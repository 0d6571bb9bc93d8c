"""The protocol between training and optimizers, and the base class of this package's optimizers."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from structperc.errors import InputError

TRAINING_WEIGHTS = "training_weights"  # in the state of each parameter


class TrainingProtocol:
    """Methods of optimizers that training calls in addition to those of torch.

    The defaults suit the optimizers of torch; `training_protocol` returns them for such an optimizer.
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

    @property
    def evaluating(self) -> bool:
        """True while the parameters are the evaluation weights, and differ from the training weights."""
        return False

    def evaluation_state(self) -> dict[Tensor, Tensor]:
        """Return the evaluation weights of those parameters that hold other weights now."""
        return {}

    def use_evaluation_weights(self) -> None:
        """Set the parameters to the evaluation weights, and keep the training weights. Does nothing the second time."""

    def use_training_weights(self) -> None:
        """Set the parameters to the training weights that were kept, bit for bit."""

    def keep_evaluation_weights(self) -> None:
        """Continue with the evaluation weights as training weights."""

    @contextmanager
    def evaluation_weights(self) -> Iterator[None]:
        """Return a context in which the parameters are the evaluation weights; it restores what they were before."""
        before = self.evaluating
        self.use_evaluation_weights()
        try:
            yield
        finally:
            if not before:
                self.use_training_weights()


def training_protocol(optimizer: Optimizer) -> TrainingProtocol:
    """Return the training protocol of an optimizer: the optimizer itself if it implements it, else the defaults.

    `optimizer`: an optimizer of this package or of torch.
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

    _training_weights: Mapping[Tensor, Tensor] = MappingProxyType({})  # while parameters are evaluation weights

    @abstractmethod
    def _evaluation_weights(self, p: Tensor, group: dict[str, Any]) -> Tensor | None:
        """Return the evaluation weights of a parameter, in its dtype; None if they are the parameter itself."""

    @property
    def evaluating(self) -> bool:
        """True while the parameters are the evaluation weights, and differ from the training weights."""
        return bool(self._training_weights)

    def _replaced(self) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield each parameter whose evaluation weights differ from its current weights, and these weights."""
        if self._training_weights:
            return
        for group in self.param_groups:
            for p in group["params"]:
                weights = self._evaluation_weights(p, group)
                if weights is not None:
                    yield p, weights

    @torch.no_grad()
    def evaluation_state(self) -> dict[Tensor, Tensor]:
        """Return the evaluation weights of those parameters that hold other weights now."""
        return dict(self._replaced())

    @torch.no_grad()
    def use_evaluation_weights(self) -> None:
        """Set the parameters to the evaluation weights, and keep the training weights. Does nothing the second time."""
        kept = dict(self._training_weights)
        for p, weights in self._replaced():
            kept[p] = p.clone()
            p.copy_(weights)
        self._training_weights = kept

    @torch.no_grad()
    def use_training_weights(self) -> None:
        """Set the parameters to the training weights that were kept, bit for bit."""
        for p, weights in self._training_weights.items():
            p.copy_(weights)
        self._training_weights = {}

    def keep_evaluation_weights(self) -> None:
        """Continue with the evaluation weights as training weights."""
        self.use_evaluation_weights()
        self._training_weights = {}

    def state_dict(self) -> dict[str, Any]:
        """Return the state, with the training weights of each parameter: a saved model has the evaluation weights."""
        return self._with_training_weights(super().state_dict())

    def _with_training_weights(self, saved: dict[str, Any]) -> dict[str, Any]:
        state = dict(saved["state"])
        for group, numbers in zip(self.param_groups, saved["param_groups"], strict=True):
            for p, key in zip(group["params"], numbers["params"], strict=True):
                weights = self._training_weights.get(p, p.detach())
                state[key] = {**state.get(key, {}), TRAINING_WEIGHTS: weights}
        return {**saved, "state": state}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load a state, and set the parameters to its training weights.

        Its tensors keep their dtype, which torch would change to that of the parameter.
        """
        super().load_state_dict({**state_dict, "state": {}})
        state_dict = self._restore_training_weights(state_dict)
        for group, saved in zip(self.param_groups, state_dict["param_groups"], strict=True):
            for p, key in zip(group["params"], saved["params"], strict=True):
                if state := state_dict["state"].get(key):
                    self.state[p] = {name: value.to(p.device, copy=True) for name, value in state.items()}

    @torch.no_grad()
    def _restore_training_weights(self, saved: dict[str, Any]) -> dict[str, Any]:
        """Set the parameters to the training weights of a state; return the state without them."""
        self._training_weights, states = {}, {key: dict(state) for key, state in saved["state"].items()}
        for group, numbers in zip(self.param_groups, saved["param_groups"], strict=True):
            for p, key in zip(group["params"], numbers["params"], strict=True):
                weights = states.get(key, {}).pop(TRAINING_WEIGHTS, None)
                if weights is not None:
                    p.copy_(weights)
        return {**saved, "state": {key: state for key, state in states.items() if state}}


def check_options(
    optimizer: Optimizer, *, above: float | None = None, least: float | None = None, **options: float
) -> None:
    """Raise InputError for an option that is not > `above`, or not >= `least`."""
    for name, value in options.items():
        if above is not None and not value > above:
            raise InputError(f"{type(optimizer).__name__}: {name} must be > {above:g}, got {value}")
        if least is not None and not value >= least:
            raise InputError(f"{type(optimizer).__name__}: {name} must be >= {least:g}, got {value}")
