"""Order of sequences: mini-batches of similar length, a function of (seed, epoch), that can be resumed."""

import math
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
from torch.utils.data import DataLoader, DistributedSampler, SequentialSampler

from structperc.datamodules.distributed import SINGLE_PROCESS, ProcessGroup
from structperc.errors import InputError
from structperc.ragged import padded_groups

if TYPE_CHECKING:
    import pytorch_lightning as pl

POOL = 16  # batches per pool, in which sequences are sorted by length
TOKENS = 2**14  # per mini-batch for learning sequence by sequence, some hundred sentences
BATCHES = 16  # at least, unless a mini-batch would have fewer sequences than this


class OwnOrder(DistributedSampler[Any], SequentialSampler):
    """Base class of samplers that a trainer leaves as they are.

    It would distribute the rows of other samplers over processes, and replace other ones for `overfit_batches`.
    """


class LengthBatchSampler(OwnOrder):
    """A sampler of mini-batches of similar length, as lists of row numbers, reproducible from (seed, epoch).

    The order is a function of (seed, epoch), so that a resumed run is reproducible. Dynamic programs take max(length)
    steps per batch, so the rows of a batch come from a pool of 16 batches sorted by length.

    Each of several processes gets its share of every batch of processes x batch_size rows, with about the same number
    of tokens. All processes have the same number of batches: if the last batch is too small, the one before is larger.

    Args:
        lengths: Number of tokens of each row.
        batch_size: Number of rows of a batch in each process.
        shuffle: Draw a new order in each epoch; otherwise the longest rows come first.
        seed: Seed of the orders.
        group: Number of this process and of all processes.
        by_length: Sort rows by length within a pool. With False the order of the rows does not depend on the batch
            size, for learning sequence by sequence.

    Raises:
        InputError: `batch_size` is below 1, or there are fewer rows than processes.

    Example:
        >>> list(LengthBatchSampler([3, 9, 4, 8, 1], batch_size=2, shuffle=False))
        [[1, 3], [2, 0], [4]]
        >>> sampler = LengthBatchSampler([3, 9, 4, 8, 1], batch_size=2, shuffle=True, seed=1)
        >>> sampler.set_epoch(3)  # its order does not depend on the epochs before
        >>> sorted(row for batch in sampler for row in batch)
        [0, 1, 2, 3, 4]
    """

    def __init__(
        self,
        lengths: Sequence[int] | np.ndarray,
        batch_size: int,
        shuffle: bool,
        seed: int = 0,
        group: ProcessGroup = SINGLE_PROCESS,
        by_length: bool = True,
    ) -> None:
        if batch_size < 1:
            raise InputError(f"data.batch_size must be >= 1, got {batch_size}")
        if 0 < len(lengths) < group.size:
            raise InputError(f"data: {len(lengths)} sequences for {group.size} processes; set trainer.devices: 1")
        self.lengths, self.group = np.asarray(lengths), group
        self.batch_size, self.shuffle, self.seed, self.epoch = batch_size, shuffle, seed, 0
        self.by_length = by_length and batch_size * group.size > 1

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch. Called by the trainer at the start of each epoch."""
        self.epoch = epoch

    def __len__(self) -> int:
        return len(self._cut(np.arange(len(self.lengths)), self._size))

    def __iter__(self) -> Iterator[Any]:
        yield from (self._rows_of_process(batch).tolist() for batch in self._batches())

    def _rows_of_process(self, batch: np.ndarray) -> np.ndarray:
        """Return the rows of this process in their order: rows are assigned by length, back and forth."""
        rank, size = self.group
        if size == 1:
            return batch
        turn, place = np.divmod(np.arange(len(batch)), size)
        assigned = np.where(turn % 2, size - 1 - place, place)
        by_length = np.argsort(-self.lengths[batch], kind="stable")
        return batch[np.sort(by_length[assigned == rank])]

    @property
    def _size(self) -> int:
        """Number of rows of a batch of all processes."""
        return self.batch_size * self.group.size

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
        """Split into pieces of `size` rows; a last piece with fewer rows than processes joins the one before."""
        starts = range(0, len(order), size)
        enough = [start for start in starts if start == 0 or len(order) - start >= self.group.size]
        return np.split(order, enough[1:]) if enough else []


class TokenBatchSampler(LengthBatchSampler):
    """A sampler of mini-batches with a limited number of tokens, reproducible from (seed, epoch).

    A batch has sequences of similar length, and its padded size, sequences x longest sequence, is at most the limit in
    each process. A longer sequence is a batch of its own. All epochs have the same number of batches: for their
    assignment to batches, lengths are rounded up by at most 1/8, and sequences of equal rounded length are exchanged.

    All processes have the same number of batches: if the last batch is too small, the one before is larger.

    Args:
        lengths: Number of tokens of each row.
        batch_tokens: Maximal padded size of a batch in each process.
        shuffle: Draw a new order in each epoch; otherwise the longest rows come first.
        seed: Seed of the orders.
        group: Number of this process and of all processes.

    Raises:
        InputError: `batch_tokens` is below 1, or there are fewer rows than processes.
    """

    def __init__(
        self,
        lengths: Sequence[int] | np.ndarray,
        batch_tokens: int,
        shuffle: bool,
        seed: int = 0,
        group: ProcessGroup = SINGLE_PROCESS,
    ) -> None:
        if batch_tokens < 1:
            raise InputError(f"data.batch_tokens must be >= 1, got {batch_tokens}")
        super().__init__(lengths, 1, shuffle, seed, group)
        self.batch_tokens = batch_tokens
        self.sizes = _round_up(self.lengths) if shuffle else self.lengths

    def __len__(self) -> int:
        return len(self._cut_tokens(np.argsort(-self.sizes, kind="stable")))

    def _batches(self) -> list[np.ndarray]:
        if not self.shuffle:
            return self._cut_tokens(np.argsort(-self.sizes, kind="stable"))
        random = np.random.default_rng([self.seed, self.epoch])
        order = random.permutation(len(self.sizes))
        batches = self._cut_tokens(order[np.argsort(-self.sizes[order], kind="stable")])
        return [batches[i] for i in random.permutation(len(batches))]

    def _cut_tokens(self, order: np.ndarray) -> list[np.ndarray]:
        """Split rows, longest first, into batches; a last one with fewer rows than processes joins the one before."""
        starts = [start for start, _ in padded_groups(self.sizes[order], self.batch_tokens, self.group.size)]
        enough = [start for start in starts if start == 0 or len(order) - start >= self.group.size]
        return np.split(order, enough[1:]) if enough else []


def _round_up(lengths: np.ndarray) -> np.ndarray:
    """Return lengths (n,), rounded up by at most 1/8 such that eight values remain between powers of two."""
    steps = 2 ** np.maximum(np.log2(np.maximum(lengths, 1)).astype(np.int64) - 3, 0)
    return -(-lengths // steps) * steps


def sequential_batch_size(lengths: Sequence[int] | np.ndarray, processes: int) -> int:
    """Return the default batch size per process for learning sequence by sequence: at most about 16,000 tokens.

    An epoch has at least 16 mini-batches, so that a trainer can be limited to a few of them, unless they would have
    fewer than 16 sequences. Each takes the time of a trainer's step, about a millisecond. The number of mini-batches is
    a multiple of the number of processes.
    """
    n = len(lengths) / processes
    batches = max(int(np.sum(lengths)) / (TOKENS * processes), min(BATCHES, n / BATCHES))
    steps = processes * max(1, round(batches / processes))
    return max(1, math.ceil(n / steps))


STATE = ("epoch", "seen", "steps")  # steps: mini-batches of an epoch


class ResumableSampler(OwnOrder):
    """The order of another sampler, without the items of an interrupted epoch that were seen.

    Args:
        order: The other sampler.
        repeat: Use the order of the first epoch in all epochs.

    Raises:
        InputError: the interrupted epoch had another number of items.
    """

    def __init__(self, order: DistributedSampler[Any], repeat: bool = False) -> None:
        self.order, self.repeat, self.epoch = order, repeat, 0
        self.seen = 0  # items of this epoch
        self.before = dict.fromkeys(STATE, 0)  # the state of the interrupted run

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch. Called by the trainer at the start of each epoch."""
        self.order.set_epoch(0 if self.repeat else epoch)
        self.epoch, self.seen = epoch, 0

    def __len__(self) -> int:
        return len(self.order)

    def __iter__(self) -> Iterator[Any]:
        first = self.before["seen"] if self.before["epoch"] == self.epoch else 0
        if first and self.before["steps"] != len(self):
            raise InputError(
                f"ckpt_path: the interrupted epoch had {self.before['steps']} mini-batches, now it has {len(self)}; "
                "set data.batch_size, data.batch_tokens and trainer.devices as before"
            )
        for number, item in enumerate(islice(self.order, first, None), first + 1):
            self.seen = number
            yield item


class ResumableLoader(DataLoader[Any]):
    """A loader with a `ResumableSampler`, whose state is saved in checkpoints."""

    def state_dict(self) -> dict[str, int]:
        """Return the current epoch, the number of its mini-batches that were seen, and their total number."""
        sampler = self.sampler
        assert isinstance(sampler, ResumableSampler)
        return {"epoch": sampler.epoch, "seen": sampler.seen, "steps": len(sampler)}

    def load_state_dict(self, state: dict[str, int]) -> None:
        """Skip the mini-batches that were seen before. Raises InputError for an invalid state."""
        known = isinstance(state, dict) and all(type(state.get(name)) is int and state[name] >= 0 for name in STATE)
        if not known:
            raise InputError("checkpoint: missing number of mini-batches seen; use another checkpoint, or train again")
        assert isinstance(self.sampler, ResumableSampler)
        self.sampler.before = state


def unchanged(batch: Any) -> Any:
    """Return a mini-batch, whose tensors need no conversion."""
    return batch


def batches_seen(trainer: "pl.Trainer") -> int | None:
    """Return the number of mini-batches that a resumed run has seen in its first epoch; None for a whole epoch.

    For a checkpoint written after a mini-batch this is a number, possibly 0, and the trainer does not call
    `on_train_epoch_start` for the epoch.
    """
    if not trainer.fit_loop.restarted_mid_epoch:
        return None
    return int((trainer.fit_loop.batch_idx + 1) % trainer.num_training_batches)


def mark_unfinished_epoch(checkpoint: dict[str, Any], trainer: "pl.Trainer") -> None:
    """Mark the epoch of a checkpoint as unfinished if training stopped before its last mini-batch.

    Lightning counts such an epoch as finished, so that a resumed run would begin the next one.
    """
    loop = checkpoint["loops"]["fit_loop"]
    seen = loop["epoch_loop.batch_progress"]["current"]["completed"]
    if 0 < seen < trainer.num_training_batches:
        for counts in loop["epoch_progress"].values():
            counts["processed"] = counts["completed"] = counts["started"] - 1
