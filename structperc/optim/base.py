"""What training asks of an optimizer beyond torch's contract, and the answers for one that does not know of it.

Optimizers that serve other weights than those they learn with, such as averages: one protocol for all of them.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer


class TrainingProtocol:
    """Base of the optimizers here; the answers below are those of torch's own, which `learner` gives for them.

    A step belongs to each mini-batch, training goes on for as long as the trainer says, and the weights to look at
    are those to learn with. A subclass changes what differs.
    """

    @property
    def full_batch(self) -> bool:
        """Whether a step needs objective and gradient over the whole corpus."""
        return False

    @property
    def can_stop(self) -> bool:
        """Whether the optimizer will come to an end by itself, at which `stop_reason` says why."""
        return False

    @property
    def stop_reason(self) -> str | None:
        """The reason why there is nothing left to do, in plain words; None while there is.

        Further steps change nothing.
        """
        return None

    @property
    def status(self) -> str | None:
        """One line about the last step; None before the first, and of optimizers that tell nothing."""
        return None

    @property
    def divergence_hint(self) -> str:
        """The advice what to change when training diverges."""
        return "set a smaller lr of the optimizer"

    def begin_epoch(self, epoch: int) -> None:
        """Take note of the epoch, from 0, that begins; this is called on the optimizer itself, not on a wrapper."""

    def use_evaluation_weights(self) -> dict[Tensor, Tensor]:
        """Put the served weights into the parameters; return what `restore` needs to put the raw weights back."""
        return {}

    @staticmethod
    @torch.no_grad()
    def restore(raw: dict[Tensor, Tensor]) -> None:
        """Put raw weights back, bit for bit."""
        for p, weights in raw.items():
            p.copy_(weights)

    @contextmanager
    def served(self) -> Iterator[None]:
        """Let the parameters hold the served weights within the block; afterwards, also on an error, the raw ones."""
        raw = self.use_evaluation_weights()
        try:
            yield
        finally:
            self.restore(raw)


def learner(optimizer: Optimizer) -> TrainingProtocol:
    """Return the optimizer itself if it is a Learner, else the answers for one that knows nothing of this."""
    return optimizer if isinstance(optimizer, TrainingProtocol) else TrainingProtocol()


class BaseOptimizer(Optimizer, TrainingProtocol, ABC):
    """Base of optimizers that hand out other weights than those that the next step starts from.

    Averaging learners serve the average over all steps, full-batch methods the evaluated weights of lowest
    objective. A subclass gives `_evaluation_weights(p)`.
    """

    @abstractmethod
    def _evaluation_weights(self, p: Tensor, group: dict[str, Any]) -> Tensor | None:
        """-> what to look at in place of the raw weights p, in their dtype; None where that is p itself."""

    @torch.no_grad()
    def use_evaluation_weights(self) -> dict[Tensor, Tensor]:
        """Put the served weights into the parameters; return what `restore` needs to put the raw weights back."""
        raw = {}
        for group in self.param_groups:
            for p in group["params"]:
                served = self._evaluation_weights(p, group)
                if served is not None:
                    raw[p] = p.clone()
                    p.copy_(served)
        return raw

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load a state, whose tensors keep the dtype they had: torch would cast them to that of the parameter."""
        super().load_state_dict({**state_dict, "state": {}})
        for group, saved in zip(self.param_groups, state_dict["param_groups"], strict=True):
            for p, key in zip(group["params"], saved["params"], strict=True):
                if key in state_dict["state"]:
                    state = state_dict["state"][key].items()
                    self.state[p] = {name: value.to(p.device, copy=True) for name, value in state}
