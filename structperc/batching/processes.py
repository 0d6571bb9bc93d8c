"""The processes of one training: which of them this is, and sums and lists over all of them."""

import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
from torch import Tensor

from structperc.optim.averaged import listed_places
from structperc.ragged import boundaries

NONE, SPARSE, DENSE = range(3)  # kinds of gradients
_alone = False


class Share(NamedTuple):
    """The number of this process and the number of all processes: each does its own share of the work."""

    process: int  # 0 <= process < processes
    processes: int


WHOLE = Share(0, 1)


def share() -> Share:
    """Return the place of this process among those that train together, or process 0 of 1 where it trains alone."""
    together = not _alone and dist.is_available() and dist.is_initialized()
    return Share(dist.get_rank(), dist.get_world_size()) if together else WHOLE


@contextmanager
def alone() -> Iterator[None]:
    """Let every process do all of the work by itself within the block, as if there were no others."""
    global _alone
    before, _alone = _alone, True
    try:
        yield
    finally:
        _alone = before


def leave() -> None:
    """Leave the group of processes, if there is one.

    A process that ends while it is in one is aborted now and then, by threads of gloo that it has left, and Lightning
    then ends all the others, whatever they are writing.
    """
    if dist.is_available() and dist.is_initialized():
        dist.destroy_process_group()


def summed(x: Tensor) -> Tensor:
    """Return the sum of a tensor over all processes, without gradients; it has the same shape in each of them."""
    if share().processes == 1:
        return x
    x = x.detach().clone()
    dist.all_reduce(x)
    return x


def concatenated(x: Tensor) -> tuple[Tensor, list[int]]:
    """Return the tensors (n,) of all P processes, one process after the other, and P + 1 places where each begins.

    n may differ; at the last place all end. Nothing is copied before it is sent, and what comes in lies at its place.
    """
    own, processes = share()
    if processes == 1:
        return x, [0, len(x)]
    sizes = x.new_zeros(processes, dtype=torch.int64)
    sizes[own] = len(x)
    dist.all_reduce(sizes)
    found = x.new_empty(int(sizes.sum()))
    parts = found.split(sizes.tolist())
    parts[own].copy_(x)
    others = [other for other in range(processes) if other != own]
    sent = [dist.P2POp(dist.isend, x, other) for other in others if len(x)]
    received = [dist.P2POp(dist.irecv, parts[other], other) for other in others if len(parts[other])]
    for message in dist.batch_isend_irecv([*sent, *received]) if sent or received else ():
        message.wait()
    return found, boundaries(sizes).tolist()


def gathered(parts: Iterable[Any]) -> list[Any]:
    """Return what all processes have as one list, process after process; items are anything that can be pickled."""
    own = list(parts)
    if share().processes == 1:
        return own
    lists: list[Any] = [None] * share().processes
    dist.all_gather_object(lists, own)
    return [part for one in lists for part in one]


def sum_gradients(parameters: Iterable[Tensor]) -> None:
    """Replace each gradient by its sum over all processes; a parameter without a gradient in any process keeps None.

    Losses are sums over sequences, so these are the gradients that one process would have found for all of them. The
    entries of sparse gradients are listed one process after the other, since no backend but gloo adds them up.
    """
    if share().processes == 1:
        return
    learned = [p for p in parameters if p.requires_grad]
    for p, kind in zip(learned, _kinds(learned), strict=True):
        if kind == DENSE:
            p.grad = summed(_dense(p))
        elif kind == SPARSE:
            p.grad = _listed(p)


def _kinds(parameters: list[Tensor]) -> list[int]:
    """What the gradients of all processes add up to."""
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
    places, values = (concatenated(x)[0] for x in (empty if p.grad is None else _flat_entries(p.grad)))
    index = torch.stack(torch.unravel_index(places, p.shape))
    return torch.sparse_coo_tensor(index, values, p.shape, check_invariants=False)


def _flat_entries(grad: Tensor) -> tuple[Tensor, Tensor]:
    """Places in the flattened parameter and values, both (n,), of a sparse gradient."""
    width = math.prod(grad.shape[grad.sparse_dim() :])
    places = listed_places(grad).unsqueeze(1) * width + torch.arange(width, device=grad.device)
    return places.flatten(), grad._values().flatten()
