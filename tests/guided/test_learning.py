"""Learning against the reference: the same whole numbers in all weights, and in the sums of their averages."""

import copy
import dataclasses
import random

import pytest
import torch

from structperc.guided import Aggressive
from structperc.guided.model import EarlyUpdate, GuidedOptimizer
from tests.guided.tagged import batch_of, model_of, reference_of, sentences, weights_of

ORDERS = ["easiest", "left-to-right"]
RULES = {
    "aggressive": Aggressive(),
    "margin": Aggressive(margin=3),
    "limit": Aggressive(limit=1),
    "early": EarlyUpdate(),
}
CONTEXTS = ([], ["t[-1] w[1]", "t[2]", "t[-2] t[2]"], ["shen2007_a"], ["shen2007_b"], ["shen2007_e"])
each_rule = pytest.mark.parametrize("rule", RULES.values(), ids=RULES)


def visit(reference, rule, sentence):
    if isinstance(rule, EarlyUpdate):
        return reference.learn_early(sentence)
    return reference.learn(sentence, rule.margin, rule.limit)


def epochs(n, templates, made, L, **options):
    """A model that has learned sentence by sentence, and the reference, checked to say the same on the way."""
    model = model_of(templates, L, **options)
    reference = reference_of(model)
    for sentence in made * n:
        assert tuple(model.learn(batch_of([sentence]))) == visit(reference, model.rule, sentence)
    return model, reference


def named(weights):
    return {name: value for name, value in weights.items() if value}


def same_weights(model, reference):
    """The weights, their sums over all decisions, and the averages that the model serves."""
    names = set().union(*reference.history)
    assert named(weights_of(model, names)) == named(reference.weights)
    N = len(reference.history)
    assert model.steps == N
    assert named(weights_of(summed(model), names)) == named(reference.total())
    with model.updates.evaluation_weights():
        averages = weights_of(model, names)
    assert averages == pytest.approx({name: value / N for name, value in reference.total().items()}, rel=1e-6)
    assert named(weights_of(model, names)) == named(reference.weights)  # back again


def summed(model):
    """A copy whose weights are the sums over all decisions."""
    model = copy.deepcopy(model).double()
    with torch.no_grad():
        for p in (model.static.node, model.context.table):
            p.mul_(model.steps).sub_(model.sums(p))
    return model


@each_rule
@pytest.mark.parametrize(("beam", "order"), [(1, "easiest"), (2, "left-to-right"), (9, "easiest")])
def test_same_weights_as_the_reference(beam, order, rule):
    for seed, templates in enumerate(CONTEXTS[beam % 2 :: 2], 10 * beam):
        L, made = 2 + seed % 4, sentences(seed, 4, 2 + seed % 4, longest=7)
        model, reference = epochs(1, templates, made, L, beam=beam, order=order, rule=rule)
        same_weights(model, reference)
        assert any(reference.weights.values())


@pytest.mark.parametrize("rule", [RULES["aggressive"], RULES["early"]], ids=["aggressive", "early"])
def test_weights_of_sentences(rule):
    made = sentences(40, 6, 3, longest=6)
    for number, sentence in enumerate(made):
        sentence.weight = (2, 0.5, 3)[number % 3]
    model, reference = epochs(2, ["shen2007_c"], made, 3, beam=2, rule=rule)
    same_weights(model, reference)
    before = copy.deepcopy(model.static.node)
    assert model.learn(batch_of([dataclasses.replace(one, weight=0) for one in made])) == (0, 0, 0)
    assert torch.equal(before, model.static.node)


@pytest.mark.parametrize("rule", [Aggressive(margin=3), EarlyUpdate()], ids=["margin", "early"])
def test_sets_of_allowed_labels(rule):
    beam = 3
    for seed, templates in enumerate(CONTEXTS[1:4], 100 * beam):
        draw, made = random.Random(seed), sentences(seed, 4, 4, longest=6)
        for sentence in made:
            sentence.allowed = [[label == y or draw.random() < 0.3 for label in range(4)] for y in sentence.gold]
        same_weights(*epochs(2, templates, made, 4, beam=beam, rule=rule))


@pytest.mark.parametrize("margin", [0, 3])
def test_sets_of_one_label(margin):
    made = sentences(21, 6, 3, longest=6)
    own, other = (model_of(["shen2007_c"], 3, beam=3, rule=Aggressive(margin=margin)) for _ in range(2))
    for _ in range(2):
        batch = batch_of(made)
        counts = own.learn(batch)
        sets = torch.nn.functional.one_hot(batch.gold.clamp(max=2), 3).bool()
        assert other.learn(batch._replace(allowed=sets)) == counts
    assert all(torch.equal(p, q) for p, q in zip(own.parameters(), other.parameters(), strict=True))


@pytest.mark.parametrize(("rule", "order"), [(RULES["margin"], ORDERS[0]), (RULES["early"], ORDERS[1])])
def test_mini_batches_equal_single_sentences(order, rule):
    """To the same bits, whatever the size: a sentence sees the weights that the one before left."""
    made = sentences(30, 11, 3)
    whole, halves, alone = (model_of(["shen2007_c"], 3, beam=2, order=order, rule=rule) for _ in range(3))
    for _ in range(2):
        progress = [alone.learn(batch_of([sentence])) for sentence in made]
        assert whole.learn(batch_of(made, spare=1)) == tuple(map(sum, zip(*progress, strict=True)))
        for part in (made[:5], made[5:]):
            halves.learn(batch_of(part))
    for model in (whole, halves):
        assert model.steps == alone.steps
        for p, q in zip(model.parameters(), alone.parameters(), strict=True):
            assert torch.equal(p, q)
            assert torch.equal(model.sums(p), alone.sums(q))


@pytest.mark.parametrize("dtype", [torch.bfloat16, pytest.param(torch.float64, marks=pytest.mark.long)])
def test_weights_of_other_precision(dtype):
    """Small whole numbers, which all of them have; what is compiled reads bfloat16 as float32."""
    made = batch_of(sentences(14, 6, 3))
    own, other = model_of(["shen2007_c"], 3), model_of(["shen2007_c"], 3).to(dtype)
    assert own.learn(made) == other.learn(made)
    for p, q in zip(own.parameters(), other.parameters(), strict=True):
        assert torch.equal(p.to(dtype), q)
        assert torch.equal(own.sums(p), other.sums(q))
    assert all(torch.equal(a, b) for a, b in zip(own.decode(made), other.decode(made), strict=True))


@each_rule
def test_without_averages_nothing_is_added_up(rule):
    made = batch_of(sentences(15, 6, 3))
    own, plain = (model_of(["shen2007_c"], 3, rule=rule) for _ in range(2))
    plain.updates = GuidedOptimizer(plain.parameters(), average=False)
    assert own.learn(made) == plain.learn(made)
    assert own.steps == plain.steps
    assert all(torch.equal(p, q) for p, q in zip(own.parameters(), plain.parameters(), strict=True))
    assert not plain.updates.state
