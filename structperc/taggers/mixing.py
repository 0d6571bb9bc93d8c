"""Learners of several processes, whose weights are mixed after each mini-batch."""

from collections.abc import Iterator

import numpy as np
import torch

from structperc.batching.processes import concatenated, greatest, share
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

    Only what has moved is sent: place, weight and sum, 16 bytes each. Processes have the same weights, sums and steps
    after each mini-batch, bit for bit.

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
        from structperc.online.mixtures import entry_type, listed, mix  # which need a compiler

        group = self.optimizer.param_groups[0]
        group["steps"] = greatest(group["steps"])
        tables = list(self._tables())
        weights = [some for _, _, some, _ in tables]
        kind = entry_type(np.result_type(*weights), sum(map(len, weights)))
        own = listed(tables, kind)
        found, begins = concatenated(torch.from_numpy(own.view(np.uint8)))
        entries, bounds = found.numpy().view(kind), np.array(begins) // kind.itemsize
        heads, ends = bounds[:-1].copy(), bounds[1:]
        for some in tables:
            mix(entries, heads, ends, share().process, *some)

    def _tables(self) -> Iterator[tuple[np.ndarray, int, np.ndarray, np.ndarray]]:
        """Of each parameter marks, number of weights in those before it, weights, and sums if there are averages."""
        kept, start = self.optimizer.param_groups[0]["average"], 0
        for p, marks in self.optimizer.moved.items():
            sums = self.optimizer.sums(p) if kept else p.new_empty(0, dtype=torch.float64)
            yield marks.view(-1).numpy(), start, p.detach().view(-1).numpy(), sums.view(-1).numpy()
            start += p.numel()
