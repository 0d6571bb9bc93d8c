"""Sums over all label sequences, against enumeration."""

import math
from importlib import import_module

import pytest
import torch

from structperc.chain import entropy, log_partition, marginals, sample
from structperc.chain.marginals import cross_entropy, divergence, edge_marginals, next_marginals, previous_marginals
from structperc.errors import InputError
from structperc.structures import Lattice
from tests import oracle


def test_sums_match_enumeration(lattice: Lattice) -> None:
    nodes, edges = marginals(lattice), edge_marginals(lattice)
    log_z, entropies = log_partition(lattice), entropy(lattice)
    for b in range(len(nodes)):
        expected_nodes, expected_edges = torch.zeros_like(nodes[b]), torch.zeros_like(edges[b])
        for p, labelling in oracle.probabilities(lattice, b):
            for t, y in enumerate(labelling):
                expected_nodes[t, y] += p
                if t > 0:
                    expected_edges[t, labelling[t - 1], y] += p
        assert log_z[b].item() == pytest.approx(oracle.log_partition(lattice, b), abs=1e-9)
        wanted = -sum(p * math.log(p) for p, _ in oracle.probabilities(lattice, b))
        assert entropies[b].item() == pytest.approx(wanted, abs=1e-9)
        torch.testing.assert_close(nodes[b], expected_nodes)
        torch.testing.assert_close(edges[b], expected_edges)
        assert ((nodes[b] == 0) == (expected_nodes == 0)).all()


def test_gradients_are_the_marginals(lattice: Lattice) -> None:
    unary, edge = lattice.unary.clone().requires_grad_(), lattice.edge.clone().requires_grad_()
    weights = torch.arange(1.0, len(unary) + 1, dtype=torch.float64)
    log_z = log_partition(Lattice(unary, edge, lattice.lengths))
    (log_z.where(log_z > -torch.inf, 0) * weights).sum().backward()
    torch.testing.assert_close(unary.grad, marginals(lattice) * weights.view(-1, 1, 1))
    pairs = edge_marginals(lattice) * weights.view(-1, 1, 1, 1)
    torch.testing.assert_close(edge.grad, pairs.sum_to_size(edge.shape))


@pytest.mark.parametrize("shape", [(1, 1, 2, 2), (2, 3, 2, 2)])
def test_second_derivatives(shape: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    unary = torch.randn(2, 3, 2, dtype=torch.float64, requires_grad=True)
    edge = torch.randn(shape, dtype=torch.float64, requires_grad=True)
    for measure in (log_partition, marginals, edge_marginals, entropy):
        of = lambda u, e, measure=measure: measure(Lattice(u, e, torch.tensor([3, 2])))  # noqa: E731
        assert torch.autograd.gradcheck(of, (unary, edge))
        assert torch.autograd.gradgradcheck(of, (unary, edge), fast_mode=True)


def test_second_derivatives_with_impossible_labels() -> None:
    unary = torch.tensor([[[0.0, -torch.inf], [1, 2], [0, 1]]], requires_grad=True)
    edge = torch.tensor([[[[0.0, -torch.inf], [1, 0]]]])
    lattice = Lattice(unary, edge, torch.tensor([3]))
    for measure in (log_partition, marginals, entropy):
        (own,) = torch.autograd.grad(measure(lattice).square().sum(), unary, create_graph=True)
        own.square().sum().backward()
        assert unary.grad.isfinite().all()


def test_divergence_with_impossible_paths() -> None:
    """Labels that nothing may follow, that cannot be reached, or that the other lattice lacks; by enumeration."""
    torch.manual_seed(0)
    unary, edge = torch.randn(80, 4, 3).double(), torch.randn(80, 4, 3, 3).double()
    unary[torch.rand(unary.shape) < 0.2] = -torch.inf
    edge[torch.rand(edge.shape) < 0.3] = -torch.inf
    lengths = torch.randint(0, 5, (80,))
    unary[torch.arange(4) >= lengths.unsqueeze(1)] = torch.nan
    p, q = (Lattice(unary[part], edge[part], lengths[part]) for part in (slice(40), slice(40, None)))
    q = q._replace(unary=q.unary.where(p.unary.isnan() | ~q.unary.isnan(), 0), lengths=p.lengths)
    crossed, diverging = cross_entropy(p, q), divergence(p, q)
    for b in range(40):
        ps, qs = ({y: x for x, y in oracle.probabilities(each, b) if x > 0} for each in (p, q))
        infinite = any(y not in qs for y in ps)
        expected = torch.inf if infinite else -sum(x * math.log(qs[y]) for y, x in ps.items())
        assert crossed[b].item() == pytest.approx(expected)
        expected = torch.inf if infinite else sum(x * math.log(x / qs[y]) for y, x in ps.items())
        assert diverging[b].item() == pytest.approx(expected, abs=1e-9)
    assert crossed.isinf().any()
    assert crossed.isfinite().sum() > 10
    leaves = p.unary.requires_grad_(), q.unary.requires_grad_()
    found = divergence(p, q)
    gradients = torch.autograd.grad(found.where(found < torch.inf, 0).sum(), leaves)
    assert all(gradient.isfinite().all() for gradient in gradients)


def test_divergence_and_cross_entropy() -> None:
    torch.manual_seed(0)
    lengths = torch.tensor([4, 0, 2])
    p, q = (Lattice(torch.randn(3, 4, 2).double(), torch.randn(3, 4, 2, 2).double(), lengths) for _ in range(2))
    torch.testing.assert_close(divergence(p, p), torch.zeros(3).double())
    torch.testing.assert_close(cross_entropy(p, p), entropy(p))
    barred = q._replace(unary=q.unary.masked_fill(torch.tensor([True, False]), -torch.inf))
    assert cross_entropy(p, barred).tolist() == [torch.inf, 0, torch.inf]
    assert divergence(barred, q).isfinite().all()
    assert torch.autograd.gradcheck(
        lambda u, v: divergence(p._replace(unary=u), q._replace(unary=v)),
        (p.unary.clone().requires_grad_(), q.unary.clone().requires_grad_()),
    )
    with pytest.raises(InputError, match=r"^unary: expected"):
        divergence(p, q._replace(unary=q.unary[:, :3], edge=q.edge[:, :3]))


def test_long_sequences_in_float32(documents: Lattice) -> None:
    single = Lattice(documents.unary.float() + 1000, documents.edge.float(), documents.lengths)
    double = Lattice(single.unary.double(), single.edge.double(), single.lengths)
    torch.testing.assert_close(marginals(single).double(), marginals(double), rtol=0, atol=2e-2)
    torch.testing.assert_close(log_partition(single).double(), log_partition(double), rtol=1e-5, atol=0)
    real = documents.lengths.unsqueeze(1) > torch.arange(310)
    torch.testing.assert_close(marginals(single).sum(2), real.float())


def test_samples_follow_the_distribution() -> None:
    torch.manual_seed(2)
    lattice = Lattice(torch.randn(3, 3, 2).double(), torch.randn(3, 3, 2, 2).double(), torch.tensor([3, 0, 2]))
    n = 4000
    drawn = sample(lattice, n, torch.Generator().manual_seed(1))
    assert drawn.shape == (3, n, 3)
    for b, length in enumerate(lattice.lengths.tolist()):
        assert not drawn[b, :, length:].any()
        for p, labelling in oracle.probabilities(lattice, b):
            share = (drawn[b, :, :length] == torch.tensor(labelling)).all(1).double().mean().item()
            assert abs(share - p) < 5 * math.sqrt(p * (1 - p) / n) + 1e-12
    again = sample(lattice, n, torch.Generator().manual_seed(1))
    assert drawn.equal(again)


module = import_module("structperc.chain.marginals")  # the package exports the function of this name


@pytest.mark.parametrize("many", [(1, 1), (3, 1), (3, 6)], ids=["one table", "one each", "one each token"])
@pytest.mark.parametrize("most", [0, module.MAX_PAIRS], ids=["token by token", "tables"])
def test_next_and_previous_marginals(many: tuple[int, int], most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With impossible pairs and labels, any padding, a sequence without tokens; scores too large for sums of them."""
    monkeypatch.setattr(module, "MAX_PAIRS", most)
    torch.manual_seed(0)
    B, T, L = 3, 6, 4
    unary, edge = 5 * torch.randn(B, T, L) + 500, torch.randn(*many, L, L)
    edge[..., 1, 2], unary[0, 2, 3] = -torch.inf, -torch.inf
    lengths, labels = torch.tensor([6, 4, 0]), torch.randint(L, (B, T))
    labels[0, 2] = 3  # impossible
    unary[1, 4:] = torch.nan
    lattice = Lattice(unary, edge, lengths)
    whole = Lattice(unary.double(), edge.double(), lengths)
    pairs, nodes = edge_marginals(whole), marginals(whole)
    after, before = next_marginals(lattice, labels), previous_marginals(lattice, labels)
    for b, length in enumerate(lengths.tolist()):
        for t in range(T):
            own = labels[b, t]
            p = nodes[b, t, own]
            later = pairs[b, t + 1, own] / p if t + 1 < length and p else torch.zeros(L).double()
            earlier = pairs[b, t, :, own] / p if 0 < t < length and p else torch.zeros(L).double()
            torch.testing.assert_close(after[b, t], later)
            torch.testing.assert_close(before[b, t], earlier)
