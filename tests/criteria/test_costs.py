"""Costs against an alignment written out in Python, and losses with costs against all label sequences."""

import itertools
import json
import math

import pytest
import torch

from structperc.builder import Builder, describe
from structperc.chain import kbest
from structperc.chain.lattices import map_scores
from structperc.criteria import (
    CRFLoss,
    Criterion,
    EntityRatio,
    HingeLoss,
    NBestRiskLoss,
    RiskLoss,
    SegmentCosts,
    SoftmaxMarginLoss,
    TokenCosts,
    TokenCrossEntropyLoss,
)
from structperc.criteria.base import score_candidates
from structperc.criteria.costs import Costs
from structperc.data.labels import LabelSet
from structperc.data.tag_schemes import spans
from structperc.errors import InputError
from structperc.structures import Lattice
from tests import oracle
from tests.criteria.batches import random_gold, random_lattice, row, scored_of

TWO_TYPES = LabelSet.from_corpus(["B-X", "B-Y"], "IOB2")
NUMBERS = {"missed": 5.0, "spurious": 1.5, "wrong_type": 2.0, "wrong_boundary": 3.0}


def legal(labels, T):
    """All legal label sequences of T tokens, (N, T)."""
    start, step, end = labels.allowed
    paths = itertools.product(range(len(labels)), repeat=T)
    return torch.tensor(
        [p for p in paths if start[p[0]] and end[p[-1]] and all(step[a, b] for a, b in itertools.pairwise(p))]
    )


def alignment_cost(gold, predicted, numbers):
    """The definition of SegmentCosts, of two lists of labels; numbers by type."""
    total, right, found = 0.0, spans(gold), spans(predicted)

    def overlap(a, b):
        return a[1] < b[2] and b[1] < a[2]

    for kind, start, end in right:
        same = [one for one in found if one[1:] == (start, end)]
        if same:
            total += numbers[kind]["wrong_type"] * (same[0][0] != kind)
        else:
            hit = any(overlap((kind, start, end), one) for one in found)
            total += numbers[kind]["wrong_boundary" if hit else "missed"]
    return total + sum(numbers[one[0]]["spurious"] for one in found if not any(overlap(one, other) for other in right))


@pytest.mark.parametrize(("scheme", "T"), [("IOB2", 4), ("IOBES", 3)])
def test_segment_costs(scheme, T):
    labels = LabelSet.from_corpus(["B-X", "B-Y"], scheme)
    costs = SegmentCosts(**NUMBERS, types={"Y": {"missed": 7.0, "spurious": 0.5}})
    costs.allocate(labels)
    numbers = {"X": NUMBERS, "Y": {**NUMBERS, "missed": 7.0, "spurious": 0.5}}
    paths = legal(labels, T)
    N, L = len(paths), len(labels)
    names = [labels.decode(path) for path in paths]
    gold, real = torch.cat([paths, torch.zeros(N, 1).long()], 1), torch.arange(T + 1).expand(N, -1) < T
    others = torch.cat([paths, torch.full((N, 1), 1)], 1).expand(N, -1, -1)
    found = costs(gold, others, real, L)
    expected = torch.tensor([[alignment_cost(a, b, numbers) for b in names] for a in names]).double()
    torch.testing.assert_close(found, expected)
    sums = Costs.forward(costs, gold, others, real, L)
    assert (sums >= expected).all()
    assert (sums.diagonal() == 0).all()
    assert (sums == expected).double().mean() > 0.4


def test_terms_equal_alignment_for_single_errors():
    costs = SegmentCosts(**NUMBERS)
    costs.allocate(TWO_TYPES)
    gold = "B-X I-X I-X O B-Y O"
    for predicted, cost in {
        "O O O O B-Y O": 5.0,
        "B-Y I-Y I-Y O B-Y O": 2.0,
        "B-X I-X O O B-Y O": 3.0,
        "B-X I-X I-X I-X B-Y O": 3.0,
        "B-X I-X I-X O B-X B-X": 3.5,
        "O B-X I-X O B-Y O": 5.0,  # too late: counts as missed
    }.items():
        right, found = (torch.from_numpy(TWO_TYPES.encode(one.split()))[None] for one in (gold, predicted))
        assert Costs.forward(costs, right, found[None], torch.ones(1, 6).bool(), 5).item() == cost


def test_token_costs_by_label_and_type():
    costs = TokenCosts(1.0, {"X": 2.0, "O,Y": 3.0, "B-X,O": 4.0})
    costs.allocate(TWO_TYPES)
    assert TWO_TYPES.names == ("O", "B-X", "I-X", "B-Y", "I-Y")
    assert costs.table.tolist() == [
        [0, 1, 1, 3, 3],
        [4, 0, 2, 2, 2],
        [2, 2, 0, 2, 2],
        [1, 1, 1, 0, 1],
        [1, 1, 1, 1, 0],
    ]


@pytest.mark.parametrize(
    "make",
    [
        lambda: TokenCosts(-1.0),
        lambda: TokenCosts(1.0, {"Z": 2.0}).allocate(TWO_TYPES),
        lambda: TokenCosts(1.0, {"X,": 2.0}).allocate(TWO_TYPES),
        lambda: SegmentCosts(types={"X": {"lost": 1.0}}),
        lambda: SegmentCosts(types={"Z": {"missed": 1.0}}).allocate(TWO_TYPES),
        lambda: SegmentCosts().allocate(LabelSet(("O", "I-X"), "IOB1")),
        lambda: RiskLoss(0.0),
        lambda: RiskLoss(temperature=0.0),
        lambda: SoftmaxMarginLoss(-1.0),
    ],
)
def test_errors(make):
    with pytest.raises(InputError):
        make()


def by_cost(lattice, gold, b, costs):
    """Score and cost, as the sum of the terms, of all label sequences of a row."""
    n = int(lattice.lengths[b])
    real, L = torch.ones(1, n).bool(), lattice.unary.shape[2]
    terms = costs.terms(gold[b : b + 1, :n], real, L)[0]
    return [
        (score, sum(float(terms[t, y]) for t, y in enumerate(path))) for score, path in oracle.sorted_paths(lattice, b)
    ]


COSTS = [TokenCosts(0.7), TokenCosts(0.5, {"X": 2.0, "B-X,O": 4.0}), SegmentCosts(2.0, 1.0, 3.0, 0.5)]


@pytest.mark.parametrize("costs", COSTS)
def test_losses_with_costs(costs):
    lattice = random_lattice(3)
    gold = random_gold(lattice, 3)
    hinge, soft, risk, several = HingeLoss(costs), SoftmaxMarginLoss(costs), RiskLoss(costs, 1.5), NBestRiskLoss(costs)
    losses = [one(scored_of(lattice, gold, one, 100)) for one in (hinge, soft, risk, several)]
    scored = scored_of(lattice, gold, several, 100)
    exact = costs(gold, scored.candidates.labels, torch.arange(4) < lattice.lengths[:, None], 3)
    for b in range(len(gold)):
        right = oracle.score(lattice, b, tuple(gold[b, : lattice.lengths[b]].tolist()))
        paths = by_cost(lattice, gold, b, costs)
        weights = [math.exp(score / 1.5) for score, _ in paths]
        mean = sum(w * cost for w, (_, cost) in zip(weights, paths, strict=True)) / sum(weights)
        p = scored.candidate_scores[b].where(scored.candidates.valid[b], -torch.inf).softmax(0)
        expected = [
            max(score + cost for score, cost in paths) - right,
            math.log(sum(math.exp(score + cost) for score, cost in paths)) - right,
            mean,
            float((p * exact[b]).sum()),
        ]
        assert [float(loss[b]) for loss in losses] == pytest.approx(expected)


@pytest.mark.parametrize("criterion", [SoftmaxMarginLoss(COSTS[2]), RiskLoss(COSTS[1], 0.8), NBestRiskLoss(COSTS[2])])
def test_gradients(criterion):
    lattice = row(random_lattice(1, T=3, lengths=(3, 3, 3, 3, 3)), 0)
    gold = torch.tensor([[1, 2, 0]])
    criterion.allocate(LabelSet(("O", "B-X", "I-X")))

    def loss(unary, edge):
        scores = Lattice(unary, edge, lattice.lengths)
        return criterion(score_candidates(scores, gold, kbest(map_scores(torch.Tensor.detach, scores), 5)))

    inputs = lattice.unary.requires_grad_(), lattice.edge.requires_grad_()
    assert torch.autograd.gradcheck(loss, inputs)


# -- saved options -----------------------------------------------------------------------------------------------------

SAVED = {
    "token costs": lambda: HingeLoss(TokenCosts(1.0, {"X,O": 5.0})),
    "segment costs": lambda: SoftmaxMarginLoss(SegmentCosts(types={"Y": {"missed": 5.0}})),
    "risk": lambda: NBestRiskLoss(SegmentCosts(missed=2.0)),
    "class weights": lambda: TokenCrossEntropyLoss(class_weights={"X": 2.0}),
    "missed entities": lambda: CRFLoss(missed_share=0.5),
    "share of entities": lambda: CRFLoss(EntityRatio()),
}


@pytest.mark.parametrize("name", SAVED)
def test_described_in_json(name):
    description = json.loads(json.dumps(describe(SAVED[name]())))
    again = Builder().part(description, Criterion, "criterion")
    again.allocate(TWO_TYPES)
    assert describe(again) == description
