import math
from collections.abc import Sequence

import pytest
import torch

from structperc.chain import kbest, locally_normalised, log_partition, path_score
from structperc.chain.restrictions import constrain
from structperc.data.labels import LabelSet
from structperc.structures import Lattice
from tests import oracle

SCHEMES = {
    "IOB1": ("O", "I-X", "B-X"),
    "IOB2": ("O", "B-X", "I-X", "B-Y", "I-Y"),
    "IOBES": ("O", "B-X", "I-X", "E-X", "S-X"),
    "none": ("A", "B"),
}


# -- by loops --------------------------------------------------------------------------------------------------


def log_probability(lattice: Lattice, row: int, labelling: Sequence[int]) -> float:
    """Sum of log p(y_t | y_{t-1}), each a quotient of exponentials."""
    edge = lattice.edge.expand(*lattice.unary.shape, -1)
    total = 0.0
    for t, y in enumerate(labelling):
        scores = [float(u) for u in lattice.unary[row, t]]
        if t > 0:
            scores = [u + float(e) for u, e in zip(scores, edge[row, t, labelling[t - 1]], strict=True)]
        share = math.exp(scores[y]) / (sum(map(math.exp, scores)) or 1)
        total += math.log(share) if share else -math.inf
    return total


def every_log_probability(lattice: Lattice, row: int) -> dict[tuple[int, ...], float]:
    L = lattice.unary.shape[2]
    return {y: log_probability(lattice, row, y) for y in oracle.label_sequences(int(lattice.lengths[row]), L)}


def random_lattice(names: Sequence[str], scheme: str, seed: int, T: int = 4) -> Lattice:
    """As a tagger gives it: documents of sentences, in float64."""
    torch.manual_seed(seed)
    labels, L = LabelSet(tuple(names), scheme), len(names)
    edge = torch.randn(1 if seed % 2 else 4, 1 if seed % 2 else T, L, L).double() * 2
    lattice = Lattice(torch.randn(4, T, L).double() * 2, edge, torch.tensor([T, 1, 0, T - 1]))
    last = torch.rand(4, T) < 0.3
    last[torch.arange(4), (lattice.lengths - 1).clamp(min=0)] = True
    first = last.roll(1, 1)
    first[:, 0] = True
    return constrain(lattice, labels.start, labels.transition, labels.end, first, last)


# -- probabilities ---------------------------------------------------------------------------------------------


def test_path_scores_are_products_of_conditionals(lattice: Lattice) -> None:
    given = locally_normalised(lattice)
    for row in range(len(lattice.lengths)):
        for labelling, expected in every_log_probability(lattice, row).items():
            assert oracle.score(given, row, labelling) == pytest.approx(expected, abs=1e-9)


def test_a_hand_worked_chain() -> None:
    unary = torch.tensor([[[3.0, 1.0], [1.0, 1.0]]]).log()
    edge = torch.tensor([[[[1.0, 1.0], [0.0, 5.0]]]]).log()  # after label 0 both alike, after label 1 only itself
    given = locally_normalised(Lattice(unary, edge, torch.tensor([2])))
    labels = torch.tensor([[[0, 0], [0, 1], [1, 0], [1, 1]]])
    expected = torch.tensor([[3 / 8, 3 / 8, 0, 1 / 4]])
    torch.testing.assert_close(path_score(given, labels).exp(), expected)


# -- constraints -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("scheme", "seed"), zip(SCHEMES, range(4), strict=True))
def test_tag_schemes_lose_nothing(scheme: str, seed: int) -> None:
    lattice = random_lattice(SCHEMES[scheme], scheme, seed)
    given = locally_normalised(lattice)
    torch.testing.assert_close(log_partition(given), torch.zeros(4).double(), rtol=0, atol=1e-12)
    for row in range(4):
        legal, normalised = oracle.sorted_paths(lattice, row), oracle.sorted_paths(given, row)
        assert {y for _, y in legal} == {y for _, y in normalised}
        assert sum(math.exp(p) for p, _ in normalised) == pytest.approx(1)


def test_dead_ends_lose_their_share() -> None:
    """Without E-X nothing ends a segment: after B-X comes I-X for ever."""
    labels = LabelSet(("O", "B-X", "I-X"), "IOBES")
    lattice = Lattice(torch.zeros(2, 3, 3), torch.zeros(1, 1, 3, 3), torch.tensor([3, 1]))
    given = locally_normalised(constrain(lattice, labels.start, labels.transition, labels.end))
    assert oracle.sorted_paths(given, 0) == [(pytest.approx(math.log(1 / 4)), (0, 0, 0))]  # O not B-X at two tokens
    torch.testing.assert_close(log_partition(given), torch.tensor([1 / 4, 1]).log())


def test_sequence_without_legal_path() -> None:
    unary = torch.zeros(2, 3, 2)
    unary[0, 1] = -torch.inf
    unary[1, 0] = -torch.inf
    given = locally_normalised(Lattice(unary, torch.zeros(1, 1, 2, 2), torch.tensor([3, 3])))
    assert not kbest(given, 4).valid.any()
    assert log_partition(given).tolist() == [-math.inf, -math.inf]


# -- gradients -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("scheme", "seed"), [("IOB2", 0), ("IOBES", 1)], ids=["dense", "stationary"])
def test_gradcheck(scheme: str, seed: int) -> None:
    lattice = random_lattice(SCHEMES[scheme][:3], scheme, seed, T=3)
    legal = Lattice(lattice.unary > -torch.inf, lattice.edge > -torch.inf, lattice.lengths)
    candidates = kbest(lattice, 4)

    def scores(unary: torch.Tensor, edge: torch.Tensor) -> torch.Tensor:
        masked = (x.masked_fill(~y, -torch.inf) for x, y in ((unary, legal.unary), (edge, legal.edge)))
        given = locally_normalised(Lattice(*masked, lattice.lengths))
        return path_score(given, candidates.labels)[candidates.valid]

    inputs = [torch.randn_like(x).requires_grad_() for x in (lattice.unary, lattice.edge)]
    assert torch.autograd.gradcheck(scores, inputs)


def test_gradients_are_finite(lattice: Lattice) -> None:
    unary, edge = lattice.unary.clone().requires_grad_(), lattice.edge.clone().requires_grad_()
    given = locally_normalised(Lattice(unary, edge, lattice.lengths))
    found = kbest(given, 3)
    path_score(given, found.labels)[found.valid].sum().backward()
    assert unary.grad.isfinite().all()
    assert edge.grad.isfinite().all()
    padding = torch.arange(unary.shape[1]) >= lattice.lengths.unsqueeze(1)
    assert not unary.grad[padding].any()
    if edge.shape[:2] == padding.shape:
        assert not edge.grad[padding].any()
        assert not edge.grad[:, 0].any()


def test_gradients_of_one_matrix_are_one_matrix() -> None:
    matrix = torch.randn(1, 1, 3, 3, requires_grad=True)
    lattice = Lattice(torch.randn(2, 5, 3), matrix.expand(2, 5, 3, 3), torch.tensor([5, 2]))
    given = locally_normalised(lattice)
    assert given.edge.shape == (1, 1, 3, 3)
    path_score(given, torch.zeros(2, 5, dtype=torch.int64)).sum().backward()
    torch.testing.assert_close(matrix.grad.sum(3), torch.zeros(1, 1, 3), rtol=0, atol=1e-6)  # conditionals sum to one
    assert matrix.grad[0, 0, 0].abs().min() > 0


# -- kinds of numbers and sizes --------------------------------------------------------------------------------


def test_long_sequences_of_high_scores_in_float32(documents: Lattice) -> None:
    single = Lattice((documents.unary + 1000).float(), documents.edge.float(), documents.lengths)
    double = Lattice(single.unary.double(), single.edge.double(), single.lengths)
    best = kbest(locally_normalised(double), 3)
    scores = path_score(locally_normalised(single), best.labels).double()
    torch.testing.assert_close(scores[best.valid], best.scores[best.valid], rtol=0, atol=2e-2)
    torch.testing.assert_close(log_partition(locally_normalised(double)), torch.zeros(6).double(), rtol=0, atol=1e-9)


def test_extreme_scores() -> None:
    unary = torch.tensor([[[-5000.0, -5001.0], [3000.0, -3000.0]]])
    edge = torch.tensor([[[[-9000.0, 0.0], [0.0, 4000.0]]]])
    given = locally_normalised(Lattice(unary, edge, torch.tensor([2])))
    scores = path_score(given, torch.tensor([[[0, 0], [0, 1], [1, 0]]]))
    torch.testing.assert_close(scores[0, 1], -torch.tensor(1.0).exp().log1p() + 1, rtol=0, atol=1e-3)
    assert scores[0, 0] < -2000
    torch.testing.assert_close(log_partition(given), torch.zeros(1), rtol=0, atol=1e-3)


@pytest.mark.parametrize("shape", [(0, 3, 2), (2, 0, 2), (2, 3, 1)])
def test_nothing_to_normalise(shape: tuple[int, int, int]) -> None:
    lengths = torch.full(shape[:1], shape[1])
    lattice = Lattice(torch.randn(shape, requires_grad=True), torch.randn(*shape, shape[2]), lengths)
    given = locally_normalised(lattice)
    assert given.unary.shape == shape
    torch.testing.assert_close(log_partition(given), torch.zeros(shape[0]), rtol=0, atol=1e-6)
