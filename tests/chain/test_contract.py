"""What holds for all searches and sums over lattices."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from structperc.chain import (
    KBest,
    entropy,
    exportable_viterbi,
    locally_normalised,
    log_partition,
    marginals,
    max_marginals,
    path_score,
    viterbi,
)
from structperc.chain.marginals import edge_marginals
from structperc.chain.viterbi import Viterbi
from structperc.structures import Lattice
from tests.oracle import tables

SEARCHES: dict[str, Callable[[Lattice], Any]] = {
    "viterbi": Viterbi(),
    "kbest": KBest(9),
    "exportable_viterbi": exportable_viterbi,
}
MEASURES: dict[str, Callable[[Lattice], Any]] = {
    **SEARCHES,
    "path_score": lambda lattice: path_score(lattice, viterbi(lattice)[1]),
    **{each.__name__: each for each in (log_partition, marginals, edge_marginals, entropy, max_marginals)},
    "locally_normalised": locally_normalised,
}
each_measure = pytest.mark.parametrize("name", MEASURES)


def results(name: str, lattice: Lattice) -> list[Tensor]:
    found = MEASURES[name](lattice)
    return [found] if isinstance(found, Tensor) else [x for x in found if x is not None]


def copied(lattice: Lattice, dtype: torch.dtype = torch.float64) -> Lattice:
    """A copy that records gradients."""
    unary, edge = (x.to(dtype).detach().clone().requires_grad_() for x in (lattice.unary, lattice.edge))
    return Lattice(unary, edge, lattice.lengths)


@each_measure
def test_half_precision_is_upcast(name: str, documents: Lattice) -> None:
    dtype = torch.bfloat16
    half = copied(documents, dtype)
    found = results(name, half)
    for x, y in zip(found, results(name, copied(half)), strict=True):
        if x.is_floating_point():
            assert x.dtype == torch.float32
            torch.testing.assert_close(x, y.float(), rtol=1e-5, atol=2e-3)
        elif name != "kbest":
            assert x.equal(y)
    if found[0].requires_grad:
        grads = torch.autograd.grad(found[0].nan_to_num(0, 0, 0).sum(), (half.unary, half.edge))
        assert [grad.dtype for grad in grads] == [dtype] * 2


@each_measure
def test_lattice_is_not_changed(name: str, documents: Lattice) -> None:
    lattice = copied(documents)
    found = results(name, lattice)
    assert any(x.requires_grad for x in found) == (name not in SEARCHES)
    assert all(x.equal(y) for x, y in zip(tables(lattice), tables(documents), strict=True))


@each_measure
def test_cuda_equals_cpu(name: str, documents: Lattice, cuda: torch.device) -> None:
    host, device = copied(documents), copied(Lattice(*(x.to(cuda) for x in tables(documents))))
    found, expected = results(name, device), results(name, host)
    torch.testing.assert_close([x.cpu() for x in found], expected)
    if expected[0].requires_grad:
        both = (found, device), (expected, host)
        sums = (torch.autograd.grad(x[0].nan_to_num(0, 0, 0).sum(), (y.unary, y.edge)) for x, y in both)
        for x, y in zip(*sums, strict=True):
            torch.testing.assert_close(x.cpu(), y)
