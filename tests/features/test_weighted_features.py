"""Features that the data list, with their weights."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from structperc import Corpus, FeatureExtractor, InputError
from structperc.builder import Builder
from structperc.features import format_weighted_features
from structperc.features.exact_index import ExplicitVocabulary

numbers = st.floats(-1e6, 1e6, width=32).filter(lambda x: x != 0)


def corpus(*tokens):
    return Corpus.from_sentences([{"word": ["x"] * len(tokens), "features": list(tokens)}])


def extractor(*tokens, node=(), **options):
    made = FeatureExtractor(list(node), cutoff=1, weighted_column="features", progress=False, **options)
    made.fit(corpus(*tokens))
    return made


def read(features, *tokens):
    """[[(name, weight)]] of the tokens."""
    names, found = features.index.names("node"), features.encode(corpus(*tokens)).nodes
    weights = [1.0] * len(found.ids) if found.weights is None else found.weights.tolist()
    pairs = [(names[i], weight) for i, weight in zip(found.ids.tolist(), weights, strict=True)]
    ends = found.offsets.tolist()
    return [pairs[a:b] for a, b in itertools.pairwise(ends)]


@settings(max_examples=40)
@given(st.lists(st.lists(st.tuples(st.text(max_size=5), numbers), max_size=4), min_size=1, max_size=4))
def test_write_and_read(tokens):
    strings = [format_weighted_features(token) for token in tokens]
    if any(tokens):
        assert read(extractor(*strings), *strings) == tokens


def test_syntax_of_crfsuite():
    assert (
        format_weighted_features([("w:the", 1.0), ("len", 3), ("none", 0.0), ("a\\b\tc\nd", 1), ("", 1)])
        == "w\\:the\tlen:3.0\ta\\\\b\\tc\\nd\t:1.0"
    )


def test_all_weights_1():
    made = extractor("a\tb:1.0", "b:2")
    assert made.encode(corpus("a\tb")).nodes.weights is None
    assert made.encode(corpus("a\tb:2")).nodes.weights.tolist() == [1, 2]


def test_rare_and_unknown_features_are_left_out():
    made = FeatureExtractor(cutoff=2, weighted_column="features", progress=False)
    made.fit(corpus("a\tb", "a:5\tc:0\tc:0"))
    assert made.index.names("node") == ["a"]
    assert read(made, "z\ta:2\tb") == [[("a", 2.0)]]


def test_order_of_listed_features():
    made = extractor("a:2", "b", node=["w[0]", "bias"])
    assert made.n_node_features == 4
    assert made.columns == ["word", "features"]
    assert read(made, "b:3", "") == [
        [("w[0]=x", 1.0), ("bias", 1.0), ("b", 3.0)],
        [("w[0]=x", 1.0), ("bias", 1.0)],
    ]


def test_edges_of_the_same_templates():
    made = extractor("a:2", node=["w[0]"], edge=["w[0]"])
    edges = made.encode(corpus("a:2")).edges
    assert (edges.ids.tolist(), edges.weights) == ([0], None)


def test_subset_and_state():
    made = extractor("a:2", "b", "c", node=["w[0]"])
    kept = made.subset("node", np.array([True, False, True, True]))
    assert kept.index.names("node") == ["w[0]=x", "b", "c"]
    again = FeatureExtractor.from_state(kept.state_dict_json(), kept.state_arrays(), Builder().part)
    assert read(again, "a:2\tc:4") == read(kept, "a:2\tc:4") == [[("w[0]=x", 1.0), ("c", 4.0)]]


def test_subsets_of_weighted_features():
    made = extractor("a:2", "b")
    assert made.subset("node", np.array([False, True])).index.names("node") == ["b"]


@pytest.mark.parametrize("item", ["a:", "a:x", "a:nan", "a:1e300", "a:1:2", "a\\"])
def test_invalid_features(item):
    with pytest.raises(InputError, match=r"^corpus: .*'features'"):
        extractor(item)


def test_missing_column_and_damaged_state():
    with pytest.raises(InputError, match=r"'features'.*word"):
        extractor("a").encode(Corpus.from_sentences([{"word": ["x"]}]))
    with pytest.raises(InputError, match=r"features.weighted.names"):
        ExplicitVocabulary().restore(["a", "a"], {}, {}, "features.weighted")
