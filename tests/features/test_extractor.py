"""The extractor against one that handles one string at a time."""

import json
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from structperc.builder import Builder
from structperc.data.corpus import Corpus
from structperc.errors import InputError
from structperc.features import Clusters, FeatureExtractor, Gazetteer, exact_index, lookup
from structperc.features.templates import parse_templates

PHRASES = ["ab 12", "12 12 12", "c"]
PATHS = {"ab": "0110", "12": "10", "Ab": "111"}


def naive_values(corpus):
    words = corpus.columns["word"]
    clusters = [PATHS.get(word) or PATHS.get(word.lower(), "") for word in words]
    return {
        "w": words,
        "wl": [word.lower() for word in words],
        "p2": [word[:2] if len(word) >= 2 else "" for word in words],
        "ic": ["1" if word[0] in "ACU" else "" for word in words],
        "pos": corpus.columns["pos"],
        "c3": [path[:3] for path in clusters],
        "go": [tag for sentence in corpus.sentences_of(words) for tag in naive_tags(sentence)],
    }


def naive_tags(words):
    at = 0
    while at < len(words):
        matches = [n for n in (1, 2, 3) if " ".join(words[at : at + n]).lower() in PHRASES]
        length = max((n for n in matches if at + n <= len(words)), default=0)
        yield from ["B", *["I"] * (length - 1)] if length else [""]
        at += max(length, 1)


def naive_names(corpus, templates):
    """Names of all features of each token, whatever their number."""
    values = naive_values(corpus)
    tokens = []
    for start, end in pairwise(corpus.starts.tolist()):
        for i in range(start, end):
            named = [[(part, naive_value(values, part, i, start, end)) for part in t] for t in templates]
            met = [parts for parts in named if not parts or any(value for _, value in parts)]
            tokens.append(["|".join(f"{part}={value}" for part, value in parts) or "bias" for parts in met])
    return tokens


def naive_value(values, part, i, start, end):
    at = i + part.offset
    if at < start:
        return f"_B-{start - at}"
    return values[part.attribute][at] if at < end else f"_B+{at - end + 1}"


def naive_features(train, other, templates, cutoff):
    counts = Counter(name for names in naive_names(train, templates) for name in names)
    return [sorted(n for n in names if counts[n] >= cutoff) for names in naive_names(other, templates)], {
        name for name, count in counts.items() if count >= cutoff
    }


def named_features(ragged, names):
    return [sorted(names[i] for i in ragged.ids[a:b]) for a, b in pairwise(ragged.offsets)]


def corpora_of(words):
    token = st.tuples(st.sampled_from(words), st.sampled_from(["N", "V", ""]))
    sentence = st.lists(token, max_size=5)
    document = st.lists(sentence, min_size=1, max_size=3)
    return st.tuples(st.lists(document, min_size=1, max_size=4), st.sampled_from(["sentence", "document"])).map(
        lambda drawn: make_corpus(*drawn)
    )


def make_corpus(documents, unit):
    sentences = [
        {"word": [word for word, _ in sentence], "pos": [tag for _, tag in sentence]}
        for document in documents
        for sentence in document
    ]
    ids = [number for number, document in enumerate(documents) for _ in document]
    return Corpus.from_sentences(sentences, ids, unit)


parts = st.builds("{}[{}]".format, st.sampled_from(["w", "wl", "p2", "ic", "pos", "go", "c3"]), st.integers(-3, 3))
conjunctions = st.lists(parts, max_size=3, unique=True).map(lambda drawn: "|".join(drawn) or "bias")
template_lists = st.lists(conjunctions, min_size=1, max_size=6)


def make_extractor(node, edge, cutoff):
    """With just the lists that the templates ask for."""
    asked = "".join([*node, *edge])
    gazetteers = {"go": Gazetteer(PHRASES)} if "go[" in asked else None
    clusters = Clusters(PATHS) if "c3[" in asked else None
    return FeatureExtractor(node, edge, cutoff, gazetteers, clusters, progress=False)


@settings(max_examples=40)
@given(
    train=corpora_of(["ab", "Ab", "12", "c"]),
    other=corpora_of(["ab", "12", "Unseen", "C"]),
    node=template_lists,
    edge=template_lists,
    cutoff=st.integers(1, 3),
)
def test_equals_the_naive_extractor(train, other, node, edge, cutoff):
    extractor = make_extractor(node, edge, cutoff)
    extractor.fit(train)
    for corpus in (train, other):
        encoded = extractor.encode(corpus)
        for kind, items, found in (("node", node, encoded.nodes), ("edge", edge, encoded.edges)):
            tokens, known = naive_features(train, corpus, parse_templates(items), cutoff)
            names = extractor.index.names(kind)
            assert sorted(names) == sorted(known)
            assert named_features(found, names) == tokens
            assert (found.ids.dtype, found.offsets.dtype) == (torch.int32, torch.int64)
    assert (extractor.n_node_features, extractor.n_edge_features) == tuple(
        len(extractor.index.names(kind)) for kind in ("node", "edge")
    )


@settings(max_examples=30)
@given(corpora_of(["ab", "Ab", "12", "c"]), corpora_of(["ab", "12", "Unseen", "C"]), template_lists, st.data())
def test_search_of_keys_and_short_pieces(train, other, node, data):
    """What large corpora meet, large key spaces and many pieces, on small ones."""
    extractor = make_extractor(node, [], 1)
    expected = extractor.fit_encode(train), extractor.encode(other)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exact_index, "TABLE", 1)
        patch.setattr(lookup, "LOOKUP_CHUNK", data.draw(st.integers(1, 6)))
        again = make_extractor(node, [], 1)
        found = again.fit_encode(train), again.encode(other)
    assert again.index.names("node") == extractor.index.names("node")
    for one, two in zip(expected, found, strict=True):
        assert two.nodes.ids.dtype == torch.int32
        np.testing.assert_array_equal(one.nodes.ids, two.nodes.ids)
        np.testing.assert_array_equal(one.nodes.offsets, two.nodes.offsets)


@settings(max_examples=30)
@given(corpora_of(["ab", "Ab", "12", "c"]), corpora_of(["ab", "Unseen"]), template_lists, template_lists)
def test_a_restored_extractor_is_the_same(train, other, node, edge):
    extractor = make_extractor(node, edge, 1)
    before = extractor.fit_encode(train), extractor.encode(other)
    strings, arrays = json.loads(json.dumps(extractor.state_dict_json())), extractor.state_arrays()
    assert {array.dtype for array in arrays.values()} == {np.dtype(np.int64)}
    again = FeatureExtractor.from_state(strings, arrays, Builder())
    for kind in ("node", "edge"):
        assert again.index.names(kind) == extractor.index.names(kind)
    for one, two in zip(before, (again.encode(train), again.encode(other)), strict=True):
        np.testing.assert_array_equal(one.nodes.ids, two.nodes.ids)
        np.testing.assert_array_equal(one.edges.ids, two.edges.ids)
        np.testing.assert_array_equal(one.edges.offsets, two.edges.offsets)


SENTENCES = [
    {"word": ["The", "cat", "sat"], "pos": ["D", "N", "V"]},
    {"word": ["the", "cat"], "pos": ["D", "N"]},
    {"word": ["cat"], "pos": ["N"]},
]


def fitted(node, edge=None, cutoff=2, **options):
    extractor = FeatureExtractor(node, edge, cutoff, progress=False, **options)
    return extractor, extractor.fit_encode(Corpus.from_sentences(SENTENCES))


def test_a_worked_example():
    extractor, encoded = fitted(["bias", "wl[-1]", "wl[0]|pos[0]", "ic[0]"])
    names = ["bias", "wl[-1]=_B-1", "wl[-1]=the", "wl[0]=cat|pos[0]=N", "wl[0]=the|pos[0]=D"]
    assert sorted(extractor.index.names("node")) == names  # ic holds once, sat and cat[-1] occur once
    assert named_features(encoded.nodes, extractor.index.names("node")) == [
        ["bias", "wl[-1]=_B-1", "wl[0]=the|pos[0]=D"],
        ["bias", "wl[-1]=the", "wl[0]=cat|pos[0]=N"],
        ["bias"],
        ["bias", "wl[-1]=_B-1", "wl[0]=the|pos[0]=D"],
        ["bias", "wl[-1]=the", "wl[0]=cat|pos[0]=N"],
        ["bias", "wl[-1]=_B-1", "wl[0]=cat|pos[0]=N"],
    ]


def test_word_like_a_boundary():
    extractor = FeatureExtractor(["w[-1]"], cutoff=1, progress=False)
    encoded = extractor.fit_encode(Corpus.from_sentences([{"word": ["_B-1", "x"]}]))
    assert extractor.index.names("node") == ["w[-1]=_B-1", "w[-1]=_B-1"]
    assert encoded.nodes.ids.tolist() == [0, 1]


def test_order_of_ids():
    extractor, _ = fitted(["w[0]", "bias", "pos[0]"])
    assert extractor.index.names("node") == ["w[0]=cat", "bias", "pos[0]=N", "pos[0]=D"]


def test_equal_templates_are_extracted_once():
    extractor, encoded = fitted(["bias", "w[0]"], ["bias", "w[0]"])
    assert encoded.edges is encoded.nodes
    assert set(extractor.state_arrays()) == {"node_keys", "node_sizes"}
    again = FeatureExtractor.from_state(extractor.state_dict_json(), extractor.state_arrays(), Builder())
    restored = again.encode(Corpus.from_sentences(SENTENCES))
    assert restored.edges is restored.nodes
    assert again.n_edge_features == again.n_node_features == extractor.n_edge_features


def test_no_edge_templates():
    extractor, encoded = fitted(["bias"])
    assert encoded.edges is None
    assert extractor.n_edge_features == 0
    assert extractor.encode(Corpus.from_sentences([])).nodes.offsets.tolist() == [0]
    with pytest.raises(ValueError, match="'edge'"):
        extractor.index.names("edge")


def test_subset():
    extractor, encoded = fitted(["wl[0]", "bias", "pos[0]", "wl[-1]|wl[0]"], ["pos[0]"])
    names = extractor.index.names("node")
    keep = np.array([name not in ("pos[0]=D", "wl[0]=the") for name in names])
    pruned = extractor.subset("node", keep)
    kept = [name for name in names if name not in ("pos[0]=D", "wl[0]=the")]
    assert pruned.index.names("node") == kept
    assert extractor.index.names("node") == names
    assert pruned.index.names("edge") == extractor.index.names("edge")
    again = FeatureExtractor.from_state(pruned.state_dict_json(), pruned.state_arrays(), Builder())
    for small in (pruned, again):
        assert named_features(small.encode(Corpus.from_sentences(SENTENCES)).nodes, kept) == [
            [name for name in token if name in kept] for token in named_features(encoded.nodes, names)
        ]


def test_shared_subsets():
    extractor, _ = fitted(["w[0]", "bias"], ["w[0]", "bias"])
    keep = np.array([False, True])
    pruned = extractor.subset("node", keep)
    assert (pruned.n_node_features, pruned.n_edge_features) == (1, 2)
    assert "edge_keys" in pruned.state_arrays()
    both = pruned.subset("edge", keep).encode(Corpus.from_sentences(SENTENCES))
    assert both.edges is both.nodes
    with pytest.raises(ValueError, match="keep"):
        extractor.subset("node", keep[:1])


def test_state_holds_gazetteers_and_clusters():
    lists = {
        "gazetteers": {"go": Gazetteer(["the cat"], fold=False)},
        "clusters": Clusters({"cat": "01"}, False),
    }
    extractor, encoded = fitted(["go[0]", "c1[0]"], **lists)
    assert extractor.index.names("node") == ["c1[0]=0"]  # "the cat" occurs once as it stands
    again = FeatureExtractor.from_state(extractor.state_dict_json(), extractor.state_arrays(), Builder())
    assert (again.gazetteers["go"].fold, again.clusters["c"].lower_case) == (False, False)
    restored = again.encode(Corpus.from_sentences(SENTENCES))
    np.testing.assert_array_equal(restored.nodes.ids, encoded.nodes.ids)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"node": ["bias"], "cutoff": 0}, "cutoff: 0"),
        ({"node": ["bias"], "gazetteers": {"go": Gazetteer(["a"])}}, "'go'"),
        (
            {"node": ["ic[0]"], "gazetteers": {"ic": Gazetteer(["a"])}},
            "'ic'",
        ),
        ({"node": ["w[0]"], "clusters": Clusters({"a": "0"})}, "no template uses a prefix"),
    ],
)
def test_invalid_options(options, message):
    with pytest.raises(InputError, match=message):
        FeatureExtractor(**options)


@pytest.mark.parametrize("item", ["chunk[0]", "label[0]", "c4[0]"])
def test_a_missing_column_is_named(item):
    sentence = {"word": ["a"], "pos": ["N"], "label": ["O"]}
    name = item.split("[")[0]
    with pytest.raises(InputError, match=rf"eng.train: .*'{name}'.*\(word, pos\)"):
        FeatureExtractor([item]).fit(Corpus.from_sentences([sentence], name="eng.train"))


def test_too_many_combinations():
    words = [str(i) for i in range(1500)]  # with 12 other codes: 1512**6 is between 2**63 and 2**64
    extractor = FeatureExtractor(["|".join(f"w[{offset}]" for offset in range(6))], cutoff=1, progress=False)
    with pytest.raises(InputError, match="joins too many values"):
        extractor.fit(Corpus.from_sentences([{"word": words}]))


def test_invalid_states():
    extractor = FeatureExtractor(["w[0]"], cutoff=1, progress=False)
    extractor.fit(Corpus.from_sentences(SENTENCES))
    strings, arrays = extractor.state_dict_json(), extractor.state_arrays()
    words, keys = strings["vocabularies"]["w"], arrays["node_keys"]
    for values in ([*words[:-1], ""], [*words[:-1], words[0]]):
        with pytest.raises(InputError, match=r"features\.vocabularies\.w"):
            FeatureExtractor.from_state({**strings, "vocabularies": {"w": values}}, arrays, Builder())
    with pytest.raises(InputError, match="missing 'w'"):
        FeatureExtractor.from_state({**strings, "vocabularies": {}}, arrays, Builder())
    for wrong in (keys[::-1], keys + 1, keys - keys.min() - 1, np.repeat(keys[:1], len(keys))):
        with pytest.raises(InputError, match="out of range or order"):
            FeatureExtractor.from_state(strings, {**arrays, "node_keys": wrong}, Builder())


def test_fit_comes_first():
    extractor = FeatureExtractor(["bias"])
    with pytest.raises(RuntimeError, match="call fit"):
        extractor.encode(Corpus.from_sentences(SENTENCES))
