"""Random lattices of every kind, in batches small enough to enumerate, and operators on tensors of a CPU."""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_map_only

from structperc.ops.registration import implementation

KINDS = ("dense", "stationary", "impossible", "poisoned", "by token", "by sequence", "integers", "equal", "expanded")
SIZES = ((3, 4), (2, 2), (4, 3), (2, 6), (5, 3), (1, 4), (1, 1))  # (L, T); 7 sizes and 9 kinds make 63 pairs
BATCH = 24

Tables = tuple[Tensor, Tensor, Tensor]


def batches(count: int, dtype: torch.dtype = torch.float64, seed: int = 0) -> Iterator[Tables]:
    """Yield batches of `BATCH` lattices, `count` lattices in all: kinds, sizes and lengths take turns."""
    made, turn = 0, 0
    while made < count:
        L, T = SIZES[turn % len(SIZES)]
        yield make(KINDS[turn % len(KINDS)], L, T, dtype, seed + turn)
        made, turn = made + BATCH, turn + 1


def make(kind: str, L: int, T: int, dtype: torch.dtype, seed: int) -> Tables:
    """Return unary, edge, lengths of one kind; lengths run from 0 to T, and one sequence at least is empty."""
    torch.manual_seed(seed)
    shape = {"stationary": (1, 1), "by sequence": (BATCH, 1), "by token": (1, T)}.get(kind, (BATCH, T))
    unary, edge = torch.randn(BATCH, T, L).to(dtype) * 2, torch.randn(*shape, L, L).to(dtype) * 2
    lengths = torch.randint(0, T + 1, (BATCH,))
    lengths[:2] = torch.tensor([0, T])
    if kind == "integers":
        unary, edge = unary.round(), edge.round()
    if kind == "equal":
        unary, edge = torch.zeros_like(unary), torch.zeros_like(edge)
    if kind == "impossible":
        unary, edge = unary.round(), edge.round()
        unary[torch.rand(unary.shape) < 0.25] = -torch.inf
        edge[torch.rand(edge.shape) < 0.25] = -torch.inf
    if kind == "poisoned":
        padding = torch.arange(T) >= lengths.unsqueeze(1)
        unary[padding], edge[padding], edge[:, 0] = torch.nan, torch.tensor([torch.nan, torch.inf])[seed % 2], torch.nan
    if kind == "expanded":
        unary, edge = unary.mT.contiguous().mT, edge[:1, :1].mT.expand(BATCH, T, L, L)
    return unary, edge, lengths


def operator(device: str, name: str) -> Callable[..., Any]:
    """An implementation, for tensors on a CPU: where there is a GPU they are sent to it, and results are fetched."""
    found = implementation(device, name)
    if device != "cuda" or not torch.cuda.is_available():
        return found
    return lambda *args: tree_map_only(Tensor, Tensor.cpu, found(*tree_map_only(Tensor, _sent, args)))


def _sent(x: Tensor) -> Tensor:
    return x.cuda()
