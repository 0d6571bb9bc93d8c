"""Weights of tokens, sequences and classes in criteria."""

import math

import pytest
import torch

from structperc.criteria import CRFLoss, HingeLoss, MCEFLoss, MEMMLoss, RiskLoss, TokenCosts, TokenCrossEntropyLoss
from structperc.data.labels import LabelSet
from structperc.errors import InputError
from tests.criteria.batches import random_gold, random_lattice, scored_of
from tests.criteria.test_costs import by_cost
from tests.oracle import label_sequences, score

WEIGHTS = torch.tensor([[2.0, 0.5, 0.0, 1.0]]).expand(5, 4)


@pytest.mark.parametrize("criterion", [CRFLoss(), HingeLoss(0.7)])
def test_weights_of_sequences(criterion):
    scored = scored_of(random_lattice(1), random_gold(random_lattice(1)), criterion, 2)
    plain, weights = criterion(scored), torch.tensor([2.0, 0.5, 0.0, 1.0, 3.0])
    found = criterion(scored._replace(weights=weights[:, None].expand(5, 4)))
    torch.testing.assert_close(found, plain * weights.double())


def test_weights_of_sequences_in_a_corpus_criterion():
    """A sequence of weight 2 counts as two sequences."""
    lattice, criterion = random_lattice(1), MCEFLoss(memory=0)
    gold, times = random_gold(lattice), torch.tensor([2, 1, 0, 1, 3])
    rows = torch.arange(5).repeat_interleave(times)
    copies = lattice._replace(unary=lattice.unary[rows], edge=lattice.edge[rows], lengths=lattice.lengths[rows])
    expected = criterion(scored_of(copies, gold[rows], criterion, 2))
    weights = times.float()[:, None].expand(5, 4)
    found = criterion(scored_of(lattice, gold, criterion, 2)._replace(weights=weights))
    torch.testing.assert_close(found, torch.zeros(5).double().index_add(0, rows, expected))


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


def test_weights_of_tokens_in_the_local_likelihood():
    lattice, criterion = random_lattice(4), MEMMLoss()
    gold = random_gold(lattice, 4)

    def loss(unary, edge, weights=WEIGHTS):
        scored = scored_of(lattice._replace(unary=unary, edge=edge), gold, criterion, 1)
        return criterion(scored._replace(weights=weights))

    found = loss(lattice.unary, lattice.edge)
    for b, n in enumerate(lattice.lengths.tolist()):
        expected = 0.0
        for t in range(n):  # a softmax over the labels that follow the gold label before
            scores = lattice.unary[b, t] + (lattice.edge[b, t, gold[b, t - 1]] if t else 0)
            expected -= float(WEIGHTS[b, t] * scores.log_softmax(0)[gold[b, t]])
        assert float(found[b]) == pytest.approx(expected)
    plain = criterion(scored_of(lattice, gold, criterion, 1))
    torch.testing.assert_close(loss(lattice.unary, lattice.edge, torch.full((5, 4), 2.0)), 2 * plain)
    scores = lattice.unary.clone().requires_grad_(), lattice.edge.clone().requires_grad_()
    torch.autograd.gradcheck(loss, scores)


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


@pytest.mark.parametrize("incomplete", [False, True])
def test_confidences_by_enumeration(incomplete):
    lattice, criterion = random_lattice(5), CRFLoss(confidences=True)
    gold, w = random_gold(lattice, 5), torch.tensor([[0.3, 1.0, 0.0, 0.9]]).expand(5, 4)
    allowed = torch.nn.functional.one_hot(gold, 3).bool()
    if incomplete:
        allowed = allowed | (torch.arange(3) == 1)
    scored = scored_of(lattice, gold, criterion, 1)._replace(weights=w, allowed=allowed if incomplete else None)
    found = criterion(scored)
    for b, n in enumerate(lattice.lengths.tolist()):
        Z = right = 0.0
        for path in label_sequences(n, 3):
            p = math.exp(score(lattice, b, path))
            Z += p
            right += p * math.prod(1.0 if allowed[b, t, y] else 1 - float(w[b, t]) for t, y in enumerate(path))
        assert float(found[b]) == pytest.approx(math.log(Z / right))
    whole = scored._replace(weights=torch.ones(5, 4), allowed=None)
    torch.testing.assert_close(criterion(whole), CRFLoss()(whole))
    torch.testing.assert_close(criterion(whole._replace(weights=torch.zeros(5, 4))), torch.zeros(5).double())


def test_confidences_have_gradients():
    lattice, criterion = random_lattice(6), CRFLoss(confidences=True)
    gold = random_gold(lattice, 6)
    scored = scored_of(lattice, gold, criterion, 1)._replace(weights=torch.tensor([[0.5, 1.0, 0.0, 0.8]]).expand(5, 4))
    unary = lattice.unary.clone().requires_grad_()
    torch.autograd.gradcheck(lambda x: criterion(scored._replace(lattice=lattice._replace(unary=x))), unary)
