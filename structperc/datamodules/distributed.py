"""Distributed training: the number of this process, and sums and lists over all processes."""

import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
from torch import Tensor

from structperc.optim.averaged_perceptron import flat_indices
from structperc.torch_internals import sparse_values

NONE, SPARSE, DENSE = range(3)  # kinds of gradients
_single = False  # within `single_process`


class ProcessGroup(NamedTuple):
    """The number of this process in its group, and the size of the group.

    Args:
        rank: Number of this process, 0 <= rank < size.
        size: Number of processes.

    Example:
        >>> from structperc.datamodules.sampler import LengthBatchSampler
        >>> group = ProcessGroup(rank=1, size=2)
        >>> list(LengthBatchSampler([5, 4, 3, 2], batch_size=1, shuffle=False, group=group))  # the rows of this process
        [[1], [3]]
    """

    rank: int
    size: int


SINGLE_PROCESS = ProcessGroup(0, 1)


def process_group() -> ProcessGroup:
    """Return the rank and the size of the group of this process; 0 and 1 without a group."""
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


def all_reduce_max(x: Tensor) -> Tensor:
    """Return the maximum of a tensor, of the same shape in each process, over all processes."""
    if process_group().size == 1:
        return x
    x = x.detach().clone()
    dist.all_reduce(x, dist.ReduceOp.MAX)
    return x


def all_gather_tensors(x: Tensor) -> list[Tensor]:
    """Return the tensor (n,) of each process; n may differ."""
    rank, processes = process_group()
    if processes == 1:
        return [x]
    sizes = x.new_zeros(processes, dtype=torch.int64)
    sizes[rank] = len(x)
    dist.all_reduce(sizes)
    padded = x.new_zeros(int(sizes.max()))
    padded[: len(x)] = x
    found = [torch.empty_like(padded) for _ in range(processes)]
    dist.all_gather(found, padded)
    return [one[:size] for one, size in zip(found, sizes.tolist(), strict=True)]


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
    densest = all_reduce_max(torch.tensor(kinds, device=trained[0].device))
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
    index = torch.stack(torch.unravel_index(torch.cat(all_gather_tensors(places)), p.shape))
    return torch.sparse_coo_tensor(index, torch.cat(all_gather_tensors(values)), p.shape, check_invariants=False)
