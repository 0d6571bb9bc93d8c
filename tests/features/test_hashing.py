"""Hashed features against arithmetic with Python's integers, and against the index where no two features collide."""

from collections import Counter
from hashlib import blake2b
from itertools import pairwise

import numpy as np
import pytest

from structperc.builder import Builder
from structperc.data.corpus import Corpus
from structperc.errors import InputError
from structperc.features import Clusters, FeatureExtractor, format_weighted_features
from structperc.features.hashing import BucketCounter, string_hash

NODE = ["bias", {"of": ["w", "p2", "ic", "c3"], "at": [-1, 0, 2]}, {"of": ["pos"], "at": [[-1, 0]]}, "w[-2]|ic[0]"]
FULL = 2**64 - 1
CLUSTERS = {"ab": "0110", "12": "10"}


@pytest.fixture
def corpus():
    draw = np.random.default_rng(1)
    words = ["ab", "Ab", "12", "c", "Ünï", "ab-1", "C"]
    rows = [
        {"word": [words[i] for i in draw.integers(0, 7, n)], "pos": [["N", "V", ""][i] for i in draw.integers(0, 3, n)]}
        for n in draw.integers(1, 6, 40)
    ]
    return Corpus.from_sentences(rows)


@pytest.fixture
def made():
    def made(hash_bits, edge=(), cutoff=1, **options):
        clusters = Clusters(CLUSTERS, lower_case=False)
        return FeatureExtractor(NODE, list(edge), cutoff, {}, clusters, progress=False, hash_bits=hash_bits, **options)

    return made


def hashed(text, kind):
    """The hash of a string, or 0 for an absent value."""
    if kind == "value" and not text:
        return 0
    return int.from_bytes(blake2b(text.encode(), digest_size=8, person=kind.encode()).digest(), "little")


def naive_mixed(x):
    """One step of the generator splitmix64, without its increment."""
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 & FULL
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB & FULL
    return x ^ (x >> 31)


def naive_value(attribute, row, at):
    word = row["word"][at]
    made = {"w": word, "p2": word[:2] if len(word) > 1 else "", "ic": "1" if word[0].isupper() else ""}
    return {**made, "c3": CLUSTERS.get(word, "")[:3], "pos": row["pos"][at]}[attribute]


def naive_keys(row, t, templates):
    """The keys of a token's features by their names."""
    keys, n = {}, len(row["word"])
    for template in templates:
        key, codes, shown = hashed("|".join(map(str, template)) or "bias", "template"), [], []
        for part in template:
            at = t + part.offset
            beyond = f"_B-{-at}" if at < 0 else f"_B+{at - n + 1}" if at >= n else None
            value = beyond or naive_value(part.attribute, row, at)
            codes.append(hashed(value, "beyond" if beyond else "value"))
            shown.append(f"{part}={value}")
            key = naive_mixed(key ^ codes[-1])
        if not codes or any(codes):
            keys["|".join(shown) or "bias"] = key
    return keys


def rows_of(corpus):
    columns = {role: corpus.sentences_of(values) for role, values in corpus.columns.items() if role in ("word", "pos")}
    return [dict(zip(columns, one, strict=True)) for one in zip(*columns.values(), strict=True)]


def lists(encoded):
    ids, ends = encoded.ids.tolist(), encoded.offsets.tolist()
    return [ids[a:b] for a, b in pairwise(ends)]


@pytest.mark.parametrize("cutoff", [1, 3])
@pytest.mark.parametrize("bits", [4, 10])
def test_ids_are_ranks_of_frequent_buckets(bits, cutoff, corpus, made):
    features = made(bits, cutoff=cutoff)
    encoded = features.fit_encode(corpus)
    tokens = [naive_keys(row, t, features.node) for row in rows_of(corpus) for t in range(len(row["word"]))]
    counts = Counter(key % 2**bits for token in tokens for key in token.values())
    kept = sorted(bucket for bucket, count in counts.items() if count >= cutoff)
    ids = {bucket: i for i, bucket in enumerate(kept)}
    wanted = [sorted(ids[key % 2**bits] for key in token.values() if key % 2**bits in ids) for token in tokens]
    assert list(map(sorted, lists(encoded.nodes))) == wanted
    assert features.n_node_features == len(kept)
    assert features.state_arrays()["node_buckets"].tolist() == kept


@pytest.mark.parametrize("cutoff", [1, 3])
def test_features_without_collisions(cutoff, corpus, made):
    one, other = made(24, edge=["pos[0]"], cutoff=cutoff), made(None, edge=["pos[0]"], cutoff=cutoff)
    found, indexed = one.fit_encode(corpus), other.fit_encode(corpus)
    for kind, mine, its in (("node", found.nodes, indexed.nodes), ("edge", found.edges, indexed.edges)):
        names, known = one.index.names(kind), other.index.names(kind)
        assert sorted(names) == sorted(known)
        assert [[names[i] for i in ids] for ids in lists(mine)] == [[known[i] for i in ids] for ids in lists(its)]


def test_hashes_are_stable():
    assert string_hash("cat", "value") == 13262086956270172875
    features = FeatureExtractor(["w[-1]|w[0]", "bias"], cutoff=1, hash_bits=20, progress=False)
    features.fit(Corpus.from_sentences([{"word": ["cat"]}]))
    assert features.state_arrays()["node_buckets"].tolist() == [273377, 775202]


def test_state(corpus, made):
    features = made(6, edge=["pos[0]"], within="sentence")
    features.fit(corpus)
    again = FeatureExtractor.from_state(features.state_dict_json(), features.state_arrays(), Builder().part)
    for mine, its in zip(features.encode(corpus)[:2], again.encode(corpus)[:2], strict=True):
        assert lists(mine) == lists(its)
    assert again.index.names("node") == features.index.names("node")
    assert again.index.summary() == features.index.summary()


def test_names_of_buckets(corpus, made):
    features = made(5)
    features.fit(corpus)
    keys = {
        name: key
        for row in rows_of(corpus)
        for t in range(len(row["word"]))
        for name, key in naive_keys(row, t, features.node).items()
    }
    shared = Counter(key % 32 for key in keys.values())
    buckets = features.state_arrays()["node_buckets"].tolist()
    for bucket, name in zip(buckets, features.index.names("node"), strict=True):
        first, _, more = name.partition(" and ")
        assert keys[first] % 32 == bucket
        assert more == (f"{shared[bucket] - 1} more" if shared[bucket] > 1 else "")
    arrays = {**features.state_arrays(), "node_named": np.empty(0, np.int32)}
    state = features.state_dict_json()
    state["buckets"]["node"]["names"] = []
    unnamed = FeatureExtractor.from_state(state, arrays, Builder().part)
    assert unnamed.index.names("node", np.array([0, 2])) == [f"bucket {buckets[0]}", f"bucket {buckets[2]}"]


def test_ids_of_a_subset(corpus, made):
    features = made(8)
    features.fit(corpus)
    keep = np.arange(features.n_node_features) % 3 > 0
    kept = features.subset("node", keep)
    rank = np.cumsum(keep) - 1
    wanted = [[int(rank[i]) for i in ids if keep[i]] for ids in lists(features.encode(corpus).nodes)]
    assert lists(kept.encode(corpus).nodes) == wanted
    assert kept.index.names("node") == features.index.names("node", np.flatnonzero(keep))


def test_buckets_of_listed_features():
    bags = [
        format_weighted_features([("a", 1), ("b", 2)]),
        format_weighted_features([("c", 0.5)]),
        format_weighted_features([("a", 1)]),
    ]
    corpus = Corpus.from_sentences([{"word": ["x", "y", "z"], "features": bags}])
    features = FeatureExtractor(["bias"], cutoff=1, weighted_column="features", hash_bits=12, progress=False)
    nodes = features.fit_encode(corpus).nodes
    buckets = {name: hashed(name, "listed") % 2**12 for name in "abc"}
    order = sorted("abc", key=buckets.get)
    assert features.index.names("node") == ["bias", *order]
    assert [[features.index.names("node")[i] for i in ids] for ids in lists(nodes)] == [
        ["bias", "a", "b"],
        ["bias", "c"],
        ["bias", "a"],
    ]
    assert nodes.weights.tolist() == [1, 1, 2, 1, 0.5, 1, 1]
    again = FeatureExtractor.from_state(features.state_dict_json(), features.state_arrays(), Builder().part)
    assert again.encode(corpus).nodes.ids.tolist() == nodes.ids.tolist()


def test_count_of_keys_in_fixed_memory():
    keys = np.random.default_rng(0).integers(1, 2**63, 200_000).astype(np.uint64) * np.uint64(2) + np.uint64(1)
    tally = BucketCounter(10)
    for part in (keys, keys[:1000], np.zeros(5, np.uint64)):
        tally.add(part)
    assert abs(tally.distinct - 200_000) < 100  # five times the standard error
    assert tally.occupied == 512


def test_tallies_are_merged_as_if_one_had_counted():
    draw = np.random.default_rng(0)
    keys = (draw.integers(0, 40, 6000) ** 3).astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    whole, merged = BucketCounter(6), BucketCounter(6)
    for part in np.split(keys, 3):
        whole.add(part)
        own = BucketCounter(6)
        own.add(part)
        merged.merge(own)
    assert (merged.distinct, merged.occupied) == (whole.distinct, whole.occupied)
    met = [len(whole.frequent(cutoff)) for cutoff in (1, 150, 255)]
    assert met == sorted(set(met), reverse=True)  # some were met more often than is counted, some were not
    for cutoff in range(1, 256):
        assert merged.frequent(cutoff).numbers.tolist() == whole.frequent(cutoff).numbers.tolist()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"hash_bits": 3}, r"^hash_bits.*got 3"),
        ({"hash_bits": 40}, r"^hash_bits.*got 40"),
        ({"hash_bits": 8, "cutoff": 256}, r"^cutoff.*hash_bits.*got 256"),
    ],
)
def test_invalid_options(options, message):
    with pytest.raises(InputError, match=message):
        FeatureExtractor(["bias"], **options, progress=False).fit(Corpus.from_sentences([{"word": ["x"]}]))


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"node_buckets": np.array([3, 2], np.int32)}, "buckets are ascending"),
        ({"node_buckets": np.array([3, 64], np.int32)}, "below 2"),
        ({"node_buckets": np.array([3, 4])}, "as int32"),
        ({"node_named": np.array([3], np.int32)}, "names"),
    ],
)
def test_damaged_states_are_refused(arrays, message, corpus, made):
    features = made(6)
    features.fit(corpus)
    with pytest.raises(InputError, match=f"features.node: .*{message}"):
        FeatureExtractor.from_state(features.state_dict_json(), {**features.state_arrays(), **arrays}, Builder().part)
