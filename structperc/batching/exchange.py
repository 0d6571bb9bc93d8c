"""Lists of all processes, exchanged in one message each."""

from typing import NamedTuple

import numpy as np
import torch
import torch.distributed as dist

from structperc.batching.processes import share

ROOM = 4096  # entries of a first message


class Exchanged(NamedTuple):
    """The lists of P processes, of which each lies at places begins[p] <= i < ends[p] of the entries."""

    entries: np.ndarray
    begins: np.ndarray  # (P,) int64
    ends: np.ndarray  # (P,) int64
    numbers: np.ndarray  # (P,) int64, one that each process has sent along


class Exchange:
    """Gives all processes the lists of all.

    A message is waited for by a process that sleeps, and is awake some milliseconds later, so that lengths are not
    sent before the lists: a message has room for a list that is somewhat longer than the longest of late. Where a list
    is longer than that, all processes send again, with more room. `concatenated` takes tensors of any device, and two
    rounds.
    """

    def __init__(self) -> None:
        self.room = ROOM

    def __call__(self, entries: np.ndarray, number: int) -> Exchanged:
        """Return the lists of all processes; all call this together, with entries (n,) of one dtype.

        n may differ. An entry has at least 16 bytes.
        """
        processes = share().processes
        if processes == 1:
            return Exchanged(entries, np.array([0]), np.array([len(entries)]), np.array([number]))
        while True:
            found = self._round(entries, number, processes)
            begins = np.arange(processes) * (1 + self.room)
            lengths, numbers = np.array([_heading(found[begin : begin + 1]) for begin in begins]).T
            fits, longest = lengths.max() <= self.room, int(lengths.max())
            self.room = max(longest + longest // 8, self.room - self.room // 8)
            if fits:
                return Exchanged(found, 1 + begins, 1 + begins + lengths, numbers)

    def _round(self, entries: np.ndarray, number: int, processes: int) -> np.ndarray:
        """The messages of all processes: a heading of length and number in the place of an entry, then entries."""
        message, found = (np.empty(n * (1 + self.room), entries.dtype) for n in (1, processes))
        _heading(message[:1])[:] = len(entries), number
        sent = entries[: self.room]
        message[1 : 1 + len(sent)] = sent
        dist.all_gather_into_tensor(_bytes(found), _bytes(message))
        return found


def _heading(entry: np.ndarray) -> np.ndarray:
    """The first two int64 in the place of one entry (1,), not copied."""
    return entry.view(np.uint8)[:16].view(np.int64)


def _bytes(entries: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(entries.view(np.uint8))
