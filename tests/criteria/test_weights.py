"""Weights of tokens, sequences and classes in criteria."""

import math

import pytest
import torch

from structperc.criteria import CRFLoss, HingeLoss, RiskLoss, TokenCosts, TokenCrossEntropyLoss
from structperc.data.labels import LabelSet
from structperc.errors import InputError
from tests.criteria.batches import random_gold, random_lattice, scored_of
from tests.criteria.test_costs import by_cost

WEIGHTS = torch.tensor([[2.0, 0.5, 0.0, 1.0]]).expand(5, 4)


@pytest.mark.parametrize("criterion", [CRFLoss(), HingeLoss(0.7)])
def test_weights_of_sequences(criterion):
    scored = scored_of(random_lattice(1), random_gold(random_lattice(1)), criterion, 2)
    plain, weights = criterion(scored), torch.tensor([2.0, 0.5, 0.0, 1.0, 3.0])
    found = criterion(scored._replace(weights=weights[:, None].expand(5, 4)))
    torch.testing.assert_close(found, plain * weights.double())


def test_weights_of_tokens_and_classes():
    lattice = random_lattice(2)
    gold, labels = random_gold(lattice, 2), LabelSet(("O", "B-X", "I-X"))
    criterion = TokenCrossEntropyLoss({"X": 3.0, "I-X": 4.0})
    found = criterion(scored_of(lattice, gold, criterion, 1)._replace(weights=WEIGHTS))
    logs = lattice.unary.log_softmax(2)
    for b, n in enumerate(lattice.lengths.tolist()):
        expected = -sum(WEIGHTS[b, t] * (1, 3, 4)[y] * logs[b, t, y] for t, y in enumerate(gold[b, :n].tolist()))
        assert float(found[b]) == pytest.approx(float(expected))
    with pytest.raises(InputError, match="Y"):
        TokenCrossEntropyLoss({"Y": 2.0}).allocate(labels)


def test_weights_of_tokens_in_the_risk():
    lattice, criterion = random_lattice(3), RiskLoss()
    gold = random_gold(lattice, 3)
    found = criterion(scored_of(lattice, gold, criterion, 1)._replace(weights=WEIGHTS))
    for b, n in enumerate(lattice.lengths.tolist()):
        costs = TokenCosts()
        terms = costs.terms(gold[b : b + 1, :n], torch.ones(1, n).bool(), 3)
        costs.terms = lambda *_, terms=terms, n=n: terms * WEIGHTS[0, :n, None]
        paths = by_cost(lattice, gold, b, costs)
        Z = sum(math.exp(score) for score, _ in paths)
        assert float(found[b]) == pytest.approx(sum(math.exp(score) / Z * cost for score, cost in paths))
