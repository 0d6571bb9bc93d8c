"""Minimum Bayes risk against loops over all pairs of candidates, of one tagger and of several."""

import math

import pytest

from structperc.chain import KBest
from structperc.criteria import MarginLoss
from structperc.data.labels import LabelSet
from structperc.data.tag_schemes import spans
from structperc.errors import InputError
from structperc.nonlocal_features import PhraseConsistency
from structperc.reranking import MinimumRisk, TokenCost
from structperc.reranking.minimum_bayes_risk import SegmentCost
from tests.tiny import Sentences, make_tagger, sentences

K = 4


@pytest.fixture(scope="module")
def data():
    return Sentences([sentence[:3] for sentence in sentences(12)])


@pytest.fixture(scope="module")
def taggers(data):
    features = {"nonlocal_features": [PhraseConsistency()], "decoder": KBest(K)}
    return [make_tagger(data, MarginLoss(1), seed=seed, **(features if seed == 2 else {})) for seed in range(3)]


def token_cost(chosen, right):
    return sum(a != b for a, b in zip(chosen, right, strict=True))


def segment_cost(beta):
    def cost(chosen, right):
        found, wanted = set(spans(chosen)), set(spans(right))
        weight = len(found) + beta**2 * len(wanted)
        return 1 - (1 + beta**2) * len(found & wanted) / weight if weight else 0.0

    return cost


COSTS = {"tokens": (TokenCost(), token_cost), "F1": (None, segment_cost(1)), "F2": (SegmentCost(2), segment_cost(2))}


def by_loops(taggers, corpus, cost, temperatures):
    """The labels of each sentence: candidates and scores from lists of all labellings, costs pair by pair."""
    whole = [tagger.kbest(corpus, len(tagger.labels) ** 3) for tagger in taggers]
    local = [listed_by(tagger, corpus) for tagger in taggers]
    chosen = []
    for row in range(len(corpus)):
        candidates = list(dict.fromkeys(tuple(labels) for lists in local for labels in lists[row]))
        probability = dict.fromkeys(candidates, 0.0)
        for lists, temperature in zip(whole, temperatures, strict=True):
            score = {tuple(one.labels): one.score for one in lists[row]}
            masses = {y: math.exp(score[y] / temperature) for y in candidates}
            for y in candidates:
                probability[y] += masses[y] / sum(masses.values())
        risk = {y: sum(p * cost(y, other) for other, p in probability.items()) for y in candidates}
        chosen.append(list(min(candidates, key=risk.__getitem__)))
    return chosen


def listed_by(tagger, corpus):
    """The K best by local score: those of a tagger that has no other weights."""
    features, tagger.nonlocal_features = tagger.nonlocal_features, type(tagger.nonlocal_features)()
    lists = [[one.labels for one in listed] for listed in tagger.kbest(corpus, K)]
    tagger.nonlocal_features = features
    return lists


@pytest.mark.parametrize("cost", COSTS)
@pytest.mark.parametrize(("which", "temperatures"), [([0], [1.5]), ([2], [0.5]), ([0, 1, 2], [1.0, 2.0, 0.7])])
def test_choice_by_loops(data, taggers, which, temperatures, cost):
    together, (made, naive) = [taggers[i] for i in which], COSTS[cost]
    corpus = data.corpus("train")
    found = MinimumRisk(together, KBest(K), made, temperatures).label(corpus)
    assert found == by_loops(together, corpus, naive, temperatures)
    if temperatures == [1.5]:
        assert found != together[0].label(corpus)  # here it is not the best by score


def test_a_cold_tagger_is_itself(data, taggers):
    corpus = data.corpus("train")
    for tagger in taggers[0], taggers[2]:
        assert MinimumRisk([tagger], KBest(K), TokenCost(), 1e-4).label(corpus) == tagger.label(corpus)
    words = [["Anna", "met", "Bo"], ["Rome"]]
    assert MinimumRisk([taggers[0]], KBest(K), temperature=1e-4).tag(words) == taggers[0].tag(words)


def test_invalid_combinations(data, taggers):
    other = make_tagger(Sentences([[("Anna", "B-PER")]]), MarginLoss(1))
    document = make_tagger(data, MarginLoss(1))
    document.unit = "document"
    for together, temperature, message in [
        ([], 1.0, "taggers is empty"),
        (taggers, [1.0], "1 temperatures for 3 taggers"),
        (taggers[:1], 0.0, "a temperature must be > 0, got 0"),
        ([taggers[0], other], 1.0, "tagger 2 has different labels"),
        ([taggers[0], document], 1.0, "tagger 2 labels documents, the first one sentences"),
    ]:
        with pytest.raises(InputError, match=message):
            MinimumRisk(together, KBest(2), temperature=temperature)
    with pytest.raises(InputError, match="TokenCost"):
        SegmentCost()(None, None, LabelSet(("A", "B"), "none"))
