"""When learning accepts, corrects and stops."""

import pytest
import torch

from structperc.errors import InputError
from structperc.guided import Aggressive
from structperc.guided.model import EarlyUpdate
from tests.guided.reference import Sentence
from tests.guided.tagged import batch_of, model_of, sentences, set_weights

RULES = {"aggressive": Aggressive(), "margin": Aggressive(margin=3), "early": EarlyUpdate()}
each_rule = pytest.mark.parametrize("rule", RULES.values(), ids=RULES)


def separable(seed):
    """Sentences whose labels a linear model gives: that of the token's highest feature, by its number."""
    made = sentences(seed, 8, 3, longest=4)
    return [Sentence(s.words, s.static, [max(map(int, own)) % 3 for own in s.static]) for s in made]


def test_separable_sentences():
    """Convergence: when a pass makes no update, inference takes the same decisions and gives gold."""
    made = separable(4)
    for options in ({}, {"rule": Aggressive(margin=5)}, {"order": "left-to-right"}, {"rule": EarlyUpdate()}):
        model = model_of(["shen2007_c"], 3, **options)
        batch = batch_of(made)
        assert any(model.learn(batch).updates == 0 for _ in range(60))
        assert torch.equal(model.decode(batch).labels, batch.gold.where(batch.gold < 999, 0))


def test_gold_below_a_hypothesis_of_its_state():
    """Token 2 closes the gap between 0, 1 and 3, 4; its label is not seen from outside, so that the wrong one, which
    scores higher, is the state's only hypothesis. That there is room for more states changes nothing."""
    model = model_of([], 2, beam=20, rule=EarlyUpdate())
    weights = {("2", 1): 5, ("2", 0): 4, ("5", 0): 1, ("6", 0): 1}
    set_weights(model, weights | {(token, 0): 10 for token in "0134"})
    sentence = Sentence(["a"] * 7, [[str(token)] for token in range(7)], [0] * 7)
    assert model.learn(batch_of([sentence])) == (1, 5, 1)
    assert model.static.node[2].tolist() == [5, 4]


@each_rule
@pytest.mark.parametrize("L", [1, 3])
def test_nothing_to_learn(rule, L):
    """Gold is what zero weights say: the first label."""
    made = [Sentence(s.words, s.static, [0] * len(s.gold)) for s in sentences(4, 5, L)]
    made = [Sentence([], [], []), *made, Sentence(["a"], [["3"]], [0])]
    for rows in (made, made[:1], []):
        model = model_of(["shen2007_c"], L, rule=rule)
        progress = model.learn(batch_of(rows, spare=1))
        margin = getattr(rule, "margin", 0) and L > 1 and len(rows) > 1
        assert progress.errors == 0
        assert (progress.updates > 0) == bool(margin)
        if not margin:
            assert progress.decisions == sum(len(s.words) for s in rows)
            assert not any(p.any() for p in model.parameters())


@pytest.mark.parametrize("limit", [1, 3])
def test_a_sentence_is_left_at_the_limit(limit):
    """Gold's label is 100 below the best, an update moves it by 2, and there are two tokens."""
    model = model_of([], 2, rule=Aggressive(limit=limit))
    set_weights(model, {("0", 0): 100})
    stubborn, easy = Sentence(["a", "a"], [["0"], ["0"]], [1, 1]), Sentence(["b"], [["1"]], [0])
    assert model.learn(batch_of([stubborn, easy])) == (2 * limit, 2 * limit + 1, 2 * limit)
    assert model.static.node[:2].tolist() == [[100 - 2 * limit, 2 * limit], [0, 0]]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"margin": -1}, "margin "),
        ({"margin": float("nan")}, "margin "),
        ({"limit": 0}, "limit "),
    ],
)
def test_options_are_checked(options, message):
    with pytest.raises(InputError, match=message):
        Aggressive(**options)
