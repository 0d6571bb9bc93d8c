"""What training asks of an optimizer beyond torch's contract, and the answers for one that does not know of it."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor
from torch.optim import Optimizer


class Learner:
    """Base of the optimizers here; the answers below are those of torch's own, which `learner` gives for them.

    A step belongs to each mini-batch, training goes on for as long as the trainer says, and the weights to look at
    are those to learn with. A subclass changes what differs.
    """

    @property
    def full_batch(self) -> bool:
        """Whether a step needs objective and gradient over the whole corpus."""
        return False

    @property
    def finishes(self) -> bool:
        """Whether the optimizer will come to an end by itself, at which `finished` says why."""
        return False

    @property
    def finished(self) -> str | None:
        """The reason why there is nothing left to do, in plain words; None while there is.

        Further steps change nothing.
        """
        return None

    @property
    def news(self) -> str | None:
        """One line about the last step; None before the first, and of optimizers that tell nothing."""
        return None

    @property
    def advice(self) -> str:
        """The advice what to change when training diverges."""
        return "set a smaller lr of the optimizer"

    def begin_epoch(self, epoch: int) -> None:
        """Take note of the epoch, from 0, that begins; this is called on the optimizer itself, not on a wrapper."""

    def swap_in(self) -> dict[Tensor, Tensor]:
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
        raw = self.swap_in()
        try:
            yield
        finally:
            self.restore(raw)


def learner(optimizer: Optimizer) -> Learner:
    """Return the optimizer itself if it is a Learner, else the answers for one that knows nothing of this."""
    return optimizer if isinstance(optimizer, Learner) else Learner()
