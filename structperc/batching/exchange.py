"""Lists of all processes, exchanged in one message each."""

import os
import time
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
import torch
import torch.distributed as dist

from structperc.batching.processes import share

ROOM = 4096  # entries of a first message
AWAKE = 0.05  # seconds
_give_way: Callable[[], None] = getattr(os, "sched_yield", partial(time.sleep, 0))


class Exchanged(NamedTuple):
    """The lists of P processes, of which each lies at places begins[p] <= i < ends[p] of the entries."""

    entries: np.ndarray  # good until the next exchange
    begins: np.ndarray  # (P,) int64
    ends: np.ndarray  # (P,) int64
    numbers: np.ndarray  # (P,) int64, one that each process has sent along


class Exchange:
    """Gives all processes the lists of all.

    Lengths are not sent before the lists, since a message of any length makes processes wait for each other: one has
    room for a list that is somewhat longer than the longest of late. Where a list is longer than that, all processes
    send again, with more room. `concatenated` takes tensors of any device, and two rounds.

    Args:
        kind: dtype of an entry, which has at least 16 bytes.
    """

    def __init__(self, kind: np.dtype) -> None:
        self.kind, self.room = kind, ROOM
        self._message, self._found = np.empty(0, kind), np.empty(0, kind)

    def __call__(self, write: Callable[[np.ndarray], int], number: int) -> Exchanged:
        """Return the lists of all processes; all call this together.

        write: puts a list into the entries (room,) that it is given, as much of it as there is room for, and returns
        how long the list is. It is asked again where a list of any process was too long.
        """
        processes = share().processes
        while True:
            message, found = self._buffers(processes)
            _heading(message[:1])[:] = write(message[1:]), number
            _gather(found, message)
            begins = np.arange(processes) * len(message)
            lengths, numbers = np.array([_heading(found[begin : begin + 1]) for begin in begins]).T
            fits, longest = lengths.max() <= self.room, int(lengths.max())
            self.room = max(longest + longest // 8, self.room - self.room // 8)
            if fits:
                return Exchanged(found, 1 + begins, 1 + begins + lengths, numbers)

    def _buffers(self, processes: int) -> tuple[np.ndarray, np.ndarray]:
        """Room for the message of this process and for those of all: a heading in the place of an entry, then entries.

        It is kept from one exchange to the next, as new memory is slower at first.
        """
        size = 1 + self.room
        if len(self._message) < size:
            self._message, self._found = (np.empty(n * size, self.kind) for n in (1, processes))
        return self._message[:size], self._found[: processes * size]


def _gather(found: np.ndarray, message: np.ndarray) -> None:
    """Fill found (P * n,) with the messages (n,) of all processes."""
    if share().processes == 1:
        found[:] = message
        return
    parts = torch.from_numpy(found.view(np.uint8)).split(message.nbytes)
    work = dist.all_gather(list(parts), torch.from_numpy(message.view(np.uint8)), async_op=True)
    assert work is not None
    _wait_awake(work)


def _wait_awake(work: dist.Work) -> None:
    """Wait for a message of other processes without sleep, unless it is long in coming.

    A processor that has slept may be awake some milliseconds later: longer than it takes to send a million weights.
    """
    end = time.perf_counter() + AWAKE
    while not work.is_completed() and time.perf_counter() < end:
        _give_way()
    work.wait()


def _heading(entry: np.ndarray) -> np.ndarray:
    """The first two int64, length and number, in the place of one entry (1,), not copied."""
    return entry.view(np.uint8)[:16].view(np.int64)
