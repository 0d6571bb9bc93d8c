import sys

import oracle
import pytest
import torch

from structperc.chain import log_partition, marginals, scaled
from structperc.chain.scaled import forward_sums, node_probabilities
from structperc.structures import Lattice

LOGS = sys.modules["structperc.chain.marginals"]  # the package shows a function of this name
BARRED = -torch.inf


def random_lattice(
    seed: int, scale: float, barred: float = 0.3, few: float = 0.3, B: int = 6, T: int = 5, L: int = 3
) -> Lattice:
    """Scores up to +-scale, unequal lengths, one matrix; `barred` of the labels, `few` of the pairs impossible."""
    generator = torch.Generator().manual_seed(seed)

    def scores(share: float, *shape: int) -> torch.Tensor:
        drawn = (2 * torch.rand(shape, generator=generator, dtype=torch.float64) - 1) * scale
        return drawn.masked_fill(torch.rand(shape, generator=generator) < share, BARRED)

    lengths = torch.randint(0, T + 1, (B,), generator=generator)
    return Lattice(scores(barred, B, T, L), scores(few, 1, 1, L, L), lengths)


def measured(lattice: Lattice) -> tuple[torch.Tensor, ...]:
    """log Z, marginals, gradients of a weighted sum of the log Z."""
    unary, edge = lattice.unary.clone().requires_grad_(), lattice.edge.clone().requires_grad_()
    log_z = log_partition(Lattice(unary, edge, lattice.lengths))
    weights = torch.arange(1, len(unary) + 1).to(log_z)
    grads = torch.autograd.grad((log_z.where(log_z > BARRED, 0) * weights).sum(), (unary, edge))
    return log_z.detach(), marginals(lattice), *grads


def by_logs(lattice: Lattice, monkeypatch: pytest.MonkeyPatch) -> tuple[torch.Tensor, ...]:
    with monkeypatch.context() as patch:
        patch.setattr(LOGS, "forward_sums", lambda _: None)
        return measured(lattice)


@pytest.mark.parametrize("scale", [0, 1, 30, 75, 200, 1e3, 1e4])
@pytest.mark.parametrize("seed", range(12))
def test_products_equal_log_sums(scale: float, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for size in ({}, {"barred": 0.1, "few": 0.6, "B": 4, "T": 60, "L": 5}):
        lattice = random_lattice(seed, scale, **size)
        for found, expected in zip(measured(lattice), by_logs(lattice, monkeypatch), strict=True):
            torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("scale", [1, 75, 1e3, 1e4])
@pytest.mark.parametrize("seed", range(6))
def test_products_equal_enumeration(scale: float, seed: int) -> None:
    lattice = random_lattice(seed, scale)
    log_z, nodes = log_partition(lattice), marginals(lattice)
    for b, value in enumerate(log_z.tolist()):
        assert value == pytest.approx(oracle.log_partition(lattice, b), rel=1e-12, abs=1e-9)
        expected = torch.zeros_like(nodes[b])
        for p, labelling in oracle.probabilities(lattice, b):
            expected[range(len(labelling)), labelling] += p
        torch.testing.assert_close(nodes[b], expected, rtol=1e-9, atol=1e-9)


def reachable(lattice: Lattice) -> torch.Tensor:
    """(B, T, L) bool, whether any labelling leads to each label."""
    allowed, steps = lattice.unary > BARRED, lattice.edge[0, 0] > BARRED
    found = allowed.clone()
    for t in range(1, allowed.shape[1]):
        found[:, t] &= (found[:, t - 1, :, None] & steps).any(1)
    return found & (torch.arange(allowed.shape[1]) < lattice.lengths.unsqueeze(1)).unsqueeze(2)


def test_zeros_are_impossible_whenever_products_are_trusted() -> None:
    trusted = []
    for seed in range(60):
        lattice = random_lattice(seed, 74.9, barred=0.1, few=0.6, B=3, T=12, L=4)
        found = forward_sums(lattice)
        trusted.append(found is not None)
        if found is not None:
            assert (scaled.unpacked(lattice, found, found.sums) > 0).equal(reachable(lattice))
    assert 10 < sum(trusted) < 50


def two_lanes(tail: float, T: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Two labels that never follow one another; the second scores `tail` at each token. -> unary, edge."""
    unary = torch.tensor([0.0, tail], dtype=torch.float64).repeat(1, T, 1)
    return unary, torch.tensor([[0, BARRED], [BARRED, 0]], dtype=torch.float64).view(1, 1, 2, 2)


@pytest.mark.parametrize("tail", [-10.0, -100.0, -149.0])
@pytest.mark.parametrize("barred_at", [0, -1])
def test_the_only_way_may_be_hopeless_up_to_its_end_or_from_its_beginning(tail: float, barred_at: int) -> None:
    unary, edge = two_lanes(tail, 6)
    unary[0, barred_at, 0] = BARRED
    lattice = Lattice(unary, edge, torch.tensor([6]))
    log_z, nodes, own, pairs = measured(lattice)
    assert log_z.item() == pytest.approx(6 * tail)
    assert nodes.equal(torch.tensor([0.0, 1.0]).double().expand(1, 6, 2))
    assert own.equal(nodes)
    torch.testing.assert_close(pairs[0, 0], torch.tensor([[0.0, 0.0], [0.0, 5.0]]).double())


def test_what_may_underflow_is_refused() -> None:
    unary, edge = two_lanes(-100, 6)
    assert forward_sums(Lattice(unary, edge, torch.tensor([6]))) is None  # e^-600 against 1
    late = unary.clone()
    late[0, 0, 0] = BARRED
    found = forward_sums(Lattice(late, edge, torch.tensor([6])))
    assert found is not None  # one lane is left from the start: its sums are 1
    assert node_probabilities(found) is None  # but both follow from the second token on
    for wide in ((unary * 1.51, edge), (unary[:, :2], edge.masked_fill(edge == BARRED, -151))):
        assert forward_sums(Lattice(*wide, torch.tensor([2]))) is None


def test_the_widest_that_is_trusted_is_right() -> None:
    unary, edge = two_lanes(-149.9, 3)
    unary[0, 0] = torch.tensor([0, BARRED])
    unary[0, 2] = torch.tensor([BARRED, 0])
    edge[0, 0, 0, 1] = -149.9
    edge[0, 0, 1, 1] = 0
    lattice = Lattice(unary, edge, torch.tensor([3]))
    assert forward_sums(lattice) is not None  # e^-299.8 against 1 at the second token
    unary[0, 1, 0] = 0.0
    log_z, nodes, _, pairs = measured(lattice)
    ranked = oracle.ranked(lattice, 0)
    assert [y for _, y in ranked] == [(0, 0, 1), (0, 1, 1)]
    assert log_z.item() == pytest.approx(-149.9)
    assert nodes[0, 1, 1].item() == pytest.approx(torch.tensor(-149.9).double().exp().item(), rel=1e-9)
    assert pairs[0, 0, 1, 1].item() == pytest.approx(nodes[0, 1, 1].item(), rel=1e-9)


@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
def test_what_is_no_score_is_refused(bad: float) -> None:
    unary, edge = torch.zeros(1, 3, 2), torch.zeros(1, 1, 2, 2)
    for table, place in ((unary, (0, 1, 0)), (edge, (0, 0, 1, 0))):
        tables = unary.clone(), edge.clone()
        tables[0 if table is unary else 1][place] = bad
        assert forward_sums(Lattice(*tables, torch.tensor([3]))) is None


def test_an_edge_that_is_never_read_may_be_anything() -> None:
    lattice = Lattice(torch.zeros(1, 1, 2), torch.full((1, 1, 2, 2), torch.nan), torch.tensor([1]))
    assert log_partition(lattice).item() == pytest.approx(torch.tensor(2.0).log().item())
    assert marginals(lattice).tolist() == [[[0.5, 0.5]]]


def test_nothing_but_empty_sequences() -> None:
    for B, T in ((2, 3), (2, 0), (0, 0)):
        lattice = Lattice(torch.randn(B, T, 2), torch.randn(1, 1, 2, 2), torch.zeros(B, dtype=torch.int64))
        log_z, nodes, own, pairs = measured(lattice)
        assert log_z.tolist() == [0] * B
        assert not nodes.any()
        assert not own.any()
        assert not pairs.any()


def test_tensors_and_arrays_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    lattice = random_lattice(0, 3, barred=0.1, B=20, T=30, L=7)
    arrays = measured(lattice)
    monkeypatch.setattr(scaled, "SMALL", -1)
    for found, expected in zip(measured(lattice), arrays, strict=True):
        torch.testing.assert_close(found, expected)


def test_an_expanded_matrix_gets_the_gradient_of_the_matrix() -> None:
    lattice = random_lattice(1, 2, barred=0)
    _, _, own, pairs = measured(lattice)
    unary, matrix = lattice.unary.clone().requires_grad_(), lattice.edge[0, 0].clone().requires_grad_()
    expanded = Lattice(unary, matrix.expand(*unary.shape, -1), lattice.lengths)
    (log_partition(expanded) * torch.arange(1, 7)).sum().backward()
    torch.testing.assert_close(unary.grad, own)
    torch.testing.assert_close(matrix.grad, pairs[0, 0])


def test_float32_is_summed_in_float64() -> None:
    torch.manual_seed(0)
    lengths = torch.tensor([300, 17, 0, 299, 1, 120])
    single = Lattice(torch.randn(6, 310, 5) * 3 + 1000, torch.randn(1, 1, 5, 5) * 3, lengths)
    found, exact = measured(single), measured(Lattice(single.unary.double(), single.edge.double(), lengths))
    for value, expected in zip(found, exact, strict=True):
        assert value.dtype == torch.float32
        assert value.equal(expected.float())


def test_cuda_equals_cpu(cuda: torch.device) -> None:
    lattice = random_lattice(0, 3, barred=0.1, B=20, T=30, L=7)
    moved = Lattice(*(x.to(cuda) for x in lattice))
    for found, expected in zip(measured(moved), measured(lattice), strict=True):
        torch.testing.assert_close(found.cpu(), expected)
