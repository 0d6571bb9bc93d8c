"""The order in which sequences are seen: mini-batches of similar length, reproducible from (seed, epoch), resumable."""

import math
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np
import pytorch_lightning as pl
from torch.utils.data import DataLoader, DistributedSampler

from structperc.datamodules.distributed import WHOLE, Share
from structperc.errors import InputError

POOL = 16  # batches per pool: sequences are sorted by length only within a pool, so order stays random
TOKENS = 2**16  # per mini-batch of sequences that are learned one after the other


class LengthBatchSampler(DistributedSampler[list[int]]):
    """Lists of up to `batch_size` row numbers, shuffled in each epoch, or sorted by length.

    The order is a function of (seed, epoch), so that a resumed run sees what an uninterrupted one would have seen.
    Dynamic programs cost max(length) dependent steps per batch: the rows of a batch come from a pool of 16 batches
    sorted by length.

    Of several processes each gets its share of every batch of processes x batch_size rows, so that together they see
    what one process with batches of that size does: every row once, in the same number of batches each. Shares have
    about as many tokens each, since processes wait for the slowest. Where the last batch is too small for all
    processes, those before it are larger.

    With `by_length` false, the order does not depend on the size of batches: for learners of one sequence at a time.

    The base class tells Lightning that rows are distributed already.

    Raises:
        InputError: batch_size < 1; fewer rows than processes.
    """

    def __init__(
        self,
        lengths: Sequence[int] | np.ndarray,
        batch_size: int,
        shuffle: bool,
        seed: int = 0,
        share: Share = WHOLE,
        by_length: bool = True,
    ) -> None:
        if batch_size < 1:
            raise InputError(f"data.batch_size must be >= 1, got {batch_size}")
        if 0 < len(lengths) < share.processes:
            raise InputError(f"data: {len(lengths)} sequences for {share.processes} processes; set trainer.devices: 1")
        self.lengths, self.share = np.asarray(lengths), share
        self.batch_size, self.shuffle, self.seed, self.epoch = batch_size, shuffle, seed, 0
        self.by_length = by_length and batch_size * share.processes > 1

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch; the trainer calls this at the start of each one."""
        self.epoch = epoch

    def __len__(self) -> int:
        return len(self._cut(np.arange(len(self.lengths)), self._size))

    def __iter__(self) -> Iterator[list[int]]:
        yield from (self._own(batch).tolist() for batch in self._batches())

    def _own(self, batch: np.ndarray) -> np.ndarray:
        """This process's rows of a batch in their order: assigned from the longest on, forth and back."""
        process, processes = self.share
        turn, place = np.divmod(np.arange(len(batch)), processes)
        dealt_to = np.where(turn % 2, processes - 1 - place, place)
        from_the_longest = np.argsort(-self.lengths[batch], kind="stable")
        return batch[np.sort(from_the_longest[dealt_to == process])]

    @property
    def _size(self) -> int:
        """Rows of a batch of all processes."""
        return self.batch_size * self.share.processes

    def _batches(self) -> list[np.ndarray]:
        if not self.shuffle:
            return self._cut(np.argsort(-self.lengths, kind="stable"), self._size)
        random = np.random.default_rng([self.seed, self.epoch])
        order = random.permutation(len(self.lengths))
        if not self.by_length:
            return self._cut(order, self._size)
        pools = [pool[np.argsort(self.lengths[pool], kind="stable")] for pool in self._cut(order, self._size * POOL)]
        batches = [batch for pool in pools for batch in self._cut(pool, self._size)]
        return [batches[i] for i in random.permutation(len(batches))]

    def _cut(self, order: np.ndarray, size: int) -> list[np.ndarray]:
        """Pieces of `size` rows; a last one with fewer rows than processes goes to the one before."""
        starts = range(0, len(order), size)
        enough = [start for start in starts if start == 0 or len(order) - start >= self.share.processes]
        return np.split(order, enough[1:]) if enough else []


def sequential_batch_size(lengths: Sequence[int] | np.ndarray, processes: int) -> int:
    """Return the default batch size of each process for sequences that are learned one after the other.

    A mini-batch has about 65,000 tokens, so that the overhead of the trainer does not count. The number of mini-batches
    in an epoch is a multiple of the number of processes.
    """
    steps = processes * max(1, round(int(np.sum(lengths)) / (TOKENS * processes**2)))
    return max(1, math.ceil(len(lengths) / (steps * processes)))


STATE = ("epoch", "seen", "steps")  # steps: mini-batches of an epoch


class ResumableSampler(DistributedSampler[Any]):
    """The order of another sampler, without the items of one epoch that an interrupted run has seen.

    Raises:
        InputError: when an epoch is continued that had another number of items.
    """

    def __init__(self, order: DistributedSampler[Any]) -> None:
        self.order, self.epoch = order, 0
        self.seen = 0  # items of this epoch
        self.before = dict.fromkeys(STATE, 0)  # of the interrupted run

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch; the trainer calls this at the start of each one."""
        self.order.set_epoch(epoch)
        self.epoch, self.seen = epoch, 0

    def __len__(self) -> int:
        return len(self.order)

    @property
    def steps(self) -> int:
        """The number of items of an epoch."""
        return len(self)

    def __iter__(self) -> Iterator[Any]:
        first = self.before["seen"] if self.before["epoch"] == self.epoch else 0
        if first and self.before["steps"] != self.steps:
            raise InputError(
                f"ckpt_path: it was written within an epoch of {self.before['steps']} mini-batches, there are "
                f"{self.steps} now; set data.batch_size and trainer.devices as they were"
            )
        for number, item in enumerate(islice(self.order, first, None), first + 1):
            self.seen = number
            yield item


class ResumableLoader(DataLoader[Any]):
    """A loader with a `ResumableSampler`, whose state the trainer keeps in its checkpoints."""

    def state_dict(self) -> dict[str, int]:
        """Return the current epoch, how many of its mini-batches were seen, and how many there are."""
        return {name: getattr(self.sampler, name) for name in STATE}

    def load_state_dict(self, state: dict[str, int]) -> None:
        """Skip the mini-batches that were seen before. Raises InputError for an invalid state."""
        known = isinstance(state, dict) and all(type(state.get(name)) is int and state[name] >= 0 for name in STATE)
        if not known:
            raise InputError("checkpoint: the number of mini-batches seen is missing; use another one, or train again")
        assert isinstance(self.sampler, ResumableSampler)
        self.sampler.before = state


def batches_seen(trainer: pl.Trainer) -> int | None:
    """Return how many mini-batches of its first epoch a resumed run has seen; None if it begins with a whole epoch.

    If a checkpoint was written after a mini-batch rather than after an epoch, this is a number, perhaps 0, and the
    trainer does not call `on_train_epoch_start` for the epoch.
    """
    if not trainer.fit_loop.restarted_mid_epoch:
        return None
    return int((trainer.fit_loop.batch_idx + 1) % trainer.num_training_batches)


def mark_unfinished_epoch(checkpoint: dict[str, Any], trainer: pl.Trainer) -> None:
    """Mark the epoch of a checkpoint as unfinished if it ended, by steps or time, before its last mini-batch.

    The trainer counts such an epoch as finished, and a resumed run would begin the next one within it.
    """
    loop = checkpoint["loops"]["fit_loop"]
    seen = loop["epoch_loop.batch_progress"]["current"]["completed"]
    if 0 < seen < trainer.num_training_batches:
        for counts in loop["epoch_progress"].values():
            counts["processed"] = counts["completed"] = counts["started"] - 1
