"""The forms of X: what is read of them, and that forms that say the same teach the same."""

from collections import Counter
from itertools import chain

import numpy as np
import pycrfsuite
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from structperc.errors import InputError
from structperc.features import format_weighted_features
from structperc.sklearn import SequenceTagger
from structperc.sklearn.sentences import features_of, parse_sentences

names = st.text("ab:=\t\\é", max_size=3)
values = st.recursive(
    st.one_of(names, st.integers(-5, 5), st.booleans(), st.floats(-9, 9), st.lists(names), st.sets(names)),
    lambda inner: st.dictionaries(names, inner, max_size=3),
    max_leaves=4,
)


@given(st.one_of(st.dictionaries(names, values, max_size=4), st.lists(names), st.sets(names)))
def test_features_equal_python_crfsuite(token):
    (theirs,) = pycrfsuite.ItemSequence([token]).items()
    found = list(features_of(token, "here"))
    assert {name for name, _ in found} == set(theirs)
    for name, weight in theirs.items():  # of a name that is there twice python-crfsuite shows one weight
        assert weight in [own for other, own in found if other == name]


@given(st.lists(st.lists(st.one_of(st.dictionaries(names, values, max_size=4), st.lists(names)), min_size=1)))
def test_columns_of_features_equal_their_strings(sentences):
    sentences = [sentence for sentence in sentences if isinstance(sentence[0], dict)]
    column = parse_sentences(sentences).columns.get("features", [])
    assert list(column) == [format_weighted_features(features_of(token)) for one in sentences for token in one]


def test_sets_in_order_and_bytes():
    assert [name for name, _ in features_of(set("hgfedcba"))] == list("abcdefgh")  # in each process
    assert list(features_of({b"w": b"the"})) == [("w:the", 1.0)]


def test_sentences_without_tokens_have_all_columns():
    columns = {"word": ["a"], "pos": ["N"]}
    assert parse_sentences([[], columns])[1:] == (columns, [0, 1])


def trained(X, y, **options):
    return SequenceTagger("averaged_perceptron", random_state=1, max_iterations=3, **options).fit(X, y)


def weights(tagger):
    return torch.nn.utils.parameters_to_vector(tagger.tagger_.parameters())


def test_words_and_their_column_are_the_same(words):
    X, y = words
    one, other = trained(X, y), trained([{"word": sentence} for sentence in X], y)
    assert torch.equal(weights(one), weights(other))
    assert one.predict(X) == other.predict([{"word": tuple(sentence)} for sentence in X])


def test_templates_equal_listed_features(words):
    X, y = words
    templates = trained(X, y, templates=["w[0]", "bias"])
    listed = trained([[[f"w[0]={word}", "bias"] for word in sentence] for sentence in X], y)
    dicts = trained([[{f"w[0]={word}": 1, "bias": True} for word in sentence] for sentence in X], y)
    assert listed.state_features_ == dicts.state_features_ == templates.state_features_ != {}
    assert listed.transition_features_ == templates.transition_features_ != {}


def test_arrays_and_tuples_are_lists(words):
    X, y = words
    arrays = np.empty(len(X), object)
    arrays[:] = [np.array(sentence, dtype=object) for sentence in X]
    assert torch.equal(weights(trained(X, y)), weights(trained(arrays, tuple(map(tuple, y)))))


def test_a_weight_counts(dicts):
    X, y = dicts
    doubled = [[{**token, "len": 2 * token["len"]} for token in sentence] for sentence in X]
    tagger = SequenceTagger("crf", C=10).fit(X, y)
    assert tagger.predict_marginals(X) != tagger.predict_marginals(doubled)
    batch = next(tagger.tagger_.batches(parse_sentences(X).corpus))
    table, row = dict(tagger.state_features_), int(batch.rows[0])
    unary = tagger.tagger_.scorer(batch).unary[0, 0]
    first = dict(features_of(X[row][0], ""))
    for label, found in zip(tagger.classes_, unary.tolist(), strict=True):
        expected = sum(weight * table.get((name, label), 0.0) for name, weight in first.items())
        assert found == pytest.approx(expected, abs=1e-4)


def test_columns_are_read_by_templates(words):
    X, y = words
    rows = [{"word": ["_"] * len(sentence), "pos": sentence} for sentence in X]
    tagger = trained(rows, y, templates=["pos[0]"])
    counts = Counter(chain.from_iterable(X))
    assert tagger.attributes_ == [f"pos[0]={word}" for word, _ in counts.most_common()]
    with pytest.raises(InputError, match="'pos'"):
        trained(X, y, templates=["pos[0]"])


def test_sentences_without_tokens_have_no_labels(dicts):
    X, y = dicts
    tagger = trained([[], *X], [[], *y])
    assert tagger.predict([[], X[0], []])[::2] == [[], []]
    assert tagger.predict([]) == []
