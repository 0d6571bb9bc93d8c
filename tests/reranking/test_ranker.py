"""The contract of rankers: which features they use, what is left when the others go, what they compare."""

import random

import pytest
import torch

from structperc.criteria import Criterion, ExponentialLoss, PerceptronLoss
from structperc.errors import InputError
from structperc.reranking import Boosting, Examples, Ranker, VotedPerceptron

S, K, F = 15, 4, 40
RANKERS = {
    "boosting": lambda: Boosting(rounds=5),
    "vote": lambda: VotedPerceptron("vote"),
    "average": lambda: VotedPerceptron("average", unit=0.5),
    "last": lambda: VotedPerceptron("last"),
}

each_ranker = pytest.mark.parametrize("made", RANKERS.values(), ids=RANKERS)
each_seed = pytest.mark.parametrize("seed", range(4))


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
@each_seed
def test_used_are_the_features_of_some_vector(made, seed):
    ranker = trained(made, seed)
    assert ranker.used.dtype == torch.bool
    assert set(ranker.used.nonzero()[:, 0].tolist()) == features_of(ranker)
    assert 0 < len(features_of(ranker)) < F
    assert not ranker.weights[~ranker.used].any()


@each_ranker
def test_before_the_first_epoch_nothing_is_used(made):
    ranker = trained(made, 0, epochs=0)
    assert ranker.used.tolist() == [False] * F
    ranker.prune(ranker.used)
    assert ranker.weights.shape == (0,)
    nothing = torch.zeros(0, dtype=torch.int64)
    assert ranker.total_scores(nothing, nothing, torch.zeros(2, K), torch.ones(2, K).bool()).shape == (2, K)


@each_ranker
@each_seed
@pytest.mark.parametrize("more", [0, 5])
def test_pruning_renumbers_and_changes_no_total(made, seed, more):
    ranker, new = trained(made, seed), drawn(seed + 100, 9, 1)
    keep = ranker.used.clone()
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
    assert features_of(ranker) == features == set(ranker.used.nonzero()[:, 0].tolist())
    loaded = made()
    loaded.load_state_dict(ranker.state_dict())
    assert torch.equal(totals_of(loaded, new, torch.tensor(numbers)), before)


@each_ranker
def test_pruning_after_votes_were_counted(made):
    """What a ranker keeps for new lists goes with the old numbers."""
    ranker, new = trained(made, 1), drawn(101, step=1)
    before = totals_of(ranker, new)
    keep = ranker.used
    ranker.prune(keep)
    assert torch.equal(totals_of(ranker, new, (keep.cumsum(0) - 1).where(keep, -1)), before)


@each_ranker
def test_a_used_feature_is_not_forgotten(made):
    ranker = trained(made, 2)
    keep = ranker.used.clone()
    keep[int(keep.nonzero()[0])] = False
    state = {name: value.clone() for name, value in ranker.state_dict().items()}
    with pytest.raises(ValueError, match="keep all features that are used"):
        ranker.prune(keep)
    assert all(torch.equal(value, state[name]) for name, value in ranker.state_dict().items())


@each_ranker
def test_there_is_no_going_on_with_the_same_examples(made):
    ranker = trained(made, 3)
    ranker.prune(ranker.used)
    with pytest.raises(InputError, match=f"learned {len(ranker.weights)} weights, the examples have {F} features"):
        ranker.start(drawn(3))


@each_ranker
def test_criteria_compare_candidates(made):
    criterion = made().criterion
    assert isinstance(criterion, Criterion)
    assert type(criterion) is (ExponentialLoss if isinstance(made(), Boosting) else PerceptronLoss)
    assert not criterion.needs_lattice


def test_the_base_has_no_algorithm():
    with pytest.raises(TypeError, match="abstract"):
        Ranker()
