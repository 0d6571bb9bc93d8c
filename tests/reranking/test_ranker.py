"""The contract of rankers, and their examples against dictionaries of sets."""

import math
import random

import pytest
import torch

from structperc.errors import InputError
from structperc.reranking import Boosting, Examples, VotedPerceptron
from tests.checkpoints import assert_same

S, K, F = 15, 4, 40
RANKERS = {
    "boosting": lambda: Boosting(rounds=5),
    "vote": lambda: VotedPerceptron("vote"),
    "average": lambda: VotedPerceptron("average", unit=0.5),
    "last": lambda: VotedPerceptron("last"),
    "shuffled": lambda: VotedPerceptron("vote", unit=0.3, shuffle=True),
}

each_ranker = pytest.mark.parametrize("made", RANKERS.values(), ids=RANKERS)


def drawn(seed, S=S, step=2):
    """Lists whose candidates have a few of every second feature each."""
    chance = random.Random(seed)
    pairs = [(i, f) for i in range(S * K) for f in chance.sample(range(0, F, step), 6)]
    candidate_ids, ids = torch.tensor(pairs).unbind(1)
    first = torch.tensor([[chance.randint(-8, 0) / 4 for _ in range(K)] for _ in range(S)])
    valid = torch.tensor([[k == 0 or chance.random() < 0.9 for k in range(K)] for _ in range(S)])
    correct = torch.tensor([chance.choice(valid[s].nonzero()[:, 0].tolist()) for s in range(S)])
    return Examples.from_pairs(candidate_ids, ids, first, valid, correct, F)


def trained(made, seed, epochs=2):
    ranker = made()
    ranker.start(drawn(seed))
    for _ in range(epochs):
        ranker.epoch()
    return ranker


def totals_of(ranker, examples, numbers=None):
    """Totals of lists, with other numbers (F,) for features, -1 for those that are none."""
    candidate_ids, ids = examples.features.row_ids, examples.features.ids.long()
    ids = ids if numbers is None else numbers[ids]
    return ranker.total_scores(candidate_ids[ids >= 0], ids[ids >= 0], examples.first, examples.valid)


def features_of(ranker):
    """Those that some weight vector has, from what the ranker says about its course."""
    if isinstance(ranker, Boosting):
        return set(ranker.chosen.tolist())
    return set(ranker.update_ids.tolist())


@each_ranker
def test_before_the_first_epoch_nothing_is_used(made):
    ranker = trained(made, 0, epochs=0)
    assert ranker.used_mask.tolist() == [False] * F
    ranker.prune(ranker.used_mask)
    assert ranker.weights.shape == (0,)
    nothing = torch.zeros(0, dtype=torch.int64)
    assert ranker.total_scores(nothing, nothing, torch.zeros(2, K), torch.ones(2, K).bool()).shape == (2, K)


@each_ranker
@pytest.mark.parametrize("more", [0, 5])
def test_pruning_renumbers_and_changes_no_total(made, more):
    ranker, new = trained(made, 1), drawn(101, 9, 1)
    assert 0 < len(features_of(ranker)) < F
    assert not ranker.weights[~ranker.used_mask].any()
    keep = ranker.used_mask.clone()
    keep[(~keep).nonzero()[:more, 0]] = True
    numbers, place = [-1] * F, 0
    for f in range(F):
        if keep[f]:
            numbers[f], place = place, place + 1
    before, weights = totals_of(ranker, new), ranker.weights[keep]
    features = {numbers[f] for f in features_of(ranker)}
    ranker.prune(keep)
    assert torch.equal(totals_of(ranker, new, torch.tensor(numbers)), before)
    assert torch.equal(ranker.weights, weights)
    assert features_of(ranker) == features == set(ranker.used_mask.nonzero()[:, 0].tolist())
    loaded = made()
    loaded.load_state_dict(ranker.state_dict())
    assert torch.equal(totals_of(loaded, new, torch.tensor(numbers)), before)


@each_ranker
def test_a_used_feature_is_not_forgotten(made):
    ranker = trained(made, 2)
    keep = ranker.used_mask.clone()
    keep[int(keep.nonzero()[0])] = False
    state = {name: value.clone() for name, value in ranker.state_dict().items()}
    with pytest.raises(ValueError, match="keep all features that are used"):
        ranker.prune(keep)
    assert all(torch.equal(value, state[name]) for name, value in ranker.state_dict().items())


@each_ranker
def test_second_fit_of_the_same_examples(made):
    ranker = trained(made, 3)
    ranker.prune(ranker.used_mask)
    with pytest.raises(InputError, match=f"{len(ranker.weights)} weights.* {F} features"):
        ranker.start(drawn(3))


@each_ranker
@pytest.mark.parametrize("stop", [0, 1])
def test_restored_state_ends_in_the_same_bits(made, stop, tmp_path):
    through, resumed, loaded, new = trained(made, 1, epochs=4), made(), made(), drawn(101, step=1)
    torch.save(trained(made, 1, epochs=stop).state_dict(), tmp_path / "state")
    resumed.load_state_dict(torch.load(tmp_path / "state"))
    resumed.start(drawn(1))
    for _ in range(stop, 4):
        resumed.epoch()
    assert_same(through.state_dict(), resumed.state_dict())
    assert (resumed.objective, resumed.stop_reason) == (through.objective, through.stop_reason)
    loaded.load_state_dict(resumed.state_dict())  # totals need no start
    assert torch.equal(totals_of(loaded, new), totals_of(through, new))


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (Boosting, {"rounds": 0}),
        *((Boosting, {"smoothing": value}) for value in (0.0, math.nan, math.inf)),
        (Boosting, {"w0": math.inf}),
        (VotedPerceptron, {"predict": "mean"}),
        (VotedPerceptron, {"unit": 0.0}),
    ],
    ids=str,
)
def test_bad_options(kind, options):
    with pytest.raises(InputError, match=next(iter(options))):
        kind(**options)


# -- examples ---------------------------------------------------------------------------------------------------


def random_pairs(seed, S, K, F):
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
    given, sets = random_pairs(*case)
    examples = Examples.from_pairs(*given)
    assert sets_of(examples) == sets
    assert examples.first.dtype == torch.float64
    assert torch.equal(examples.valid, given[3])
    assert torch.equal(examples.correct, given[4])


@pytest.mark.parametrize("case", CASES, ids=str)
def test_differing_features(case):
    given, sets = random_pairs(*case)
    valid = given[3].tolist()
    wanted = []
    for row, live in zip(sets, valid, strict=True):
        shared = set.intersection(*(features for features, v in zip(row, live, strict=True) if v))
        wanted.append([features - shared if v else set() for features, v in zip(row, live, strict=True)])
    examples = Examples.from_pairs(*given)
    assert sets_of(examples.drop_shared()) == wanted
    assert sets_of(examples) == sets  # which stay as they were


def test_concat():
    parts = [random_pairs(seed, S, 3, 7) for seed, S in ((1, 2), (2, 0), (3, 4))]
    whole = Examples.concat([Examples.from_pairs(*given) for given, _ in parts])
    assert sets_of(whole) == [row for _, sets in parts for row in sets]
    for i, name in ((2, "first"), (3, "valid"), (4, "correct")):
        wanted = torch.cat([given[i] for given, _ in parts]).to(getattr(whole, name))
        assert torch.equal(getattr(whole, name).nan_to_num(), wanted.nan_to_num())


@pytest.mark.parametrize("rows", [[4, 2, 0], [3, 3, 0, 3], []], ids=str)
def test_take(rows):
    given, sets = random_pairs(0, 5, 3, 7)
    examples = Examples.from_pairs(*given)
    taken = examples.take(torch.tensor(rows).long())
    assert sets_of(taken) == [sets[s] for s in rows]
    assert taken.n_features == 7
    for name in ("first", "valid", "correct"):
        found, wanted = getattr(taken, name), getattr(examples, name)
        assert (found.dtype, found.shape[1:]) == (wanted.dtype, wanted.shape[1:])
        assert found.nan_to_num().tolist() == [wanted[s].nan_to_num().tolist() for s in rows]
    assert sets_of(examples) == sets  # which stay as they were


def test_mismatched_parts():
    one, other = (Examples.from_pairs(*random_pairs(1, 2, K, 7)[0]) for K in (3, 4))
    with pytest.raises(InputError, match="candidates"):
        Examples.concat([one, other])


BAD = {
    "feature too large": ({"ids": torch.tensor([0, 3])}, "got 0..3"),
    "feature below 0": ({"ids": torch.tensor([-1, 2])}, "got -1..2"),
    "infinite score": ({"first": torch.tensor([[0.0, -torch.inf]])}, "must be finite"),
    "correct one not valid": ({"valid": torch.tensor([[True, False]]), "correct": torch.tensor([1])}, "invalid"),
}


@pytest.mark.parametrize(("change", "message"), BAD.values(), ids=BAD)
def test_bad_input(change, message):
    good = {"candidate_ids": torch.tensor([0, 1]), "ids": torch.tensor([0, 2]), "correct": torch.tensor([0])}
    good |= {"first": torch.zeros(1, 2), "valid": torch.ones(1, 2, dtype=torch.bool), "n_features": 3}
    Examples.from_pairs(**good)
    with pytest.raises(InputError, match=message):
        Examples.from_pairs(**{**good, **change})


# -- examples from which nothing can be learned ---------------------------------------------------------------

ALGORITHMS = [Boosting, VotedPerceptron]
START = {
    "one candidate each": (
        [[0, 1], [2, 3]],
        {"valid": torch.tensor([[True, False], [True, False]]), "correct": torch.tensor([0, 0])},
        "search.k >= 2",
    ),
    "none correct": ([[0, 1], [2, 3]], {"correct": torch.tensor([-1, -1])}, "larger search.k, or correct: closest"),
    "all alike": ([[1, 1], [2, 2]], {"first": torch.tensor([[0.5, 0.5], [0.0, 0.0]])}, "add other features"),
    "without features": ([[-1, -1], [-1, -1]], {"first": torch.zeros(2, 2)}, "add other features"),
    "alike but for those without a correct one": (
        [[1, 1], [2, 3]],
        {"first": torch.zeros(2, 2), "correct": torch.tensor([1, -1])},
        "add other features",
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


@pytest.mark.parametrize("ranker", ALGORITHMS)
@pytest.mark.parametrize(("features", "change", "message"), START.values(), ids=START)
def test_nothing_to_learn(ranker, features, change, message):
    ranker().start(two_lists([[0, 1], [2, 3]]))
    with pytest.raises(InputError, match=message) as error:
        ranker().start(two_lists(features, **change))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("ranker", ALGORITHMS)
@pytest.mark.parametrize("change", [{}, {"first": torch.zeros(2, 2)}], ids=["first scores", "features"])
def test_one_difference_is_enough(ranker, change):
    made = ranker()
    made.start(two_lists([[0, 1], [2, 3]] if change else [[-1, -1], [-1, -1]], **change))
    made.epoch()
    assert math.isfinite(made.objective)


@pytest.mark.parametrize("ranker", [Boosting(), VotedPerceptron(), VotedPerceptron("last")], ids=["b", "vote", "last"])
def test_totals_of_other_features(ranker):
    ranker.start(two_lists([[0, 1], [2, 3]]))
    ranker.epoch()
    given = {"first": torch.zeros(1, 2), "valid": torch.ones(1, 2, dtype=torch.bool)}
    with pytest.raises(InputError, match=r"got 1\.\.4"):
        ranker.total_scores(torch.tensor([0, 1]), torch.tensor([1, 4]), **given)
