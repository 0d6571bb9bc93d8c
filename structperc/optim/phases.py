"""An optimizer that is made of two, one after the other."""

from collections.abc import Callable, Iterable
from typing import Any

from torch import Tensor
from torch.optim import Optimizer

from structperc.errors import InputError
from structperc.optim.learner import learner
from structperc.optim.served import ServedWeights


class Phases(ServedWeights):
    """The first optimizer for some epochs, then the second, which starts from the weights that the first serves.

    Suzuki et al. 2006, §5.2, for MCE: ten iterations of GPD, then QuickProp. `begin_epoch` chooses which one is
    `active`; groups, state, steps, `full_batch`, `finished`, `news` and what is served are those of the active one.
    A full-batch optimizer that is finished before its epochs are over makes way for the second early.

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
        super().__init__(copies(given), {})
        self.epochs = epochs
        self.optimizers = [make(copies(given)) for make in (first, then)]
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
    def finishes(self) -> bool:
        """Whether the second optimizer will come to an end by itself."""
        return learner(self.optimizers[-1]).finishes

    @property
    def finished(self) -> str | None:
        """The reason why the second optimizer has nothing left to do; None while there is something to do."""
        return learner(self.active).finished if self.phase else None

    @property
    def news(self) -> str | None:
        """One line about the last step; None of optimizers that give none."""
        return learner(self.active).news

    @property
    def advice(self) -> str:
        """The advice of the active optimizer what to change when training diverges."""
        return learner(self.active).advice

    def begin_epoch(self, epoch: int) -> None:
        """Choose the active optimizer for the epoch, from 0, that begins.

        Called on the optimizer itself, not on a wrapper.
        """
        over = epoch >= self.epochs or learner(self.active).finished is not None
        if self.phase == 0 and over:
            learner(self.active).swap_in()
            self.active.state.clear()  # of no more use
            self._activate(1)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Make a step with the active optimizer."""
        return self.active.step(closure)

    def _served(self, p: Tensor, group: dict[str, Any]) -> Tensor | None:
        return self.active._served(p, group) if isinstance(self.active, ServedWeights) else None

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


def copies(params: list[Any]) -> list[Any]:
    """Return groups as new dicts, since optimizers write their options into those they get."""
    return [dict(p) if isinstance(p, dict) else p for p in params]
