"""Processes that train together: which of them this is, and sums and lists over all of them."""

import math
import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor

from structperc.optim.perceptron import flat_indices
from structperc.torch_internals import sparse_entries

NONE, SPARSE, DENSE = range(3)  # kinds of gradients
_alone = False


class Share(NamedTuple):
    """The number of this process and the number of all processes, each of which does its share of the work."""

    process: int  # 0 <= process < processes
    processes: int


WHOLE = Share(0, 1)


def share() -> Share:
    """Return the number of this process among those that train together; process 0 of 1 if there is one."""
    together = not _alone and dist.is_available() and dist.is_initialized()
    return Share(dist.get_rank(), dist.get_world_size()) if together else WHOLE


@contextmanager
def single_process() -> Iterator[None]:
    """Let every process do all of the work within the block, as if there were no others."""
    global _alone
    before, _alone = _alone, True
    try:
        yield
    finally:
        _alone = before


def leave_process_group() -> None:
    """Leave the group of processes, if there is one.

    A process that ends within a group is sometimes aborted by threads of gloo, and Lightning then ends all others,
    whatever they are writing.
    """
    if dist.is_available() and dist.is_initialized():
        dist.destroy_process_group()


def all_reduce_sum(x: Tensor) -> Tensor:
    """Return the sum of a tensor over all processes, without gradients; it has the same shape in each of them."""
    if share().processes == 1:
        return x
    x = x.detach().clone()
    dist.all_reduce(x)
    return x


def all_gather_tensors(x: Tensor) -> Tensor:
    """Return the tensors (n,) of all processes, one process after the other; n may differ."""
    own, processes = share()
    if processes == 1:
        return x
    sizes = x.new_zeros(processes, dtype=torch.int64)
    sizes[own] = len(x)
    dist.all_reduce(sizes)
    padded = x.new_zeros(int(sizes.max()))
    padded[: len(x)] = x
    found = [torch.empty_like(padded) for _ in range(processes)]
    dist.all_gather(found, padded)
    return torch.cat([one[:size] for one, size in zip(found, sizes.tolist(), strict=True)])


def all_gather_objects(parts: Iterable[Any]) -> list[Any]:
    """Return what all processes have as one list, process after process; items are anything that can be pickled."""
    own = list(parts)
    if share().processes == 1:
        return own
    lists: list[Any] = [None] * share().processes
    dist.all_gather_object(lists, own)
    return [part for one in lists for part in one]


def all_reduce_gradients(parameters: Iterable[Tensor]) -> None:
    """Replace each gradient by its sum over all processes; a parameter without a gradient in any process keeps None.

    Losses are sums over sequences, so these are the gradients that one process would have found for all of them. The
    entries of sparse gradients are listed one process after the other, since no backend but gloo adds them up.
    """
    if share().processes == 1:
        return
    fit_features = [p for p in parameters if p.requires_grad]
    for p, kind in zip(fit_features, _kinds(fit_features), strict=True):
        if kind == DENSE:
            p.grad = all_reduce_sum(_dense(p))
        elif kind == SPARSE:
            p.grad = _listed(p)


def _kinds(parameters: list[Tensor]) -> list[int]:
    """Sum of the gradients of all processes."""
    kinds = [NONE if p.grad is None else SPARSE if p.grad.is_sparse else DENSE for p in parameters]
    if not kinds:
        return kinds
    found = torch.tensor(kinds, device=parameters[0].device)
    dist.all_reduce(found, dist.ReduceOp.MAX)
    return found.tolist()


def _dense(p: Tensor) -> Tensor:
    if p.grad is None:
        return torch.zeros_like(p)
    return p.grad.to_dense() if p.grad.is_sparse else p.grad


def _listed(p: Tensor) -> Tensor:
    """The sparse gradients of all processes as one, uncoalesced, over single weights."""
    empty = torch.zeros(0, dtype=torch.int64, device=p.device), p.new_zeros(0)
    places, values = (all_gather_tensors(x) for x in (empty if p.grad is None else _flat_entries(p.grad)))
    index = torch.stack(torch.unravel_index(places, p.shape))
    return torch.sparse_coo_tensor(index, values, p.shape, check_invariants=False)


def _flat_entries(grad: Tensor) -> tuple[Tensor, Tensor]:
    """Places in the flattened parameter and values, both (n,), of a sparse gradient."""
    width = math.prod(grad.shape[grad.sparse_dim() :])
    places = flat_indices(grad).unsqueeze(1) * width + torch.arange(width, device=grad.device)
    return places.flatten(), sparse_entries(grad)[1].flatten()


ROOM = 4096  # entries of a first message
AWAKE = 0.05  # seconds
_give_way: Callable[[], None] = getattr(os, "sched_yield", partial(time.sleep, 0))


class GatheredLists(NamedTuple):
    """The lists of P processes: that of process p is entries[begins[p]:ends[p]]."""

    entries: np.ndarray  # valid until the next call
    begins: np.ndarray  # (P,) int64
    ends: np.ndarray  # (P,) int64
    numbers: np.ndarray  # (P,) int64, one from each process


class AllGatherLists:
    """Gives all processes the lists of all, in one message of fixed size each.

    Lengths are not sent before the lists, since each message makes processes wait for each other: a message has room
    for a list somewhat longer than the longest recent one. If a list is longer, all processes send again with more
    room. `all_gather_tensors` takes tensors of any device, and two rounds.

    Args:
        kind: dtype of an entry, at least 16 bytes.
    """

    def __init__(self, kind: np.dtype) -> None:
        self.kind, self.room = kind, ROOM
        self._message, self._found = np.empty(0, kind), np.empty(0, kind)

    def __call__(self, write: Callable[[np.ndarray], int], number: int) -> GatheredLists:
        """Return the lists of all processes; all call this together.

        write: writes as much of a list as fits into the entries (room,), and returns the length of the list. It is
        called again if the list of any process was too long.
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
                return GatheredLists(found, 1 + begins, 1 + begins + lengths, numbers)

    def _buffers(self, processes: int) -> tuple[np.ndarray, np.ndarray]:
        """Buffers for the message of this process and for those of all: a heading of one entry, then entries.

        They are kept for the next call, as new memory is slower at first.
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
    """Wait for a message of other processes, at first without sleeping.

    Waking up may take milliseconds, longer than sending a million weights.
    """
    end = time.perf_counter() + AWAKE
    while not work.is_completed() and time.perf_counter() < end:
        _give_way()
    work.wait()


def _heading(entry: np.ndarray) -> np.ndarray:
    """The first two int64, length and number, in the place of one entry (1,), not copied."""
    return entry.view(np.uint8)[:16].view(np.int64)
