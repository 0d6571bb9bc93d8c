"""Criteria against hand-worked numbers, brute force over all labellings, and gradcheck."""

import itertools
import math

import pytest
import torch

from structperc.chain import kbest, path_score
from structperc.criteria import Criterion, Hinge, Likelihood, LocalAndNonlocal, Margin, Perceptron
from structperc.errors import InputError
from structperc.structures import Candidates, Lattice, Scored

CRITERIA: list[Criterion] = [Perceptron(), Margin(2.0), Hinge(0.7), Likelihood(), LocalAndNonlocal(2.0)]


def random_lattice(seed, B=5, T=4, L=3, lengths=(4, 3, 1, 2, 4)):
    generator = torch.Generator().manual_seed(seed)
    unary = torch.randn(B, T, L, generator=generator, dtype=torch.float64)
    edge = torch.randn(B, T, L, L, generator=generator, dtype=torch.float64)
    return Lattice(unary, edge, torch.tensor(lengths))


def random_gold(lattice, seed=0):
    B, T, L = lattice.unary.shape
    gold = torch.randint(0, L, (B, T), generator=torch.Generator().manual_seed(seed))
    return gold.where(torch.arange(T) < lattice.lengths[:, None], 0)


def scored_of(lattice, gold, criterion, k):
    with torch.no_grad():
        candidates = kbest(criterion.augment(lattice, gold), k)
    scores = path_score(lattice, torch.cat([gold[:, None], candidates.labels], 1))
    zeros = torch.zeros_like(scores)
    return Scored(lattice, gold, candidates, scores[:, 0], scores[:, 1:], zeros[:, 0], zeros[:, 1:])


def labellings(lattice, b):
    n, L = int(lattice.lengths[b]), lattice.unary.shape[2]
    for path in itertools.product(range(L), repeat=n):
        score = sum(float(lattice.unary[b, t, path[t]]) for t in range(n))
        score += sum(float(lattice.edge[b, t, path[t - 1], path[t]]) for t in range(1, n))
        yield path, score


def brute_force(criterion, lattice, gold, b):
    """Loss of sequence b from all its labellings."""
    n = int(lattice.lengths[b])
    right = tuple(gold[b, :n].tolist())
    everything = dict(labellings(lattice, b))
    others = {path: score for path, score in everything.items() if path != right}
    best_other = max(others.values())
    if isinstance(criterion, Perceptron):
        return max(0.0, best_other - everything[right])
    if isinstance(criterion, Margin | LocalAndNonlocal):
        gap = everything[right] - best_other
        return -gap if gap <= criterion.C else 0.0
    if isinstance(criterion, Hinge):
        cost = {path: sum(a != b for a, b in zip(path, right, strict=True)) for path in everything}
        return max(everything[path] + criterion.cost * cost[path] for path in everything) - everything[right]
    return math.log(sum(math.exp(score) for score in everything.values())) - everything[right]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("criterion", CRITERIA, ids=lambda c: type(c).__name__)
def test_losses_equal_brute_force(criterion, seed):
    lattice = random_lattice(seed)
    gold = random_gold(lattice, seed)
    if seed % 2:  # gold as the best labelling: margins count
        gold = kbest(lattice, 1).labels[:, 0]
    losses = criterion(scored_of(lattice, gold, criterion, max(1, criterion.rivals_needed)))
    expected = [brute_force(criterion, lattice, gold, b) for b in range(5)]
    torch.testing.assert_close(losses, torch.tensor(expected, dtype=torch.float64))


@pytest.mark.parametrize("criterion", CRITERIA, ids=lambda c: type(c).__name__)
def test_batch_equals_singles(criterion):
    lattice, k = random_lattice(3), max(1, criterion.rivals_needed)
    gold = random_gold(lattice)
    together = criterion(scored_of(lattice, gold, criterion, k))
    for b in range(5):
        single = Lattice(*(x[b : b + 1] for x in lattice))
        alone = criterion(scored_of(single, gold[b : b + 1], criterion, k))
        torch.testing.assert_close(together[b : b + 1], alone)


@pytest.mark.parametrize("criterion", CRITERIA, ids=lambda c: type(c).__name__)
def test_gradcheck(criterion):
    lattice = random_lattice(11, B=3, T=3, L=2, lengths=(3, 1, 2))
    gold = random_gold(lattice, 4)

    def losses(unary, edge):
        given = Lattice(unary, edge, lattice.lengths)
        return criterion(scored_of(given, gold, criterion, max(1, criterion.rivals_needed)))

    unary, edge = lattice.unary.clone().requires_grad_(), lattice.edge.clone().requires_grad_()
    assert torch.autograd.gradcheck(losses, (unary, edge))


@pytest.mark.parametrize("criterion", [Perceptron(), Margin(2.0), Hinge(0.7)], ids=lambda c: type(c).__name__)
def test_gradient_is_rival_minus_gold_where_the_criterion_acts(criterion):
    lattice = random_lattice(5)
    unary = lattice.unary.requires_grad_()
    gold = random_gold(lattice, 1)
    scored = scored_of(lattice, gold, criterion, 2)
    criterion(scored).sum().backward()
    acts = criterion.judge(scored)[1]
    assert acts.any()
    for b in range(5):
        n = int(lattice.lengths[b])
        assert unary.grad[b].sum() == 0
        assert (unary.grad[b, torch.arange(n), gold[b, :n]] <= 0).all()
        if not acts[b]:
            assert not unary.grad[b].any()


def test_rival_is_the_first_if_wrong_else_the_second():
    lengths = torch.tensor([2, 2])
    lattice = Lattice(torch.zeros(2, 2, 3), torch.zeros(2, 2, 3, 3), lengths)
    candidates = Candidates(
        torch.tensor([[[0, 1], [2, 2]], [[0, 1], [2, 2]]]),
        torch.zeros(2, 2),
        torch.ones(2, 2, dtype=torch.bool),
    )
    gold = torch.tensor([[0, 1], [1, 1]])  # the first candidate; none of them
    scores = torch.tensor([[9.0, 4.0], [9.0, 4.0]])
    scored = Scored(lattice, gold, candidates, torch.tensor([9.0, 6.0]), scores, torch.zeros(2), torch.zeros(2, 2))
    assert Margin(5.0)(scored).tolist() == [-5.0, 3.0]
    assert Margin(4.9)(scored).tolist() == [0.0, 3.0]
    assert Perceptron()(scored).tolist() == [0.0, 3.0]


def test_non_local_scores_choose_the_rival():
    lattice = Lattice(torch.zeros(1, 1, 3), torch.zeros(1, 1, 3, 3), torch.tensor([1]))
    candidates = Candidates(torch.tensor([[[0], [1], [2]]]), torch.zeros(1, 3), torch.ones(1, 3, dtype=torch.bool))
    scored = Scored(
        lattice,
        torch.tensor([[0]]),
        candidates,
        torch.tensor([3.0]),
        torch.tensor([[3.0, 2.0, 1.0]]),
        torch.tensor([0.5]),
        torch.tensor([[0.5, 0.0, 4.0]]),
    )
    assert Perceptron()(scored).item() == pytest.approx(5.0 - 3.5)
    assert Margin(100.0)(scored).item() == pytest.approx(5.0 - 3.5)


def test_sequence_with_one_possible_labelling_asks_for_nothing():
    unary = torch.tensor([[[1.0, -torch.inf]]], requires_grad=True)
    lattice = Lattice(unary, torch.zeros(1, 1, 2, 2), torch.tensor([1]))
    gold = torch.zeros(1, 1, dtype=torch.int64)
    for criterion in (Perceptron(), Margin(3.0), Hinge(), Likelihood()):
        loss = criterion(scored_of(lattice, gold, criterion, 2)).sum()
        assert loss.item() == 0
        (gradient,) = torch.autograd.grad(loss, unary)
        assert not gradient.any()


def test_margin_asks_for_two_candidates():
    lattice = random_lattice(0)
    with pytest.raises(ValueError, match=r"Margin needs a rival: search gave K=1; set search.k >= 2"):
        Margin(1.0)(scored_of(lattice, random_gold(lattice), Margin(1.0), 1))


def test_bad_options_are_named():
    with pytest.raises(InputError, match="Margin: C"):
        Margin(-1)
    with pytest.raises(InputError, match="Hinge: cost"):
        Hinge(0)


def test_contract_covers_every_criterion_of_the_package():
    import structperc.criteria as package

    concrete = {name for name in package.__all__ if name not in ("Criterion", "RivalCriterion")}
    assert concrete == {type(c).__name__ for c in CRITERIA}
