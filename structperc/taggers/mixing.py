"""Learners of several processes, whose weights are mixed some times in each epoch."""

import math
from collections.abc import Callable, Iterator
from functools import partial
from itertools import zip_longest
from typing import Any

import numpy as np
import pytorch_lightning as pl
import torch

from structperc.batching.exchange import Exchange
from structperc.batching.parts import even_parts
from structperc.batching.processes import share
from structperc.online import Learned, SequenceLearner, joined
from structperc.optim import AveragedOptimizer
from structperc.structures import Batch

OFTEN = 4  # mixtures for each process in the first epoch


class MixedLearner(SequenceLearner):
    """Learns this process's share of mini-batches, and goes on with a mixture of the weights of all processes.

    A weight of the mixture is the mean of what it is in the processes that have moved it: one that a single process
    has moved keeps the whole of its change. Where two have moved it half of each change counts, and so on.

    Iterative parameter mixing (McDonald, Hall & Mann 2010, "Distributed training strategies for the structured
    perceptron", Fig. 3) takes one mean of all weights after each epoch. Of rare features, which most are, it halves
    every step with two processes; their bound on mistakes (Theorem 3) is for such mixtures, with the same shares for
    all weights, and does not cover this one. Means by feature are those of Agarwal, Chapelle, Dudik & Langford 2014
    ("A reliable effective terascale linear learning system", Algorithm 2), whose shares are sums of squared gradients.

    The average over the steps stays that of a single sequence of weights: step s after a mixture is made in all
    processes at once, moves a weight by the mean of the changes that count there, and a process that has no more
    sequences stands still. As the lazy sums are linear in the changes, they are mixed as the weights are.

    Only what has moved is sent: place, weight and sum, 16 bytes each. Processes have the same weights, sums and steps
    once they are mixed, bit for bit.

    Args:
        learner: learns the share of this process.
        optimizer: of all weights that it moves; their marks are read here.
        due: how often to mix within the mini-batch of now, of all processes alike.
    """

    def __init__(self, learner: SequenceLearner, optimizer: AveragedOptimizer, due: Callable[[], int]) -> None:
        from structperc.online.mixtures import entry_type  # which needs a compiler

        self.learner, self.optimizer, self.due = learner, optimizer, due
        self.mixed = True  # since the last mini-batch
        optimizer.mark_moved()
        weights = [some for _, _, some, _ in self._tables()]
        self.exchange = Exchange(entry_type(np.result_type(*weights), sum(map(len, weights))))

    def learn(self, batch: Batch) -> Learned:
        """Learn the sequences of a batch in their order, and mix as often as that is due, at even distances.

        Where mixtures are more than sequences, nothing is learned before the last ones.
        """
        times, learned = self.due(), []
        parts = even_parts(batch, min(max(1, times), len(batch.lengths)))
        for part, _ in zip_longest(parts, range(times)):
            if part is not None:
                learned.append(self.learner.learn(part))
            self.mixed = False
            if times:
                self.mix()
        return joined(learned)

    @torch.no_grad()
    def mix(self) -> None:
        """Give all processes the same weights, sums and steps, unless they have them; it waits for all processes."""
        from structperc.online.mixtures import mix, write_moved  # which need a compiler

        if self.mixed:
            return
        self.mixed = True
        group, tables = self.optimizer.param_groups[0], list(self._tables())
        found = self.exchange(partial(write_moved, tables), group["steps"])
        group["steps"] = int(found.numbers.max())
        for some in tables:
            mix(found.entries, found.begins, found.ends, share().process, *some)

    def _tables(self) -> Iterator[tuple[np.ndarray, int, np.ndarray, np.ndarray]]:
        """Of each parameter marks, number of weights in those before it, weights, and sums if there are averages."""
        kept, start = self.optimizer.param_groups[0]["average"], 0
        for p, marks in self.optimizer.moved.items():
            sums = self.optimizer.sums(p) if kept else p.new_empty(0, dtype=torch.float64)
            yield marks.view(-1).numpy(), start, p.detach().view(-1).numpy(), sums.view(-1).numpy()
            start += p.numel()


class Mixing(pl.Callback):
    """Lets processes mix also where weights are looked at or saved between mixtures, or training ends there.

    The tagger adds this callback by itself.
    """

    def on_validation_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Mix before the weights are judged."""
        _mix(pl_module)

    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Mix what is not mixed yet, where an epoch ends before its last mini-batch."""
        _mix(pl_module)

    def on_save_checkpoint(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, checkpoint: dict[str, Any]
    ) -> None:
        """Mix before weights and optimizers are written; all processes save together."""
        if _mix(pl_module):  # the weights in the checkpoint are those of the tagger, what optimizers count is a copy
            checkpoint["optimizer_states"] = list(map(trainer.strategy.optimizer_state, trainer.optimizers))


def _mix(tagger: pl.LightningModule) -> bool:
    """Mix what is not mixed yet, and return whether there was something."""
    online = getattr(tagger, "online", None)
    if not isinstance(online, MixedLearner) or online.mixed:
        return False
    online.mix()
    return True


def mixtures_due(trainer: pl.Trainer) -> int:
    """Return how often processes mix within the mini-batch of now, at last after the last one of an epoch.

    In the first epochs, when much changes, they mix more often than in later ones: 4 P times in the first, half as
    often in the second, a third in the third, and so on down to once, for P processes. The more of them share what is
    learned between two mixtures, the less of it there should be.
    """
    batches, now = trainer.num_training_batches, trainer.fit_loop.batch_idx
    if math.isinf(batches):
        return 1
    times = math.ceil(OFTEN * share().processes / (1 + trainer.current_epoch))
    return int((now + 1) * times // batches - now * times // batches)
