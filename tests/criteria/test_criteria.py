"""Criteria against hand-worked numbers, brute force over all labellings, and gradcheck."""

import inspect
import json
import math
from importlib import import_module
from pkgutil import iter_modules

import pytest
import torch

import structperc.criteria as package
from structperc.builder import Builder, describe
from structperc.chain import kbest
from structperc.criteria import (
    CorpusCriterion,
    CRFLoss,
    Criterion,
    DistillationLoss,
    ExponentialLoss,
    HingeLoss,
    LocalAndNonlocal,
    Logistic,
    MarginLoss,
    MaxMeasure,
    MCEFLoss,
    MCELoss,
    MEMMLoss,
    NBestRiskLoss,
    PerceptronLoss,
    PowerMean,
    RiskLoss,
    Sigmoid,
    SoftmaxMarginLoss,
    SoftMaxMeasure,
    TokenCrossEntropyLoss,
)
from structperc.criteria.base import InferenceCriterion
from structperc.criteria.mce import Measure, PowerRatio, Smoothing
from structperc.criteria.mce_f import SoftCounts, TokenCounts
from structperc.errors import InputError
from structperc.structures import Candidates, Lattice, Scored
from tests import oracle
from tests.criteria.batches import random_gold, random_lattice, row, scored_of


def mce_f(*args, **options):
    """At totals that are given, so that losses depend on the sequence alone."""
    criterion = MCEFLoss(*args, **options)
    criterion.totals = torch.tensor([3.0, 2.0, 1.5], dtype=torch.float64)
    return criterion


SUMS: list[Criterion] = [
    PerceptronLoss(),
    MarginLoss(2.0),
    HingeLoss(0.7),
    ExponentialLoss(),
    CRFLoss(),
    DistillationLoss(),
    DistillationLoss(gold_share=0.3),
    MEMMLoss(),
    TokenCrossEntropyLoss(),
    SoftmaxMarginLoss(0.7),
    RiskLoss(0.7),
    NBestRiskLoss(0.7),
    LocalAndNonlocal(2.0),
    MCELoss(),
    MCELoss(MaxMeasure(), Logistic(2.0, 0.3)),
    MCELoss(SoftMaxMeasure(), Sigmoid(0.7, -0.2)),
    MCELoss(SoftMaxMeasure(2.5, normalised=False), Logistic(0.5)),
    MCELoss(PowerMean(1.5), Logistic()),
    MCELoss(PowerRatio(0.8), Sigmoid(2.0, -2.0)),
]
CRITERIA: list[Criterion] = [*SUMS, mce_f(), mce_f(2.0, Sigmoid(0.8, 0.1), TokenCounts())]


def name_of(criterion):
    parts = [type(part).__name__ for part in criterion.modules()]
    return "-".join(parts)


def brute_force(criterion, lattice, gold, b):
    """Loss of sequence b from all its labellings."""
    n = int(lattice.lengths[b])
    right = tuple(gold[b, :n].tolist())
    if isinstance(criterion, MEMMLoss):
        return sum(cross_entropies(lattice, b, right))
    if isinstance(criterion, TokenCrossEntropyLoss):
        return sum(cross_entropies(lattice._replace(edge=0 * lattice.edge), b, right))
    everything = {path: score for score, path in oracle.sorted_paths(lattice, b)}
    others = {path: score for path, score in everything.items() if path != right}
    best_other = max(others.values())
    if isinstance(criterion, PerceptronLoss):
        return max(0.0, best_other - everything[right])
    if isinstance(criterion, MarginLoss | LocalAndNonlocal):
        gap = everything[right] - best_other
        return -gap if gap <= criterion.C else 0.0
    if isinstance(criterion, ExponentialLoss):  # of two candidates
        listed = sorted(everything, key=lambda path: -everything[path])[:2]
        return sum(math.exp(everything[path] - everything[right]) for path in listed if path != right)
    if isinstance(criterion, HingeLoss):
        cost = {path: sum(a != b for a, b in zip(path, right, strict=True)) for path in everything}
        return max(everything[path] + criterion.cost * cost[path] for path in everything) - everything[right]
    if isinstance(criterion, MCELoss):
        return smoothed(criterion.smoothing, misclassification(criterion.measure, everything, right))
    if isinstance(criterion, SoftmaxMarginLoss | RiskLoss | NBestRiskLoss):
        cost = {path: criterion.cost * sum(a != b for a, b in zip(path, right, strict=True)) for path in everything}
        if isinstance(criterion, SoftmaxMarginLoss):
            return math.log(sum(math.exp(everything[path] + cost[path]) for path in everything)) - everything[right]
        size = 2 if isinstance(criterion, NBestRiskLoss) else len(everything)
        listed = sorted(everything, key=lambda path: -everything[path])[:size]
        return sum(math.exp(everything[y]) * cost[y] for y in listed) / sum(math.exp(everything[y]) for y in listed)
    target = everything[right]
    if isinstance(criterion, DistillationLoss):  # of one candidate
        target = criterion.gold_share * target + (1 - criterion.gold_share) * max(everything.values())
    return math.log(sum(math.exp(score) for score in everything.values())) - target


def cross_entropies(lattice, b, right):
    """-log p of each label of gold given the one before."""
    for t, label in enumerate(right):
        scores = [float(score) for score in lattice.unary[b, t]]
        if t > 0:
            scores = [
                score + float(along) for score, along in zip(scores, lattice.edge[b, t, right[t - 1]], strict=True)
            ]
        yield math.log(sum(map(math.exp, scores))) - scores[label]


def misclassification(measure, everything, right):
    """d from the scores of all labellings; lists hold the two best ones."""
    gold, rivals = everything[right], [score for path, score in everything.items() if path != right]
    if isinstance(measure, MaxMeasure):
        return max(rivals) - gold
    if isinstance(measure, SoftMaxMeasure):
        A = 1 / len(rivals) if measure.normalised else 1
        return math.log(A * sum(math.exp(measure.psi * score) for score in rivals)) / measure.psi - gold
    listed = sorted(everything, key=lambda path: -everything[path])[:2]
    listed = [everything[path] for path in listed if path != right]
    total = sum(map(math.exp, [gold, *listed])) if isinstance(measure, PowerMean) else 1
    g, others = math.exp(gold) / total, [math.exp(score) / total for score in listed]
    mean = (sum(other**measure.psi for other in others) / len(others)) ** (1 / measure.psi)
    return mean - g if isinstance(measure, PowerMean) else mean / g


def smoothed(smoothing, d):
    x = smoothing.alpha * d + smoothing.beta
    return 1 / (1 + math.exp(-x)) if isinstance(smoothing, Sigmoid) else math.log(1 + math.exp(x)) / smoothing.alpha


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("criterion", SUMS, ids=name_of)
def test_losses_equal_brute_force(criterion, seed):
    lattice = random_lattice(seed)
    gold = random_gold(lattice, seed)
    if seed % 2:  # gold as the best labelling: margins count
        gold = kbest(lattice, 1).labels[:, 0]
    losses = criterion(scored_of(lattice, gold, criterion, max(1, criterion.min_candidates)))
    expected = [brute_force(criterion, lattice, gold, b) for b in range(5)]
    torch.testing.assert_close(losses, torch.tensor(expected, dtype=torch.float64))


@pytest.mark.parametrize("criterion", CRITERIA, ids=name_of)
def test_gradcheck(criterion):
    lattice = random_lattice(11, B=3, T=3, L=2, lengths=(3, 1, 2))
    gold = random_gold(lattice, 4)

    def losses(unary, edge):
        given = Lattice(unary, edge, lattice.lengths)
        return criterion(scored_of(given, gold, criterion, max(1, criterion.min_candidates)))

    unary, edge = lattice.unary.clone().requires_grad_(), lattice.edge.clone().requires_grad_()
    assert torch.autograd.gradcheck(losses, (unary, edge))


def test_rival_is_the_best_wrong_candidate():
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
    assert MarginLoss(5.0)(scored).tolist() == [-5.0, 3.0]
    assert MarginLoss(4.9)(scored).tolist() == [0.0, 3.0]
    assert PerceptronLoss()(scored).tolist() == [0.0, 3.0]


def test_no_update_with_one_possible_path():
    unary = torch.tensor([[[1.0, -torch.inf]]], requires_grad=True)
    lattice = Lattice(unary, torch.zeros(1, 1, 2, 2), torch.tensor([1]))
    gold = torch.zeros(1, 1, dtype=torch.int64)
    for criterion in CRITERIA:
        loss = criterion(scored_of(lattice, gold, criterion, 2)).sum()
        assert loss.item() == 0
        (gradient,) = torch.autograd.grad(loss, unary)
        assert not gradient.any()


def test_margin_needs_two_candidates():
    lattice = random_lattice(0)
    with pytest.raises(ValueError, match=r"MarginLoss .*K=1; .*search\.k >= 2"):
        MarginLoss(1.0)(scored_of(lattice, random_gold(lattice), MarginLoss(1.0), 1))


def test_bad_options_are_named():
    with pytest.raises(InputError, match="MarginLoss: C"):
        MarginLoss(-1)
    with pytest.raises(InputError, match="HingeLoss: cost"):
        HingeLoss(0)


@pytest.mark.parametrize("criterion", CRITERIA, ids=name_of)
def test_no_update_for_an_empty_sequence(criterion):
    lattice = random_lattice(0, B=2, lengths=(0, 4))
    unary = lattice.unary.requires_grad_()
    losses, acts = criterion.losses_and_updates(scored_of(lattice, random_gold(lattice), criterion, 2))
    assert losses[0].item() == 0
    assert not acts[0] or isinstance(
        criterion, CRFLoss | DistillationLoss | MEMMLoss | TokenCrossEntropyLoss | SoftmaxMarginLoss | RiskLoss
    )
    (gradient,) = torch.autograd.grad(losses.sum(), unary)
    assert not gradient[0].any()


def without_a_path():
    """Three lattices of five sequences, of which sequence 1, of three tokens, has no legal path."""
    for kind in ("token", "pair", "dead end"):
        lattice = random_lattice(8)
        if kind == "token":
            lattice.unary[1, 1] = -torch.inf
        elif kind == "pair":
            lattice.edge[1, 2] = -torch.inf
        else:  # each label is possible at its token, and may be followed: what follows leads nowhere
            lattice.edge[1, 1, :, 1:] = -torch.inf
            lattice.edge[1, 2, 0] = -torch.inf
        yield kind, lattice


@pytest.mark.parametrize("criterion", CRITERIA, ids=name_of)
def test_sequence_without_legal_path(criterion):
    for kind, lattice in without_a_path():
        if kind != "token" and isinstance(criterion, TokenCrossEntropyLoss):
            continue  # it does not look at pairs
        gold, k = random_gold(lattice), max(1, criterion.min_candidates)
        unary, edge = lattice.unary.requires_grad_(), lattice.edge.requires_grad_()
        losses = criterion(scored_of(lattice, gold, criterion, k))
        gradients = torch.autograd.grad(losses.sum(), (unary, edge), materialize_grads=True)
        assert losses[1] == 0, kind
        assert not any(gradient[1].any() for gradient in gradients), kind
        for b in (0, 2, 3, 4):
            alone = criterion(scored_of(row(lattice, b), gold[b : b + 1], criterion, k))
            torch.testing.assert_close(losses[b : b + 1], alone)
            of_one = torch.autograd.grad(alone.sum(), (unary, edge), materialize_grads=True)
            for whole, own in zip(gradients, of_one, strict=True):
                torch.testing.assert_close(whole[b], own[b])


@pytest.mark.parametrize("criterion", CRITERIA, ids=name_of)
def test_gradients_with_impossible_gold(criterion):
    lattice = random_lattice(9)
    gold = random_gold(lattice)
    lattice.unary[1, 1, gold[1, 1]] = -torch.inf
    unary, edge = lattice.unary.requires_grad_(), lattice.edge.requires_grad_()
    losses = criterion(scored_of(lattice, gold, criterion, max(1, criterion.min_candidates)))
    assert not losses.isnan().any()
    assert losses[1] != 0 or isinstance(criterion, MCEFLoss)
    gradients = torch.autograd.grad(losses.sum(), (unary, edge), materialize_grads=True)
    assert all(gradient.isfinite().all() for gradient in gradients)


@pytest.mark.parametrize("criterion", CRITERIA, ids=name_of)
def test_survives_a_description_in_json(criterion):
    again = Builder().part(json.loads(json.dumps(describe(criterion))), Criterion, "criterion")
    if isinstance(criterion, CorpusCriterion):
        again.totals = criterion.totals
        again.allocate(criterion.labels)
    lattice = random_lattice(2)
    scored = scored_of(lattice, random_gold(lattice), criterion, 2)
    assert torch.equal(again(scored), criterion(scored))
    assert again.min_candidates == criterion.min_candidates


def test_contract_covers_the_package():
    files = [import_module(f"{package.__name__}.{name}") for _, name, _ in iter_modules(package.__path__)]
    made = {value for file in files for value in vars(file).values() if inspect.isclass(value)}
    classes = [one for one in made if one.__module__.startswith(package.__name__)]
    bases = {base for cls in classes for base in cls.__mro__[1:]}
    parts = (Criterion, Measure, Smoothing, SoftCounts)
    concrete = {cls for cls in classes if issubclass(cls, parts) and cls not in bases}
    covered = {type(part) for criterion in CRITERIA for part in criterion.modules()}
    assert concrete - {InferenceCriterion} == covered  # what saved models of other criteria predict with
