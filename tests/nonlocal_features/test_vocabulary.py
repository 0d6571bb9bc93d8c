"""Strings collected batch by batch against sets of strings."""

from collections import Counter

import pytest
import torch

from structperc.data.corpus import Corpus
from structperc.errors import InputError
from structperc.nonlocal_features import (
    CandidateSegments,
    EndTrigrams,
    GlobalFeature,
    QuotedEntity,
    WholeEntity,
    global_feature,
)
from structperc.nonlocal_features.global_feature import Occurrences, Vocabulary, format_strings
from tests.nonlocal_features.labelled import QUOTING, Case, make_case

FEATURES = [WholeEntity(), EndTrigrams(typed=False), QuotedEntity()]
SEEDS = (101, 106, 107)


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    return [make_case(seed, QUOTING) for seed in SEEDS]


@pytest.fixture(params=[100, global_feature.PENDING])
def pending(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(global_feature, "PENDING", request.param)


def collected(feature: GlobalFeature, cases: list[Case]) -> tuple[Vocabulary, list[dict[int, set[int]]]]:
    """The cases one after the other -> vocabulary; for each sequence its keys, each with the candidates that have it.

    Rows are numbered from 1000, in another order than they are added.
    """
    found, each = Vocabulary(), []
    for case in cases:
        segments = CandidateSegments(case.batch, case.labels, case.valid, case.label_set)
        occurrences = feature.occurrences(segments)
        B, K = case.valid.shape
        rows = torch.arange(B).flip(0) + 1000 + len(each)
        found.add(occurrences, rows, K)
        held: list[dict[int, set[int]]] = [{} for _ in range(B)]
        for labelling, key in zip(occurrences.candidates.tolist(), occurrences.keys.tolist(), strict=True):
            b, k = divmod(labelling, K)
            held[B - 1 - b].setdefault(key, set()).add(k)
        each += held
    return found, each


@pytest.mark.usefixtures("pending")
@pytest.mark.parametrize("feature", FEATURES, ids=lambda f: type(f).__name__)
def test_frequent_keys_and_their_examples(feature: GlobalFeature, cases: list[Case]) -> None:
    found, each = collected(feature, cases)
    times = Counter(key for held in each for key in held)
    for minimum in (1, 2, 3):
        assert found.keys(minimum).tolist() == sorted(key for key, n in times.items() if n >= minimum)
    keys = found.keys()
    examples = found.examples(keys)
    for key, row, k in zip(keys.tolist(), examples.rows.tolist(), examples.candidates.tolist(), strict=True):
        assert k in each[row - 1000][key]
    some = keys[torch.randperm(len(keys))[:5]]
    for one, all_of_them in zip(found.examples(some), examples, strict=True):
        assert one.equal(all_of_them[torch.searchsorted(keys, some)])


@pytest.mark.parametrize("feature", FEATURES, ids=lambda f: type(f).__name__)
def test_strings_of_keys(feature: GlobalFeature, cases: list[Case]) -> None:
    case = cases[SEEDS.index(107)]
    documents = [(sentence, number) for number, document in enumerate(case.documents) for sentence in document]
    corpus = Corpus.from_sentences([{"word": s} for s, _ in documents], [d for _, d in documents], "document")
    segments = CandidateSegments(case.batch, case.labels, case.valid, case.label_set)
    found = Vocabulary()
    found.add(feature.occurrences(segments), case.batch.rows, case.valid.shape[1])
    keys = found.keys()
    types = case.label_set.type_names
    strings = format_strings(feature, found.examples(keys), corpus, case.names, types)
    assert len(set(strings)) == len(keys) > 5
    alone = CandidateSegments(case.batch, case.labels[:, :1], case.valid[:, :1], case.label_set)
    own = Vocabulary()  # of one candidate alone: the same strings, spelled from other places
    own.add(feature.occurrences(alone), case.batch.rows, 1)
    spelled = format_strings(feature, own.examples(own.keys()), corpus, case.names, types)
    assert spelled == [strings[i] for i in torch.searchsorted(keys, own.keys()).tolist()]


def test_nothing_is_found() -> None:
    found = Vocabulary()
    assert len(found.keys()) == 0
    none = torch.zeros(0, dtype=torch.int64)
    found.add(Occurrences(*[none] * 6), none, 3)
    assert len(found.keys()) == len(found.examples(none).rows) == 0


@pytest.mark.parametrize("key", [-(2**62), 8, 2**62])
def test_unknown_keys(key: int) -> None:
    found = Vocabulary()
    with pytest.raises(InputError, match="not in the vocabulary"):
        found.examples(torch.tensor([key]))
    zero, one = torch.zeros(2, dtype=torch.int64), torch.ones(2, dtype=torch.int64)
    found.add(Occurrences(zero, torch.tensor([7, 9]), zero, one, zero, zero), torch.tensor([0]), 1)
    assert found.examples(torch.tensor([9, 7])).rows.tolist() == [0, 0]
    with pytest.raises(InputError, match="not in the vocabulary"):
        found.examples(torch.tensor([7, key]))


def test_the_first_example_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    for pending in (0, 100):
        monkeypatch.setattr(global_feature, "PENDING", pending)
        found = Vocabulary()
        for row in (5, 3, 9):
            places = torch.tensor([1, 0, 2])
            key = torch.tensor([7, 7, row])
            found.add(Occurrences(places, key, places, places + 1, places, places), torch.tensor([row]), 3)
        assert found.keys().tolist() == [3, 5, 7, 9]
        assert found.keys(2).tolist() == [7]
        assert [column.tolist() for column in found.examples(torch.tensor([7]))] == [[5], [1], [1], [2], [1], [1]]
