"""Lists with sparse features against dictionaries of sets."""

import math
import random

import pytest
import torch

from structperc.errors import InputError
from structperc.reranking import Boosting, Examples, VotedPerceptron


def drawn(seed, S, K, F):
    """Random pairs with repetitions, in random order, and their lists: features of each candidate as sets."""
    chance = random.Random(seed)
    sets = [[{f for f in range(F) if chance.random() < 0.4} for _ in range(K)] for _ in range(S)]
    pairs = [(s * K + k, f) for s in range(S) for k in range(K) for f in sets[s][k]]
    pairs += chance.choices(pairs, k=len(pairs) // 2) if pairs else []
    chance.shuffle(pairs)
    valid = torch.tensor([[k == 0 or chance.random() < 0.7 for k in range(K)] for _ in range(S)]).bool().view(S, K)
    first = torch.randn(S, K, generator=torch.Generator().manual_seed(seed)).where(valid, torch.nan)
    correct = torch.tensor([chance.choice([-1, *valid[s].nonzero()[:, 0].tolist()]) for s in range(S)]).long()
    candidate_ids, ids = torch.tensor(pairs).long().view(-1, 2).unbind(1)
    return (candidate_ids, ids, first, valid, correct, F), sets


def sets_of(examples):
    S, K = examples.valid.shape
    assert examples.features.ids.dtype == torch.int32
    assert (examples.features.offsets.dtype, examples.features.offsets.shape) == (torch.int64, (S * K + 1,))
    assert int(examples.features.offsets[-1]) == len(examples.features.ids)
    found = [[examples.features_of(s, k).tolist() for k in range(K)] for s in range(S)]
    assert all(features == sorted(set(features)) for row in found for features in row)
    return [[set(features) for features in row] for row in found]


CASES = [(1, 3, 4, 6), (2, 1, 1, 3), (3, 5, 2, 1), (4, 2, 3, 0), (5, 0, 3, 4)]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_from_pairs(case):
    given, sets = drawn(*case)
    examples = Examples.from_pairs(*given)
    assert sets_of(examples) == sets
    assert examples.first.dtype == torch.float64
    assert torch.equal(examples.valid, given[3])
    assert torch.equal(examples.correct, given[4])


@pytest.mark.parametrize("case", CASES, ids=str)
def test_differing_drops_what_valid_candidates_share(case):
    given, sets = drawn(*case)
    valid = given[3].tolist()
    wanted = []
    for row, live in zip(sets, valid, strict=True):
        shared = set.intersection(*(features for features, v in zip(row, live, strict=True) if v))
        wanted.append([features - shared if v else set() for features, v in zip(row, live, strict=True)])
    examples = Examples.from_pairs(*given)
    assert sets_of(examples.drop_shared()) == wanted
    assert sets_of(examples) == sets  # which stay as they were


def test_concat():
    parts = [drawn(seed, S, 3, 7) for seed, S in ((1, 2), (2, 0), (3, 4))]
    whole = Examples.concat([Examples.from_pairs(*given) for given, _ in parts])
    assert sets_of(whole) == [row for _, sets in parts for row in sets]
    for i, name in ((2, "first"), (3, "valid"), (4, "correct")):
        wanted = torch.cat([given[i] for given, _ in parts]).to(getattr(whole, name))
        assert torch.equal(getattr(whole, name).nan_to_num(), wanted.nan_to_num())


@pytest.mark.parametrize("rows", [[0, 1, 2, 3, 4], [4, 2, 0], [1], [3, 3, 0, 3], []], ids=str)
@pytest.mark.parametrize("seed", range(3))
def test_take(seed, rows):
    given, sets = drawn(seed, 5, 3, 7)
    examples = Examples.from_pairs(*given)
    taken = examples.take(torch.tensor(rows).long())
    assert sets_of(taken) == [sets[s] for s in rows]
    assert taken.n_features == 7
    for name in ("first", "valid", "correct"):
        found, wanted = getattr(taken, name), getattr(examples, name)
        assert (found.dtype, found.shape[1:]) == (wanted.dtype, wanted.shape[1:])
        assert found.nan_to_num().tolist() == [wanted[s].nan_to_num().tolist() for s in rows]
    assert sets_of(examples) == sets  # which stay as they were


def test_take_puts_parts_back_in_order():
    given, sets = drawn(6, 6, 2, 5)
    whole, order = Examples.from_pairs(*given), torch.tensor([4, 0, 5, 1, 3, 2])
    back = Examples.concat([whole.take(order[:2]), whole.take(order[2:])]).take(order.argsort())
    for name in ("valid", "correct"):
        assert torch.equal(getattr(back, name), getattr(whole, name))
    assert sets_of(back) == sets


def test_take_without_features():
    given, _ = drawn(4, 2, 3, 0)
    assert sets_of(Examples.from_pairs(*given).take(torch.tensor([1, 0, 1]))) == [[set()] * 3] * 3


def test_parts_that_do_not_fit():
    one, other = (Examples.from_pairs(*drawn(1, 2, K, 7)[0]) for K in (3, 4))
    with pytest.raises(InputError, match="same number of candidates"):
        Examples.concat([one, other])


BAD = {
    "feature too large": ({"ids": torch.tensor([0, 3])}, "features have numbers from 0 to 3, not below 3"),
    "feature below 0": ({"ids": torch.tensor([-1, 2])}, "features have numbers from -1 to 2"),
    "infinite score": ({"first": torch.tensor([[0.0, -torch.inf]])}, "must be finite"),
    "correct one not valid": ({"valid": torch.tensor([[True, False]]), "correct": torch.tensor([1])}, "is not valid"),
}


@pytest.mark.parametrize(("change", "message"), BAD.values(), ids=BAD)
def test_bad_input(change, message):
    good = {
        "candidate_ids": torch.tensor([0, 1]),
        "ids": torch.tensor([0, 2]),
        "first": torch.zeros(1, 2),
        "valid": torch.ones(1, 2, dtype=torch.bool),
        "correct": torch.tensor([0]),
        "n_features": 3,
    }
    Examples.from_pairs(**good)
    with pytest.raises(InputError, match=message):
        Examples.from_pairs(**{**good, **change})


# -- examples from which nothing can be learned ---------------------------------------------------------------

RANKERS = [Boosting, VotedPerceptron]
START = {
    "one candidate each": (
        [[0, 1], [2, 3]],
        {"valid": torch.tensor([[True, False], [True, False]]), "correct": torch.tensor([0, 0])},
        "lists hold one candidate each: set search.k >= 2",
    ),
    "none correct": (
        [[0, 1], [2, 3]],
        {"correct": torch.tensor([-1, -1])},
        "no candidate list has a correct candidate",
    ),
    "correct ones alone": (
        [[0, 1], [2, 3]],
        {"valid": torch.tensor([[True, False], [True, True]]), "correct": torch.tensor([0, -1])},
        "no candidate list has a correct candidate and others beside it",
    ),
    "all alike": (
        [[1, 1], [2, 2]],
        {"first": torch.tensor([[0.5, 0.5], [0.0, 0.0]])},
        "candidates of a list never differ",
    ),
    "without features": ([[-1, -1], [-1, -1]], {"first": torch.zeros(2, 2)}, "candidates of a list never differ"),
    "alike but for those without a correct one": (
        [[1, 1], [2, 3]],
        {"first": torch.zeros(2, 2), "correct": torch.tensor([1, -1])},
        "candidates of a list never differ",
    ),
}


def two_lists(features, **change):
    """Two lists of two candidates with a feature each, -1 for none."""
    given = {
        "first": torch.tensor([[0.5, -0.5], [0.0, -1.0]]),
        "valid": torch.ones(2, 2, dtype=torch.bool),
        "correct": torch.tensor([1, 0]),
        **change,
    }
    ids = torch.tensor(features).flatten()
    return Examples.from_pairs((ids >= 0).nonzero()[:, 0], ids[ids >= 0], **given, n_features=4)


@pytest.mark.parametrize("ranker", RANKERS)
@pytest.mark.parametrize(("features", "change", "message"), START.values(), ids=START)
def test_nothing_to_learn(ranker, features, change, message):
    ranker().start(two_lists([[0, 1], [2, 3]]))
    with pytest.raises(InputError, match=message) as error:
        ranker().start(two_lists(features, **change))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("ranker", RANKERS)
@pytest.mark.parametrize("change", [{}, {"first": torch.zeros(2, 2)}], ids=["first scores", "features"])
def test_one_difference_is_enough(ranker, change):
    made = ranker()
    made.start(two_lists([[0, 1], [2, 3]] if change else [[-1, -1], [-1, -1]], **change))
    made.epoch()
    assert math.isfinite(made.objective)


@pytest.mark.parametrize("ranker", RANKERS)
def test_other_features_than_before(ranker):
    made = ranker()
    made.start(two_lists([[0, 1], [2, 3]]))
    with pytest.raises(InputError, match="learned 4 weights, the examples have 5 features"):
        made.start(two_lists([[0, 1], [2, 3]])._replace(n_features=5))


@pytest.mark.parametrize("ranker", [Boosting(), VotedPerceptron(), VotedPerceptron("last")], ids=["b", "vote", "last"])
def test_totals_of_other_features(ranker):
    ranker.start(two_lists([[0, 1], [2, 3]]))
    ranker.epoch()
    given = {"first": torch.zeros(1, 2), "valid": torch.ones(1, 2, dtype=torch.bool)}
    with pytest.raises(InputError, match="features have numbers from 1 to 4, not below 4"):
        ranker.total_scores(torch.tensor([0, 1]), torch.tensor([1, 4]), **given)
