"""Mini-batches of training that go on where a checkpoint was written within an epoch."""

from collections.abc import Iterator
from itertools import islice
from typing import Any

import pytorch_lightning as pl
from torch.utils.data import DataLoader, DistributedSampler

from structperc.errors import InputError
from structperc.structures import Batch

STATE = ("epoch", "seen", "steps")  # steps: mini-batches of an epoch


class ResumableOrder(DistributedSampler[Any]):
    """The order of another sampler, without the items of one epoch that an interrupted run has seen.

    It is a DistributedSampler by name alone, by which trainers know that rows are shared out already.

    Raises:
        InputError: when an epoch goes on that had another number of items.
    """

    def __init__(self, order: DistributedSampler[Any]) -> None:
        self.order, self.epoch = order, 0
        self.seen = 0  # items of this epoch
        self.before = dict.fromkeys(STATE, 0)  # an epoch, and what was seen of it

    def set_epoch(self, epoch: int) -> None:
        """Choose the order of an epoch; the trainer calls this at the start of each one."""
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


class ResumableLoader(DataLoader[Batch]):
    """Mini-batches in a `ResumableOrder`; the trainer keeps in its checkpoints how many of an epoch were seen."""

    def state_dict(self) -> dict[str, int]:
        """Return the epoch of now, how many of its mini-batches were seen, and how many there are."""
        return {name: getattr(self.sampler, name) for name in STATE}

    def load_state_dict(self, state: dict[str, int]) -> None:
        """Leave out what was seen when the state was kept. Raises InputError for what is no such state."""
        known = isinstance(state, dict) and all(type(state.get(name)) is int and state[name] >= 0 for name in STATE)
        if not known:
            raise InputError(
                "the checkpoint does not say which mini-batches were seen: name another one, or train anew"
            )
        assert isinstance(self.sampler, ResumableOrder)
        self.sampler.before = state


def seen_before(trainer: pl.Trainer) -> int | None:
    """Return how many mini-batches of its first epoch a resumed run has seen before; None where it has its start.

    It is not None, but may be 0, where a checkpoint was written after a mini-batch rather than after an epoch: for the
    epoch of now the trainer does not call `on_train_epoch_start` then.
    """
    if not trainer.fit_loop.restarted_mid_epoch:
        return None
    return int((trainer.fit_loop.batch_idx + 1) % trainer.num_training_batches)


def keep_unfinished(checkpoint: dict[str, Any], trainer: pl.Trainer) -> None:
    """Note in a checkpoint that an epoch goes on which ended, by steps or time, before its last mini-batch.

    The trainer counts such an epoch among those that are over, and a resumed run would begin the next one within it.
    """
    loop = checkpoint["loops"]["fit_loop"]
    seen = loop["epoch_loop.batch_progress"]["current"]["completed"]
    if 0 < seen < trainer.num_training_batches:
        for counts in loop["epoch_progress"].values():
            counts["processed"] = counts["completed"] = counts["started"] - 1
