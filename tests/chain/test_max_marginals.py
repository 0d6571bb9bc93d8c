import oracle
import pytest
import torch

from structperc.chain import best_before_and_after, kbest, max_marginals, path_score, viterbi
from structperc.structures import Lattice


def with_grad(lattice: Lattice) -> Lattice:
    return lattice._replace(unary=lattice.unary.clone().requires_grad_(), edge=lattice.edge.clone().requires_grad_())


def grads_of(score: torch.Tensor, lattice: Lattice) -> tuple[torch.Tensor, ...]:
    return torch.autograd.grad(score, (lattice.unary, lattice.edge), retain_graph=True)


def test_matches_enumeration(lattice: Lattice) -> None:
    found = max_marginals(lattice)
    for b in range(len(found)):
        expected = torch.full_like(found[b], -torch.inf)
        for score, labelling in reversed(oracle.ranked(lattice, b)):
            expected[range(len(labelling)), labelling] = score
        torch.testing.assert_close(found[b], expected)


def test_second_best_is_the_best_other_label(documents: Lattice) -> None:
    found = max_marginals(documents)
    scores, labels = viterbi(documents)
    others = found.scatter(2, labels.unsqueeze(2), -torch.inf).flatten(1).amax(1)
    torch.testing.assert_close(others, kbest(documents, 2).scores[:, 1])
    assert found[0].amax(1)[:300].tolist() == pytest.approx([scores[0].item()] * 300)


def test_the_gradient_is_that_of_one_best_labelling(lattice: Lattice) -> None:
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


def test_ties_go_to_the_lowest_label_outwards() -> None:
    lattice = with_grad(Lattice(torch.zeros(1, 4, 3), torch.zeros(1, 1, 3, 3), torch.tensor([4])))
    own, pairs = grads_of(max_marginals(lattice)[0, 2, 1], lattice)
    assert own[0].argmax(1).tolist() == [0, 0, 1, 0]
    assert pairs[0, 0].tolist() == [[1, 1, 0], [1, 0, 0], [0, 0, 0]]


def test_what_is_impossible_has_gradient_zero() -> None:
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
    assert torch.autograd.gradcheck(lambda u, e: best_before_and_after(Lattice(u, e, lengths)), (unary, edge))
    assert torch.autograd.gradgradcheck(lambda u, e: best_before_and_after(Lattice(u, e, lengths)), (unary, edge))


def test_gradients_of_many_labellings_add_up(documents: Lattice) -> None:
    lattice = with_grad(documents)
    real = (torch.arange(310) < documents.lengths.unsqueeze(1)).unsqueeze(2)
    weights = torch.randn(lattice.unary.shape, dtype=torch.float64).where(real, 0)
    total = (max_marginals(lattice).where(real, 0) * weights).sum()
    own, pairs = grads_of(total, lattice)
    per_token = weights.sum((1, 2)).unsqueeze(1) * real.squeeze(2)  # each labelling has one label at each token
    torch.testing.assert_close(own.sum(2), per_token)
    torch.testing.assert_close(pairs.sum((2, 3))[:, 1:], per_token[:, 1:])
    torch.testing.assert_close((own * documents.unary).sum() + (pairs * documents.edge).sum(), total.detach())


def test_an_expanded_matrix_gets_the_gradient_of_the_matrix() -> None:
    torch.manual_seed(0)
    matrix = torch.randn(3, 3, requires_grad=True)
    unary, lengths = torch.randn(4, 6, 3), torch.tensor([6, 0, 3, 1])
    grads = []
    for edge in (matrix.view(1, 1, 3, 3), matrix.expand(4, 6, 3, 3), matrix.expand(4, 6, 3, 3).contiguous()):
        best = max_marginals(Lattice(unary, edge, lengths))
        grads.append(torch.autograd.grad(best.where(best > -torch.inf, 0).square().sum(), matrix)[0])
    torch.testing.assert_close(grads[1], grads[0])
    torch.testing.assert_close(grads[2], grads[0])


def test_gradients_may_come_transposed(documents: Lattice) -> None:
    lattice, weights = with_grad(documents), torch.randn(5, 310, 6, dtype=torch.float64)
    before, _ = best_before_and_after(lattice)
    seen = (before.transpose(0, 2) * weights).sum(), (before * weights.transpose(0, 2).contiguous()).sum()
    for found, expected in zip(*(grads_of(score, lattice) for score in seen), strict=True):
        torch.testing.assert_close(found, expected)


def test_nothing_but_empty_sequences() -> None:
    for B, T in ((2, 3), (2, 0), (0, 0)):
        lengths = torch.zeros(B, dtype=torch.int64)
        lattice = with_grad(Lattice(torch.randn(B, T, 2), torch.randn(1, 1, 2, 2), lengths))
        found = max_marginals(lattice)
        assert (found == -torch.inf).all()
        assert not any(grad.any() for grad in grads_of(found.sum(), lattice))


def test_half_precision_is_upcast(documents: Lattice) -> None:
    half = Lattice(documents.unary.half(), documents.edge.half(), documents.lengths)
    found = max_marginals(half := with_grad(half))
    assert found.dtype == torch.float32
    assert [grad.dtype for grad in grads_of(found[0, 0, 0], half)] == [torch.float16] * 2


def test_cuda_equals_cpu(documents: Lattice, cuda: torch.device) -> None:
    host, device = with_grad(documents), with_grad(Lattice(*(x.to(cuda) for x in documents)))
    torch.testing.assert_close(max_marginals(device).cpu(), max_marginals(host))
    pairs = (grads_of(max_marginals(x)[:1, :300].sum(), x) for x in (device, host))
    for found, expected in zip(*pairs, strict=True):
        torch.testing.assert_close(found.cpu(), expected)
