import pytest
import torch

from structperc.chain import recursion
from structperc.chain.recursion import (
    backwards,
    before_and_after,
    both_ways,
    completions,
    is_stationary,
    pack_edge,
)
from structperc.structures import Lattice


def test_walks_visit_each_real_token_once(documents: Lattice) -> None:
    T = documents.unary.shape[1]
    real = (torch.arange(T) < documents.lengths.unsqueeze(1)).flatten().nonzero().flatten()
    ahead, back = both_ways(documents).tokens
    assert ahead.sort()[0].equal(real)
    assert back.sort()[0].equal(real)
    assert back.equal(backwards(documents).tokens[0])


def test_sequences_alive_are_a_prefix(documents: Lattice) -> None:
    walk = both_ways(documents)
    assert documents.lengths[walk.order].tolist() == [300, 299, 120, 17, 1, 0]
    assert walk.sizes == [5] + [4] * 16 + [3] * 103 + [2] * 179 + [1]


def test_one_transition_matrix_is_never_copied_per_token() -> None:
    matrix = torch.randn(4, 4)
    lattice = Lattice(torch.randn(3, 50, 4), matrix.expand(3, 50, 4, 4), torch.tensor([50, 20, 7]))
    assert is_stationary(lattice.edge)
    assert not is_stationary(lattice.edge.contiguous())
    ahead, back = pack_edge(lattice, both_ways(lattice))
    assert ahead.equal(matrix.mT.unsqueeze(0))
    assert back.equal(matrix.unsqueeze(0))


def test_completions_are_the_second_half_of_both_ways(documents: Lattice) -> None:
    for reduce in (torch.amax, torch.logsumexp):
        assert completions(documents, reduce).equal(before_and_after(documents, reduce)[1])


@pytest.mark.parametrize("reduce", [torch.amax, torch.logsumexp])
def test_tensors_and_arrays_agree(lattice: Lattice, reduce: recursion.Reduce, monkeypatch: pytest.MonkeyPatch) -> None:
    arrays = before_and_after(lattice, reduce)
    with monkeypatch.context() as patch:
        patch.setattr(recursion, "SMALL", -1)
        torch.testing.assert_close(before_and_after(lattice, reduce), arrays)
