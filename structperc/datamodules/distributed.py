"""Distributed training: the number of this process, and sums and lists over all processes."""

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
from structperc.torch_internals import sparse_values

NONE, SPARSE, DENSE = range(3)  # kinds of gradients
_single = False  # within `single_process`


class ProcessGroup(NamedTuple):
    """Number of this process in its group, and size of the group."""

    rank: int  # 0 <= rank < size
    size: int


SINGLE_PROCESS = ProcessGroup(0, 1)


def process_group() -> ProcessGroup:
    """Return rank and size of the group of this process; 0 and 1 without a group."""
    together = not _single and dist.is_available() and dist.is_initialized()
    return ProcessGroup(dist.get_rank(), dist.get_world_size()) if together else SINGLE_PROCESS


@contextmanager
def single_process() -> Iterator[None]:
    """Let `process_group` return process 0 of 1 within the block."""
    global _single
    before, _single = _single, True
    try:
        yield
    finally:
        _single = before


def leave_process_group() -> None:
    """Leave the group of processes, if there is one.

    A process that ends within a group is sometimes aborted by threads of gloo, and Lightning then kills all others.
    """
    if dist.is_available() and dist.is_initialized():
        dist.destroy_process_group()


def all_reduce_sum(x: Tensor) -> Tensor:
    """Return the sum of a tensor, of the same shape in each process, over all processes, without gradients."""
    if process_group().size == 1:
        return x
    x = x.detach().clone()
    dist.all_reduce(x)
    return x


def all_gather_tensors(x: Tensor) -> Tensor:
    """Return the concatenated tensors (n,) of all processes; n may differ."""
    rank, processes = process_group()
    if processes == 1:
        return x
    sizes = x.new_zeros(processes, dtype=torch.int64)
    sizes[rank] = len(x)
    dist.all_reduce(sizes)
    padded = x.new_zeros(int(sizes.max()))
    padded[: len(x)] = x
    found = [torch.empty_like(padded) for _ in range(processes)]
    dist.all_gather(found, padded)
    return torch.cat([one[:size] for one, size in zip(found, sizes.tolist(), strict=True)])


def all_gather_objects(parts: Iterable[Any]) -> list[Any]:
    """Return the concatenated lists of all processes; items must be picklable."""
    own = list(parts)
    if process_group().size == 1:
        return own
    lists: list[Any] = [None] * process_group().size
    dist.all_gather_object(lists, own)
    return [part for one in lists for part in one]


def all_reduce_gradients(parameters: Iterable[Tensor]) -> None:
    """Replace each gradient by its sum over all processes; None if no process has a gradient of a parameter.

    Losses are sums over sequences, so the result is the gradient of a single process. Sparse gradients are
    concatenated, since only gloo can add them.
    """
    if process_group().size == 1:
        return
    trained = [p for p in parameters if p.requires_grad]
    if not trained:
        return
    kinds = [NONE if p.grad is None else SPARSE if p.grad.is_sparse else DENSE for p in trained]
    densest = torch.tensor(kinds, device=trained[0].device)
    dist.all_reduce(densest, dist.ReduceOp.MAX)
    for p, kind in zip(trained, densest.tolist(), strict=True):
        if kind == DENSE:
            p.grad = all_reduce_sum(torch.zeros_like(p) if p.grad is None else p.grad.to_dense())
        elif kind == SPARSE:
            p.grad = _gather_sparse_gradient(p)


def _gather_sparse_gradient(p: Tensor) -> Tensor:
    """Return the sparse gradients of all processes as one, uncoalesced, over single weights."""
    places, values = torch.zeros(0, dtype=torch.int64, device=p.device), p.new_zeros(0)
    if p.grad is not None:
        width = math.prod(p.shape[p.grad.sparse_dim() :])
        places = (flat_indices(p.grad).unsqueeze(1) * width + torch.arange(width, device=p.device)).flatten()
        values = sparse_values(p.grad).flatten()
    index = torch.stack(torch.unravel_index(all_gather_tensors(places), p.shape))
    return torch.sparse_coo_tensor(index, all_gather_tensors(values), p.shape, check_invariants=False)


FIRST_SIZE = 4096  # entries of a first message
BUSY_WAIT = 0.05  # seconds
_yield_processor: Callable[[], None] = getattr(os, "sched_yield", partial(time.sleep, 0))


class GatheredLists(NamedTuple):
    """The lists of P processes: that of process p is entries[begins[p]:ends[p]]."""

    entries: np.ndarray  # valid until the next call
    begins: np.ndarray  # (P,) int64
    ends: np.ndarray  # (P,) int64
    numbers: np.ndarray  # (P,) int64, one from each process


class AllGatherLists:
    """Gathers lists of different lengths from all processes, with one message of fixed size each.

    A message can contain a list somewhat longer than the longest recent one; if a list is longer, all processes send
    larger messages. `all_gather_tensors`, for tensors of any device, needs two rounds, for lengths and entries.

    Args:
        kind: dtype of an entry, at least 16 bytes.
    """

    def __init__(self, kind: np.dtype) -> None:
        self.kind, self.size = kind, FIRST_SIZE
        self._message, self._found = np.empty(0, kind), np.empty(0, kind)

    def __call__(self, write: Callable[[np.ndarray], int], number: int) -> GatheredLists:
        """Return the lists of all processes, which must all call this.

        write: writes as much of a list as fits into entries (n,), and returns the length of the list. It is called
        again if the list of any process was too long.
        """
        processes = process_group().size
        while True:
            size = 1 + self.size  # a heading of one entry, then entries
            if len(self._message) < size:  # buffers are reused, since new memory is slower
                self._message, self._found = (np.empty(n * size, self.kind) for n in (1, processes))
            message, found = self._message[:size], self._found[: processes * size]
            _heading(message[:1])[:] = write(message[1:]), number
            _gather(found, message)
            begins = np.arange(processes) * len(message)
            lengths, numbers = np.array([_heading(found[begin : begin + 1]) for begin in begins]).T
            fits, longest = lengths.max() <= self.size, int(lengths.max())
            self.size = max(longest + longest // 8, self.size - self.size // 8)
            if fits:
                return GatheredLists(found, 1 + begins, 1 + begins + lengths, numbers)


def _gather(found: np.ndarray, message: np.ndarray) -> None:
    """Fill found (P * n,) with the messages (n,) of all processes."""
    if process_group().size == 1:
        found[:] = message
        return
    parts = torch.from_numpy(found.view(np.uint8)).split(message.nbytes)
    work = dist.all_gather(list(parts), torch.from_numpy(message.view(np.uint8)), async_op=True)
    assert work is not None
    end = time.perf_counter() + BUSY_WAIT  # waking up may take milliseconds, longer than sending a million weights
    while not work.is_completed() and time.perf_counter() < end:
        _yield_processor()
    work.wait()


def _heading(entry: np.ndarray) -> np.ndarray:
    """Return a view of one entry (1,) as two int64, length and number."""
    return entry.view(np.uint8)[:16].view(np.int64)
