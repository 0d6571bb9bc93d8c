"""Checks and conversions of lattices."""

from collections.abc import Callable

import pytest
import torch

from structperc.chain import (
    compact,
    kbest,
    locally_normalised,
    log_partition,
    marginals,
    max_marginals,
    path_score,
    sample,
    scatter,
    segment_marginals,
    viterbi,
)
from structperc.chain.lattices import validate_lattice
from structperc.chain.marginals import edge_marginals
from structperc.chain.segments import Segments
from structperc.errors import InputError
from structperc.structures import Lattice

UNARY, EDGE, LENGTHS = torch.zeros(2, 5, 3), torch.zeros(2, 5, 3, 3), torch.tensor([5, 2])
MEASURES: list[Callable[[Lattice], object]] = [
    viterbi, log_partition, marginals, edge_marginals, max_marginals, locally_normalised,
    lambda lattice: kbest(lattice, 2), lambda lattice: sample(lattice, 2),
    lambda lattice: path_score(lattice, torch.zeros(2, 5, dtype=torch.int64)),
]  # fmt: skip
MISSHAPEN = {
    "edge.* got (2, 3, 3, 3)": Lattice(UNARY, EDGE[:, :3], LENGTHS),
    "edge.* got (1, 1, 4, 4)": Lattice(UNARY, torch.zeros(1, 1, 4, 4), LENGTHS),
    "edge.* got (3, 3)": Lattice(UNARY, torch.zeros(3, 3), LENGTHS),
    "lengths.* got (1,)": Lattice(UNARY, EDGE, LENGTHS[:1]),
    "lengths.* got torch.float32": Lattice(UNARY, EDGE, LENGTHS.float()),
    "lengths: sequence 0 of 2 has 6 tokens": Lattice(UNARY, EDGE, LENGTHS + 1),
    "unary.* got (2, 5)": Lattice(UNARY[:, :, 0], EDGE, LENGTHS),
    "unary.* got (2, 5, 0)": Lattice(UNARY[:, :, :0], EDGE[..., :0, :0], LENGTHS),
}


@pytest.mark.parametrize("found", MISSHAPEN)
def test_wrong_tensors_are_named(found: str) -> None:
    message = found.replace("(", r"\(").replace(")", r"\)")
    for measure in MEASURES:
        with pytest.raises(InputError, match=message):
            measure(MISSHAPEN[found])


@pytest.mark.parametrize("shape", [(2, 4), (1, 5), (2,), (2, 3, 4)])
def test_misshapen_labels(shape: tuple[int, ...]) -> None:
    labels = torch.zeros(shape, dtype=torch.int64)
    with pytest.raises(InputError, match=r"^labels: .*\(2, 5\).*\(2, K, 5\)"):
        path_score(Lattice(UNARY, EDGE, LENGTHS), labels)
    with pytest.raises(InputError, match=r"^labels: "):
        segment_marginals(Lattice(UNARY, EDGE, LENGTHS), labels, Segments(*(torch.tensor([n]) for n in (0, 0, 1))))


def test_gradient_of_expanded_leaf() -> None:
    torch.manual_seed(0)
    unary, matrix = torch.randn(2, 5, 3), torch.randn(1, 1, 3, 3)
    leaf, whole = matrix.expand(2, 5, 3, 3).detach(), matrix.expand(2, 5, 3, 3).clone()
    found = [
        torch.autograd.grad(log_partition(Lattice(unary, x.requires_grad_(), LENGTHS)).sum(), x)[0]
        for x in (leaf, whole)
    ]
    torch.testing.assert_close(*found)
    matrix.requires_grad_()
    (small,) = torch.autograd.grad(log_partition(Lattice(unary, matrix.expand(2, 5, 3, 3), LENGTHS)).sum(), matrix)
    torch.testing.assert_close(small, found[0].sum((0, 1), keepdim=True))
    with torch.no_grad():
        assert validate_lattice(Lattice(unary, matrix.expand(2, 5, 3, 3), LENGTHS)).edge.shape == (1, 1, 3, 3)


def test_one_precision_for_both_tables() -> None:
    lattice = Lattice(UNARY.half(), EDGE.double(), LENGTHS)
    assert log_partition(lattice).dtype == torch.float64
    assert locally_normalised(Lattice(UNARY, EDGE.double(), LENGTHS)).unary.dtype == torch.float64


def test_impossible_segment() -> None:
    edge = torch.zeros(1, 1, 2, 2)
    edge[0, 0, 1] = -torch.inf
    lattice = Lattice(torch.zeros(1, 3, 2), edge, torch.tensor([3]))
    segment = Segments(*(torch.tensor([n]) for n in (0, 0, 3)))
    assert segment_marginals(lattice, torch.tensor([[0, 1, 0]]), segment).tolist() == [0]


MASK = torch.tensor([[0, 1, 1, 0, 1], [0, 0, 0, 0, 0], [0, 0, 0, 1, 1], [1, 1, 0, 1, 1]]).bool()


def test_moves_masked_tokens_to_the_left() -> None:
    values = torch.arange(20).view(4, 5)
    compacted, lengths = compact(values, MASK)
    assert compacted.tolist() == [[1, 2, 4, 0], [0, 0, 0, 0], [13, 14, 0, 0], [15, 16, 18, 19]]
    assert lengths.tolist() == [3, 0, 2, 4]


def test_scatter_undoes_compact() -> None:
    values = torch.randn(4, 5, 2, 3)
    compacted, _ = compact(values, MASK)
    back = scatter(compacted, MASK, fill=-7)
    assert back[MASK].equal(values[MASK])
    assert (back[~MASK] == -7).all()


def test_gradients_and_poison() -> None:
    values = torch.randn(4, 5).masked_fill(~MASK, torch.nan).requires_grad_()
    compacted, _ = compact(values, MASK)
    compacted.sum().backward()
    assert values.grad.equal(MASK.float())


def test_nothing_masked_in() -> None:
    compacted, lengths = compact(torch.randn(2, 3, 4), torch.zeros(2, 3, dtype=torch.bool))
    assert compacted.shape == (2, 0, 4)
    assert lengths.tolist() == [0, 0]
    assert scatter(compacted, torch.zeros(2, 3, dtype=torch.bool)).equal(torch.zeros(2, 3, 4))
