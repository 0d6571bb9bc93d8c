"""Learners of several processes, whose weights are mixed after each mini-batch."""

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from structperc.batching.processes import concatenated, greatest
from structperc.online import Learned, SequenceLearner
from structperc.optim import AveragedOptimizer
from structperc.structures import Batch


class MixedLearner(SequenceLearner):
    """Learns this process's share of each mini-batch, then goes on with the mixture of the weights of all processes.

    A weight of the mixture is the mean of what it is in the processes that have moved it: one that a single process
    has moved keeps the whole of its change. Where two have moved it half of each change counts, and so on.

    Iterative parameter mixing (McDonald, Hall & Mann 2010, "Distributed training strategies for the structured
    perceptron", Fig. 3) takes one mean of all weights after each epoch. Of rare features, which most are, it halves
    every step with two processes; their bound on mistakes (Theorem 3) is for such mixtures, with the same shares for
    all weights, and does not cover this one. Means by feature are those of Agarwal, Chapelle, Dudik & Langford 2014
    ("A reliable effective terascale linear learning system", Algorithm 2), whose shares are sums of squared gradients.

    The average over the steps stays that of a single sequence of weights: step s of a mini-batch is made in all
    processes at once, moves a weight by the mean of the changes that count there, and a process that has no more
    sequences stands still. As the lazy sums are linear in the changes, they are mixed as the weights are.

    Only what has moved is sent: place, weight and sum, 24 bytes each. Processes have the same weights, sums and steps
    after each mini-batch, bit for bit. There may be 255 of them.

    Args:
        learner: learns the share of this process.
        optimizer: of all weights that it moves; their marks are read here.
    """

    def __init__(self, learner: SequenceLearner, optimizer: AveragedOptimizer) -> None:
        self.learner, self.optimizer = learner, optimizer
        optimizer.mark_moved()

    def learn(self, batch: Batch) -> Learned:
        """Learn the sequences of a batch in their order, and mix."""
        learned = self.learner.learn(batch)
        self._mix()
        return learned

    @torch.no_grad()
    def _mix(self) -> None:
        group = self.optimizer.param_groups[0]
        group["steps"] = greatest(group["steps"])
        self._take(concatenated(torch.cat([self._moved(start, p) for start, p in self._parameters()], 1)))

    def _parameters(self) -> Iterator[tuple[int, Tensor]]:
        """The parameters, each after the number of weights in those before it."""
        start = 0
        for p in self.optimizer.moved:
            yield start, p
            start += p.numel()

    def _tables(self, p: Tensor) -> list[Tensor]:
        """What is mixed of a parameter, flat: weights and, where there are averages, their sums."""
        kept = self.optimizer.param_groups[0]["average"]
        return [table.view(-1) for table in (p, *([self.optimizer.sums(p)] if kept else []))]

    def _moved(self, start: int, p: Tensor) -> Tensor:
        """(1 + tables, n) float64: the place of each moved weight, counted over all parameters, and its values."""
        marks = self.optimizer.moved[p].view(-1).numpy()
        places = torch.from_numpy(np.flatnonzero(marks.view(bool)))
        return torch.stack([(places + start).double(), *(table[places].double() for table in self._tables(p))])

    def _take(self, entries: Tensor) -> None:
        """Put the mixture into the tables, and clear the marks. entries: what `_moved` says, of all processes."""
        for start, p in self._parameters():
            inside = (entries[0] >= start) & (entries[0] < start + p.numel())
            places, *values = entries[:, inside].unbind()
            places, movers = places.long() - start, self.optimizer.moved[p].view(-1)
            movers.zero_().index_add_(0, places, torch.ones(len(places), dtype=movers.dtype))
            for table, value in zip(self._tables(p), values, strict=True):
                table.index_fill_(0, places, 0).index_add_(0, places, (value / movers[places]).to(table.dtype))
            movers.zero_()
