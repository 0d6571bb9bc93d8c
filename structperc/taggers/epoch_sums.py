"""What is added up over the mini-batches of an epoch, and over all processes."""

import math

import torch
from torch import Tensor

from structperc.batching.processes import summed


class EpochSums:
    """Losses, penalties and counts of an epoch.

    Counts are those of this process until `meet`. So are losses and penalties where processes learn apart; else they
    are those of all processes after each mini-batch.

    Args:
        device: of all tensors.
        apart: whether processes learn apart.
    """

    def __init__(self, device: torch.device, apart: bool = False) -> None:
        self.apart = apart
        self.losses = torch.zeros(2, dtype=torch.float64, device=device)  # of sequences; penalties
        self.counts = torch.zeros(3, dtype=torch.int64, device=device)  # updates; wrong tokens; tokens
        self.met = False

    def add(self, own: Tensor) -> None:
        """Add the losses and penalties (2,) float64 of this process's part of a mini-batch."""
        self.losses = self.losses + (own if self.apart else summed(own))

    def count(self, updates: Tensor | int, wrong: Tensor | int = 0, tokens: Tensor | int = 0) -> None:
        """Add updates, tokens whose label in the best candidate is not gold's, and tokens."""
        for i, more in enumerate((updates, wrong, tokens)):
            self.counts[i] += more

    def meet(self) -> None:
        """Add up what processes have by themselves, once: after the last mini-batch.

        It is one message, as each makes all of them wait.
        """
        if self.met:
            return
        self.met = True
        if self.apart:
            met = summed(torch.cat([self.losses, self.counts]))
            self.losses, self.counts = met[:2], met[2:].long()
        else:
            self.counts = summed(self.counts)

    @property
    def updates(self) -> int:
        """The number of updates."""
        return int(self.counts[0])

    @property
    def error(self) -> float:
        """The share of tokens that the best candidate got wrong; NaN without any."""
        _, wrong, tokens = self.counts.tolist()
        return wrong / tokens if tokens else math.nan
