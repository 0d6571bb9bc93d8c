import oracle
import pytest
import torch

from structperc.chain import Viterbi, path_score, viterbi
from structperc.structures import Lattice


def test_matches_enumeration(lattice: Lattice) -> None:
    scores, labels = viterbi(lattice)
    for b in range(len(scores)):
        ranked, n = oracle.ranked(lattice, b), int(lattice.lengths[b])
        assert scores[b] == pytest.approx(oracle.best(ranked), abs=1e-9)
        assert not labels[b, n:].any()
        if ranked:
            assert oracle.score(lattice, b, tuple(labels[b, :n].tolist())) == pytest.approx(ranked[0][0], abs=1e-9)
        else:
            assert not labels[b].any()


def test_ties_go_to_the_lowest_label() -> None:
    scores, labels = viterbi(Lattice(torch.zeros(3, 9, 4), torch.zeros(3, 9, 4, 4), torch.tensor([9, 4, 1])))
    assert not scores.any()
    assert not labels.any()


def test_worked_by_hand() -> None:
    # changing costs 3: the 2 of the last token does not pay for a change, the 4 does
    edge = torch.tensor([[0.0, -3.0], [-3.0, 0.0]]).expand(2, 3, 2, 2)
    unary = torch.tensor([[[3.0, 0], [3, 0], [0, 2]], [[3.0, 0], [3, 0], [0, 4]]])
    scores, labels = viterbi(Lattice(unary, edge, torch.tensor([3, 3])))
    assert scores.tolist() == [6, 7]
    assert labels.tolist() == [[0, 0, 0], [0, 0, 1]]


def test_long_sequences_do_not_depend_on_their_batch(documents: Lattice) -> None:
    scores, labels = viterbi(documents)
    torch.testing.assert_close(scores, path_score(documents, labels))
    for b, n in enumerate(documents.lengths.tolist()):
        alone = Lattice(documents.unary[b : b + 1, :n], documents.edge[b : b + 1, :n], documents.lengths[b : b + 1])
        score, label = viterbi(alone)
        assert score[0] == scores[b]
        assert label[0].equal(labels[b, :n])


def test_no_tokens_at_all() -> None:
    for B, T in ((0, 3), (2, 0), (2, 3)):
        lattice = Lattice(torch.randn(B, T, 3), torch.randn(B, T, 3, 3), torch.zeros(B, dtype=torch.int64))
        scores, labels = viterbi(lattice)
        assert scores.tolist() == [0] * B
        assert labels.equal(torch.zeros(B, T, dtype=torch.int64))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_upcast(dtype: torch.dtype, documents: Lattice) -> None:
    half = Lattice(documents.unary.to(dtype), documents.edge.to(dtype), documents.lengths)
    full = Lattice(half.unary.double(), half.edge.double(), half.lengths)
    scores, labels = viterbi(half)
    assert scores.dtype == torch.float32
    torch.testing.assert_close(scores.double(), viterbi(full)[0])
    assert labels.equal(viterbi(full)[1])


def test_huge_scores_never_make_an_illegal_path_win() -> None:
    edge = torch.tensor([[-1e30, -torch.inf], [-torch.inf, -1e30]]).expand(1, 5, 2, 2)
    unary = torch.full((1, 5, 2), -1e30)
    unary[0, 2, 0] = -torch.inf
    scores, labels = viterbi(Lattice(unary, edge, torch.tensor([5])))
    assert labels.tolist() == [[1] * 5]
    assert scores.item() == pytest.approx(-9e30)


def test_leaves_the_lattice_alone(documents: Lattice) -> None:
    unary, edge = documents.unary.clone().requires_grad_(), documents.edge.clone()
    scores, _ = viterbi(Lattice(unary, edge, documents.lengths))
    assert not scores.requires_grad
    assert unary.detach().equal(documents.unary)
    assert edge.equal(documents.edge)
    assert not edge.requires_grad


def test_cuda_equals_cpu(documents: Lattice, cuda: torch.device) -> None:
    scores, labels = viterbi(Lattice(*(x.to(cuda) for x in documents)))
    torch.testing.assert_close(scores.cpu(), viterbi(documents)[0])
    assert labels.cpu().equal(viterbi(documents)[1])


def test_module(documents: Lattice) -> None:
    for mine, theirs in zip(Viterbi()(documents), viterbi(documents), strict=True):
        assert mine.equal(theirs)
