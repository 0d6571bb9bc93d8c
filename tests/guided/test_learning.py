"""Learning against the reference: the same whole numbers in all weights, and in the sums of their averages."""

import copy

import pytest
import torch
from reference import Sentence
from tagged import batch_of, model_of, reference_of, sentences, weights_of

from structperc.guided import Aggressive, EarlyUpdate

ORDERS = ["easiest", "left-to-right"]
RULES = {
    "aggressive": Aggressive(),
    "margin": Aggressive(margin=3),
    "limit": Aggressive(limit=1),
    "early": EarlyUpdate(),
}
each_rule = pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
each_order = pytest.mark.parametrize("order", ORDERS)


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
    with model.updates.averaged():
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
@each_order
@pytest.mark.parametrize(("beam", "templates"), enumerate([["t[-1] w[1]", "t[2]"], ["shen2007_b"], ["shen2007_e"]], 1))
def test_same_weights_as_the_reference(templates, beam, order, rule):
    L, made = 2 + beam, sentences(beam, 5, 2 + beam, longest=7)
    model, reference = epochs(1, templates, made, L, beam=beam, order=order, rule=rule)
    same_weights(model, reference)
    assert any(reference.weights.values())


@each_rule
def test_several_epochs(rule):
    made = sentences(20, 4, 3, longest=5)
    same_weights(*epochs(3, ["shen2007_c"], made, 3, beam=2, rule=rule))


@each_order
def test_mini_batches_of_one_sentence_again_and_again(order):
    """Copies of a sentence, learned together, choose alike: the step is as many times as large."""
    made = sentences(8, 5, 3)
    one, four = (model_of(["shen2007_c"], 3, order=order) for _ in range(2))
    for sentence in made:
        alone, together = one.learn(batch_of([sentence])), four.learn(batch_of([sentence] * 4))
        assert together == tuple(4 * count for count in alone)
        for a, b in zip(one.parameters(), four.parameters(), strict=True):
            assert torch.equal(4 * a, b)


@each_order
@pytest.mark.parametrize("limit", [1, 10])
def test_mini_batches_of_different_sentences(order, limit):
    model = model_of(["shen2007_c"], 3, beam=2, order=order, rule=Aggressive(limit=limit))
    reference = reference_of(model)
    for made in (sentences(30, 4, 3), sentences(31, 1, 3), sentences(32, 6, 3, longest=6)):
        model.learn(batch_of(made, spare=1))
        reference.learn_together(made, limit)
    same_weights(model, reference)


@each_rule
@each_order
def test_mini_batches_of_sentences_that_share_nothing(order, rule):
    """They do together what they do one after the other: without common features nobody meets another's updates."""
    made = [apart(i, s) for i, s in enumerate(sentences(13, 4, 3, longest=6))]
    templates = ["t[-1] w[0]", "t[-2] t[-1] w[0]", "t[1] t[2] w[0]", "t[-1] t[1] w[0]"]
    together, alone = (model_of(templates, 3, order=order, rule=rule) for _ in range(2))
    for _ in range(2):
        progress = [alone.learn(batch_of([sentence])) for sentence in made]
        assert together.learn(batch_of(made)) == tuple(map(sum, zip(*progress, strict=True)))
        assert all(torch.equal(a, b) for a, b in zip(together.parameters(), alone.parameters(), strict=True))
    assert together.steps == alone.steps


def apart(i, sentence):
    """A sentence that has three features and its words for itself."""
    static = [[str(3 * i + int(f) % 3) for f in own[:1]] for own in sentence.static]
    return Sentence([f"{word}{i}" for word in sentence.words], static, sentence.gold)
