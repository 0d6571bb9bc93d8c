"""The voted perceptron against literal passes and votes that write out a dense vector after every example."""

import math
import random

import pytest
import torch

from structperc.reranking import VotedPerceptron
from structperc.reranking import voted_perceptron as votes
from tests.checkpoints import assert_same
from tests.rerankers import examples_of

F, K = 12, 5


def drawn(seed, S=15, n_features=F, correct=True):
    """Random lists: per sequence (features of the candidates, their first scores, the correct one or None).

    First scores are quarters and features few: many candidates have equal scores, by either or by both.
    """
    chance = random.Random(seed)
    lists = []
    for _ in range(S):
        n = chance.randint(1, K)
        features = [{f for f in range(n_features) if chance.random() < 0.2} for _ in range(n)]
        first = [chance.randint(-6, 0) / 4 for _ in range(n)]
        lists.append((features, first, chance.choice([None, *range(n)]) if correct else None))
    return lists


def totals_of(ranker, lists):
    examples = examples_of(lists, F, K)
    candidate_ids = examples.features.row_ids
    shuffled = torch.randperm(len(candidate_ids))
    return ranker.total_scores(candidate_ids[shuffled], examples.features.ids[shuffled], examples.first, examples.valid)


def literal_choice(vector, w0, features, first, unit):
    """The candidate of highest F, of these that of highest first score, of these the first."""
    scores = [(w0 * (x / unit) + sum(vector[f] for f in own), x) for own, x in zip(features, first, strict=True)]
    return scores.index(max(scores))


def literal_passes(lists, orders, unit, weights=None):
    """-> the vector after every example, mistakes of each pass."""
    vector, w0, kept, mistakes = [0.0] * F, 0.0, [], []
    for order in orders:
        mistakes.append(0)
        for s in (s for s in order if lists[s][2] is not None):
            (features, first, correct), c = lists[s], 1 if weights is None else weights[s]
            best = literal_choice(vector, w0, features, first, unit)
            if best != correct:
                mistakes[-1] += 1
                vector = [w + c * ((f in features[correct]) - (f in features[best])) for f, w in enumerate(vector)]
                w0 += c * (first[correct] / unit - first[best] / unit)
            kept.append((vector, w0))
    return kept, mistakes


def literal_votes(kept, lists, unit):
    counts = [[0] * len(features) for features, *_ in lists]
    for vector, w0 in kept:
        for row, (features, first, _) in zip(counts, lists, strict=True):
            row[literal_choice(vector, w0, features, first, unit)] += 1
    return [[*row, *[-math.inf] * (K - len(row))] for row in counts]


def trained(lists, passes, **options):
    ranker = VotedPerceptron(**options)
    ranker.start(examples_of(lists, F, K))
    for _ in range(passes):
        ranker.epoch()
    return ranker


@pytest.mark.parametrize(("seed", "unit"), [(0, 1.0), (1, 4.0), (2, 0.3)])
def test_vote_of_all_vectors(seed, unit):
    lists, new = drawn(seed), drawn(seed + 100, S=20, correct=False)
    for passes in (1, 4):
        kept, mistakes = literal_passes(lists, [range(len(lists))] * passes, unit)
        ranker = trained(lists, passes, unit=unit)
        assert ranker.mistakes.tolist() == mistakes
        assert ranker.objective == mistakes[-1]
        assert totals_of(ranker, new).tolist() == literal_votes(kept, new, unit)
    assert max(mistakes) > 0


def test_updates_are_multiplied_by_weights():
    lists, new, weights = drawn(1), drawn(2, S=9, correct=False), [(0.5, 2.0, 3.0)[s % 3] for s in range(15)]
    kept, mistakes = literal_passes(lists, [range(15)] * 2, 1.0, weights)
    ranker, loaded = VotedPerceptron(), VotedPerceptron()
    ranker.start(examples_of(lists, F, K)._replace(weights=torch.tensor(weights, dtype=torch.float64)))
    for _ in range(2):
        ranker.epoch()
    assert ranker.mistakes.tolist() == mistakes
    assert ranker.weights.tolist() == pytest.approx([sum(v[f] for v, _ in kept) / len(kept) for f in range(F)])
    loaded.load_state_dict(ranker.state_dict())
    assert totals_of(loaded, new).tolist() == literal_votes(kept, new, 1.0)


@pytest.mark.parametrize(("seed", "unit"), [(0, 1.0), (1, 4.0)])
def test_average_and_last(seed, unit):
    lists = drawn(seed)
    kept, _ = literal_passes(lists, [range(len(lists))] * 3, unit)
    mean = [sum(vector[f] for vector, _ in kept) / len(kept) for f in range(F)]
    w0 = sum(w for _, w in kept) / len(kept) / unit
    for predict in ("average", "vote"):
        ranker = trained(lists, 3, predict=predict, unit=unit)
        assert ranker.weights.tolist() == mean  # sums of integers, divided once
        assert ranker.first_weight == pytest.approx(w0, rel=1e-12)
    last = trained(lists, 3, predict="last", unit=unit)
    assert last.weights.tolist() == kept[-1][0]
    assert last.first_weight == pytest.approx(kept[-1][1] / unit, rel=1e-12)


def test_ties_go_to_the_higher_first_score():
    """Zero weights prefer the candidate of highest first score, wherever it stands; then the first of those."""
    lists = [([{0}, {1}, {2}, {3}], [-2.0, -1.0, -1.0, -3.0], 1)]
    ranker = trained(lists, 1)
    assert ranker.mistakes.tolist() == [0]
    assert totals_of(ranker, lists).tolist() == [[0, 1, 0, 0, -math.inf]]
    new = [([{3}, set(), {1}], [-5.0, -4.0, -0.5], None)]
    assert totals_of(ranker, new)[0].tolist() == [0, 0, 1, -math.inf, -math.inf]


def test_finished_after_a_pass_without_mistakes():
    ranker = trained([([{0}, {1}], [-1.0, -1.0], 1), ([{0}, {1}], [-1.0, -1.0], 1)], 1)
    assert (ranker.objective, ranker.stop_reason) == (1, None)
    ranker.epoch()
    assert ranker.objective == 0
    assert "no mistake" in ranker.stop_reason


@pytest.mark.parametrize(("width", "cells"), [(3 * K, 10**6), (10**6, 400)])
def test_how_many_at_a_time_does_not_matter(width, cells, monkeypatch):
    ranker, new = trained(drawn(2), 3), drawn(3, S=30, correct=False)
    whole = totals_of(ranker, new)
    monkeypatch.setattr(votes, "WIDTH", width)
    monkeypatch.setattr(votes, "CELLS", cells)
    assert torch.equal(totals_of(ranker, new), whole)


def test_a_list_without_candidates_gets_no_votes():
    ranker = trained(drawn(2), 1)
    first, valid = torch.zeros(2, 3), torch.tensor([[False] * 3, [True, True, False]])
    total_scores = ranker.total_scores(torch.tensor([0, 3]), torch.tensor([1, 2]), first, valid)
    assert total_scores[0].tolist() == [-math.inf] * 3
    assert float(total_scores[1, :2].sum()) == int(ranker.survival.sum())


def test_shuffled_passes():
    """Each has an order of its own, which the seed decides; every one has all examples."""
    lists = [([{f}, {(f + 1) % F}], [0.0, -1.0], 1) for f in range(F)]
    one, same, other = (trained(lists, 2, shuffle=True, seed=seed) for seed in (1, 1, 2))
    assert_same(one.state_dict(), same.state_dict())
    assert not torch.equal(one.update_ids, other.update_ids)
    assert [int(ranker.survival.sum()) for ranker in (one, other)] == [2 * F, 2 * F]
    plain = trained(lists, 2)
    assert plain.update_ids[:2].tolist() == [0, 1]
    assert not torch.equal(one.update_ids, plain.update_ids)


def test_a_loaded_state_replaces_the_votes():
    new, ranker, other = drawn(9, correct=False), trained(drawn(1), 2), trained(drawn(2), 1)
    before = totals_of(ranker, new)
    ranker.load_state_dict(other.state_dict())
    assert torch.equal(totals_of(ranker, new), totals_of(other, new))
    assert not torch.equal(totals_of(ranker, new), before)
