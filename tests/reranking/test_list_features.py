"""What rankers learn from lists, against the strings of every candidate."""

import pytest

from structperc.chain import KBest
from structperc.data.words import word_hashes
from structperc.nonlocal_features import find_segments
from structperc.reranking.global_reranker import feature_ids
from tests.ranked import Text, known, naive, ready, segments, training_lists


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("candidates")


@pytest.fixture
def data():
    return Text()


def closest(corpus, row, paths):
    """The candidate of highest F1, of those with the fewest segments, of those the first."""
    start, end = int(corpus.starts[row]), int(corpus.starts[row + 1])
    boundaries = [b - start for b in corpus.sentences.tolist() if start <= b <= end]
    wanted, own = (
        segments(corpus.columns["label"][start:end], boundaries),
        [segments(path, boundaries) for path in paths],
    )
    f1 = [2 * len(wanted & one) / max(1, len(wanted) + len(one)) for one in own]
    return max(range(len(paths)), key=lambda k: (f1[k], -len(own[k]), -k))


@pytest.mark.parametrize(
    ("unit", "correct", "min_sequences"),
    [("sentence", "closest", 1), ("sentence", "gold", 3), ("document", "closest", 2), ("document", "gold", 1)],
)
def test_examples_are_the_strings_of_the_lists(cache, unit, correct, min_sequences):
    data = Text(unit=unit)
    made = ready(cache, data, correct=correct, min_sequences=min_sequences)
    lists, corpus, examples = list(training_lists(made, data)), data.corpus("train"), made.examples
    holders = {}
    for row, listed in enumerate(lists):
        for string in set().union(*(strings for *_, strings in listed)):
            holders.setdefault(string, set()).add(row)
    features = known(made)
    assert len(features) == len(set(features)) == examples.n_features
    assert set(features) == {string for string, rows in holders.items() if len(rows) >= min_sequences}
    assert [len(rows) < min_sequences for rows in holders.values()].count(True) > 0 or min_sequences == 1
    outside = 0
    for row, listed in enumerate(lists):
        shared = set.intersection(*(strings for *_, strings in listed))
        for k, (_, score, strings) in enumerate(listed):
            found = [features[i] for i in examples.features_of(row, k).tolist()]
            assert len(set(found)) == len(found)
            assert set(found) == (strings - shared) & set(features)
            assert float(examples.first[row, k]) == score
        assert examples.valid[row].tolist() == [k < len(listed) for k in range(5)]
        paths = [path for path, *_ in listed]
        gold = corpus.columns["label"][int(corpus.starts[row]) : int(corpus.starts[row + 1])]
        outside += gold not in paths
        if gold in paths or correct == "gold":
            assert int(examples.correct[row]) == (paths.index(gold) if gold in paths else -1)
        else:
            assert int(examples.correct[row]) == closest(corpus, row, paths)
    assert 0 < outside < len(lists)
    assert min_sequences > 1 or {feature for feature, _ in features} == set(range(5))


def test_what_a_candidate_has_does_not_depend_on_the_others(cache, data):
    made = ready(cache, data)
    features, corpus, by_hand = known(made), data.corpus("dev"), naive(made, data)
    for row in range(len(corpus)):
        batch = made.encode(corpus)[[row]]
        candidates = KBest(5)(made(batch))
        labellings, ids = made.found(batch, candidates)[1:]
        for k in candidates.valid[0].nonzero()[:, 0].tolist():
            alone = candidates.labels[:, k : k + 1], candidates.valid[:, k : k + 1]
            owner, own = feature_ids(made.global_features, find_segments(batch, *alone, made.labels))
            assert owner.eq(0).all()
            assert own.sort().values.equal(ids[labellings == k].sort().values)
            path = made.labels.decode(candidates.labels[0, k])
            assert {features[i] for i in own.tolist()} == by_hand.strings(corpus, row, path) & set(features)


def test_the_lexicons_are_those_of_the_training_words(cache, data):
    made = ready(cache, data)
    wanted = sorted(word_hashes(naive(made, data).lexicon).tolist())
    assert wanted
    lexicons = [feature.lexicon for feature in made.global_features if hasattr(feature, "lexicon")]
    assert len(lexicons) == 4
    assert all(lexicon.words.tolist() == wanted for lexicon in lexicons)
