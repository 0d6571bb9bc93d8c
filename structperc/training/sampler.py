"""The order in which sequences are seen: mini-batches of similar length, reproducible from (seed, epoch)."""

from collections.abc import Iterator, Sequence

import numpy as np
from torch.utils.data import Sampler

from structperc.errors import InputError

POOL = 16  # batches per pool: sequences are sorted by length only within a pool, so order stays random


class LengthBatches(Sampler[list[int]]):
    """Lists of up to `batch_size` row numbers. Shuffled anew each epoch, or sorted by length when not.

    The order is a function of (seed, epoch) alone, so that a resumed run goes on with the order that an
    uninterrupted one would have had. Dynamic programs cost max(length) dependent steps per batch: rows of a
    batch come from a pool of 16 batches sorted by length.
    """

    def __init__(self, lengths: Sequence[int] | np.ndarray, batch_size: int, shuffle: bool, seed: int = 0) -> None:
        if batch_size < 1:
            raise InputError(f"data.batch_size must be >= 1, got {batch_size}")
        self.lengths = np.asarray(lengths)
        self.batch_size, self.shuffle, self.seed, self.epoch = batch_size, shuffle, seed, 0

    def set_epoch(self, epoch: int) -> None:
        """Called by the trainer at the start of every epoch."""
        self.epoch = epoch

    def __len__(self) -> int:
        return -(-len(self.lengths) // self.batch_size)

    def __iter__(self) -> Iterator[list[int]]:
        yield from (batch.tolist() for batch in self._batches())

    def _batches(self) -> list[np.ndarray]:
        if not self.shuffle:
            return self._cut(np.argsort(-self.lengths, kind="stable"))
        random = np.random.default_rng([self.seed, self.epoch])
        order = random.permutation(len(self.lengths))
        if self.batch_size == 1:
            return self._cut(order)
        size = self.batch_size * POOL
        pools = [order[i : i + size] for i in range(0, len(order), size)]
        batches = [b for pool in pools for b in self._cut(pool[np.argsort(self.lengths[pool], kind="stable")])]
        return [batches[i] for i in random.permutation(len(batches))]

    def _cut(self, order: np.ndarray) -> list[np.ndarray]:
        return [order[i : i + self.batch_size] for i in range(0, len(order), self.batch_size)]
