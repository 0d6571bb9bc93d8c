"""The best label sequence, scores of given ones, and max-marginals, against enumeration."""

import pytest
import torch

from structperc.chain import max_marginals, path_score, viterbi
from structperc.chain.viterbi import best_before_and_after
from structperc.errors import InputError
from structperc.structures import Lattice
from tests import oracle


def test_matches_enumeration_of_viterbi(lattice: Lattice) -> None:
    scores, labels = viterbi(lattice)
    for b in range(len(scores)):
        ranked, n = oracle.sorted_paths(lattice, b), int(lattice.lengths[b])
        assert scores[b] == pytest.approx(oracle.best(ranked), abs=1e-9)
        assert not labels[b, n:].any()
        if ranked:
            assert oracle.score(lattice, b, tuple(labels[b, :n].tolist())) == pytest.approx(ranked[0][0], abs=1e-9)
        else:
            assert not labels[b].any()


def test_worked_by_hand() -> None:
    # changing costs 3: the 2 of the last token does not pay for a change, the 4 does
    edge = torch.tensor([[0.0, -3.0], [-3.0, 0.0]]).expand(2, 3, 2, 2)
    unary = torch.tensor([[[3.0, 0], [3, 0], [0, 2]], [[3.0, 0], [3, 0], [0, 4]]])
    scores, labels = viterbi(Lattice(unary, edge, torch.tensor([3, 3])))
    assert scores.tolist() == [6, 7]
    assert labels.tolist() == [[0, 0, 0], [0, 0, 1]]


def test_long_sequences_are_independent(documents: Lattice) -> None:
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


def some_labels(lattice: Lattice, *shape: int) -> torch.Tensor:
    B, T, L = lattice.unary.shape
    labels = torch.randint(L, (B, *shape, T))
    padding = torch.arange(T) >= lattice.lengths.view(-1, *[1] * (len(shape) + 1))
    return labels.where(~padding, -100)


def expected(lattice: Lattice, row: int, labels: torch.Tensor) -> float:
    return oracle.score(lattice, row, tuple(labels[: lattice.lengths[row]].tolist()))


def test_matches_naive_sum(lattice: Lattice) -> None:
    one, many = some_labels(lattice), some_labels(lattice, 3)
    for b in range(len(one)):
        assert path_score(lattice, one)[b].item() == pytest.approx(expected(lattice, b, one[b]))
        for k in range(3):
            assert path_score(lattice, many)[b, k].item() == pytest.approx(expected(lattice, b, many[b, k]))


def test_gradients_are_path_counts(lattice: Lattice) -> None:
    labels = some_labels(lattice)
    unary, edge = lattice.unary.clone().requires_grad_(), lattice.edge.clone().requires_grad_()
    path_score(Lattice(unary, edge, lattice.lengths), labels).sum().backward()
    nodes = torch.zeros_like(unary)
    pairs = nodes.new_zeros(*nodes.shape, nodes.shape[2])
    for b, n in enumerate(lattice.lengths.tolist()):
        for t in range(n):
            nodes[b, t, labels[b, t]] += 1
            if t > 0:
                pairs[b, t, labels[b, t - 1], labels[b, t]] += 1
    assert unary.grad.equal(nodes)
    assert edge.grad.equal(pairs.sum_to_size(edge.shape))


@pytest.mark.parametrize("label", [-100, -1, 3])
def test_label_outside_the_lattice(label: int) -> None:
    labels = torch.zeros(2, 4, dtype=torch.int64)
    labels[1, 2] = label
    lattice = Lattice(torch.zeros(2, 4, 3), torch.zeros(2, 4, 3, 3), torch.tensor([4, 3]))
    with pytest.raises(InputError, match=rf"label {label} .*token 2 .*sequence 1 .*0\.\.2"):
        path_score(lattice, labels)
    with pytest.raises(InputError, match=r"token 2 .*sequence 1"):
        path_score(lattice, labels.unsqueeze(1))
    assert path_score(lattice._replace(lengths=torch.tensor([4, 2])), labels).tolist() == [0, 0]


def test_half_precision_is_summed_in_float32() -> None:
    lattice = Lattice(torch.full((1, 3000, 1), 1.0).bfloat16(), torch.zeros(1, 3000, 1, 1), torch.tensor([3000]))
    assert path_score(lattice, torch.zeros(1, 3000, dtype=torch.int64)).item() == 3000


def with_grad(lattice: Lattice) -> Lattice:
    return lattice._replace(unary=lattice.unary.clone().requires_grad_(), edge=lattice.edge.clone().requires_grad_())


def grads_of(score: torch.Tensor, lattice: Lattice) -> tuple[torch.Tensor, ...]:
    return torch.autograd.grad(score, (lattice.unary, lattice.edge), retain_graph=True)


def test_matches_enumeration_of_max_marginals(lattice: Lattice) -> None:
    found = max_marginals(lattice)
    for b in range(len(found)):
        expected = torch.full_like(found[b], -torch.inf)
        for score, labelling in reversed(oracle.sorted_paths(lattice, b)):
            expected[range(len(labelling)), labelling] = score
        torch.testing.assert_close(found[b], expected)


def test_gradient_of_one_best_path(lattice: Lattice) -> None:
    lattice = with_grad(lattice)
    found = max_marginals(lattice)
    for b, t, y in (found > -torch.inf).nonzero().tolist():
        own, pairs = grads_of(found[b, t, y], lattice)
        assert ((own == 0) | (own == 1)).all()
        labels = own[b].argmax(1)
        assert labels[t] == y
        assert path_score(lattice, labels.expand(len(own), -1))[b].item() == pytest.approx(found[b, t, y].item())
        for grad, expected in zip((own, pairs), one_path(lattice, b, labels), strict=True):
            assert grad.equal(expected)


def one_path(lattice: Lattice, row: int, labels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """How often a labelling of a sequence uses each entry of both tables."""
    own, pairs = torch.zeros_like(lattice.unary), torch.zeros_like(lattice.edge)
    for t in range(int(lattice.lengths[row])):
        own[row, t, labels[t]] += 1
        if t > 0:
            place = (row, t) if len(pairs) > 1 else (0, 0)
            pairs[(*place, labels[t - 1], labels[t])] += 1
    return own, pairs


def test_ties_of_max_marginals() -> None:
    lattice = with_grad(Lattice(torch.zeros(1, 4, 3), torch.zeros(1, 1, 3, 3), torch.tensor([4])))
    own, pairs = grads_of(max_marginals(lattice)[0, 2, 1], lattice)
    assert own[0].argmax(1).tolist() == [0, 0, 1, 0]
    assert pairs[0, 0].tolist() == [[1, 1, 0], [1, 0, 0], [0, 0, 0]]


def test_gradient_of_impossible_labels() -> None:
    unary = torch.zeros(2, 3, 2)
    unary[0, 1] = -torch.inf  # no labelling
    unary[1, 2, 0] = -torch.inf
    lattice = with_grad(Lattice(unary, torch.zeros(1, 1, 2, 2), torch.tensor([3, 3])))
    own, pairs = grads_of(max_marginals(lattice).sum(), lattice)
    assert not own[0].any()
    assert own[1].tolist() == [[4, 1], [4, 1], [0, 5]]
    assert pairs[0, 0].sum().item() == 10


@pytest.mark.parametrize("shape", [(1, 1, 3, 3), (3, 4, 3, 3)])
def test_gradcheck(shape: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    unary = torch.randn(3, 4, 3, dtype=torch.float64, requires_grad=True)
    edge = torch.randn(shape, dtype=torch.float64, requires_grad=True)
    lengths = torch.tensor([4, 1, 3])
    scores = lambda u, e: best_before_and_after(Lattice(u, e, lengths))  # noqa: E731
    assert torch.autograd.gradcheck(scores, (unary, edge))
    assert torch.autograd.gradgradcheck(scores, (unary, edge), fast_mode=True)


def test_gradients_may_come_transposed(documents: Lattice) -> None:
    lattice, weights = with_grad(documents), torch.randn(5, 310, 6, dtype=torch.float64)
    before, _ = best_before_and_after(lattice)
    seen = (before.transpose(0, 2) * weights).sum(), (before * weights.transpose(0, 2).contiguous()).sum()
    for found, expected in zip(*(grads_of(score, lattice) for score in seen), strict=True):
        torch.testing.assert_close(found, expected)
