"""Optimizers that serve other weights than those they learn with, such as averages: one protocol for all of them."""

from abc import ABC, abstractmethod
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from structperc.optim.learner import Learner


class ServedWeights(Optimizer, Learner, ABC):
    """Base of optimizers that hand out other weights than those that the next step starts from.

    Averaging learners serve the average over all steps, full-batch methods the evaluated weights of lowest
    objective. A subclass gives `_served(p)`.
    """

    @abstractmethod
    def _served(self, p: Tensor, group: dict[str, Any]) -> Tensor | None:
        """-> what to look at in place of the raw weights p, in their dtype; None where that is p itself."""

    @torch.no_grad()
    def swap_in(self) -> dict[Tensor, Tensor]:
        """Put the served weights into the parameters; return what `restore` needs to put the raw weights back."""
        raw = {}
        for group in self.param_groups:
            for p in group["params"]:
                served = self._served(p, group)
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
