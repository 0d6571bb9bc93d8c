from itertools import pairwise

import pytest
import torch

from structperc.chain import allow, kbest, log_partition, marginals, viterbi
from structperc.chain.restrictions import constrain
from structperc.structures import Lattice
from tests import oracle

# O, B, I: no sequence starts with I, O is not followed by I; none ends with B, to give the end mask work
START = torch.tensor([True, True, False])
TRANSITION = torch.tensor([[True, True, False], [True, True, True], [True, True, True]])
END = torch.tensor([True, False, True])


def legal(labelling: tuple[int, ...]) -> bool:
    ends = not labelling or bool(START[labelling[0]] and END[labelling[-1]])
    return ends and all(TRANSITION[i, j] for i, j in pairwise(labelling))


@pytest.fixture(params=["dense", "stationary"])
def tagging(request: pytest.FixtureRequest) -> Lattice:
    torch.manual_seed(1)
    edge = torch.randn(4, 5, 3, 3).double()
    edge = edge[0, 0].expand_as(edge) if request.param == "stationary" else edge
    return Lattice(torch.randn(4, 5, 3).double(), edge, torch.tensor([5, 3, 0, 1]))


def test_searches_and_sums_of_legal_paths(tagging: Lattice) -> None:
    constrained = constrain(tagging, START, TRANSITION, END)
    found, log_z = kbest(constrained, 300), log_partition(constrained)
    for b, n in enumerate(tagging.lengths.tolist()):
        ranked = [(s, y) for s, y in oracle.sorted_paths(tagging, b) if legal(y)]
        assert found.scores[b][found.valid[b]].tolist() == pytest.approx([s for s, _ in ranked])
        assert {tuple(y) for y in found.labels[b, found.valid[b], :n].tolist()} == {y for _, y in ranked}
        assert log_z[b].item() == pytest.approx(torch.tensor([s for s, _ in ranked]).double().logsumexp(0).item())
    assert viterbi(constrained)[0].tolist() == pytest.approx(found.scores[:, 0].tolist())


def test_gradients_reach_legal_scores_only(tagging: Lattice) -> None:
    unary, matrix = tagging.unary.clone().requires_grad_(), tagging.edge[0, 0].clone().requires_grad_()
    constrained = constrain(Lattice(unary, matrix.expand(4, 5, 3, 3), tagging.lengths), START, TRANSITION, END)
    log_partition(constrained).sum().backward()
    torch.testing.assert_close(unary.grad, marginals(constrained))
    assert (unary.grad[:, 0, 2] == 0).all()
    assert matrix.grad[0, 2] == 0
    assert matrix.grad.isfinite().all()
    assert (matrix.grad[TRANSITION] > 0).all()


def test_allow_restricts_viterbi(lattice: Lattice) -> None:
    mask = torch.rand_like(lattice.unary).round().bool()
    scores, _ = viterbi(allow(lattice, mask))
    for b in range(len(scores)):
        inside = [(s, y) for s, y in oracle.sorted_paths(lattice, b) if all(mask[b, t, i] for t, i in enumerate(y))]
        assert scores[b].item() == pytest.approx(oracle.best(inside))
