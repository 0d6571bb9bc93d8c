"""Smaller models: what is dropped is nothing, what is rounded is rounded as it should be, and both are said."""

import json

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file

import structperc
from structperc.chain import KBest
from structperc.criteria import PerceptronLoss
from structperc.data.corpus import Corpus
from structperc.data.labels import LabelSet
from structperc.encoders import Window, WordEmbedding
from structperc.errors import InputError
from structperc.features import FeatureExtractor, format_weighted_features
from structperc.models.model_format import dequantize_tables, quantize_tables
from structperc.models.saving import prune
from structperc.nonlocal_features import PhraseConsistency
from structperc.predictor.sparse import SparsePredictor
from structperc.scorers import Neural, SegmentFeatures, SegmentLinear, SparseLinear
from structperc.taggers import Tagger

NODE = ["bias", {"of": ["w", "s2"], "at": [-1, 0, 1]}, "w[-1]|w[0]"]
KINDS = {
    "indexed": {"edge": ["w[0]"]},
    "edges as nodes": {"edge": NODE},
    "hashed": {"edge": ["w[0]"], "hash_bits": 7},
    "hashed edges as nodes": {"edge": NODE, "hash_bits": 7},
    "no edges": {},
    "bag": {"weighted_column": "bag", "edge": NODE},
    "hashed bag": {"weighted_column": "bag", "edge": NODE, "hash_bits": 7},
    "segments": {},
    "hashed segments": {"hash_bits": 7},
}


def corpus(seed, count=30):
    draw = np.random.default_rng(seed)
    words = np.array(["Anna", "Bo", "Rome", "in", "saw", "the", "1996"])
    rows = []
    for n in draw.integers(1, 7, count):
        bags = [format_weighted_features([(f"f{i}", 1.5) for i in draw.integers(0, 9, 2)]) for _ in range(n)]
        labels = draw.choice(["O", "B-PER", "B-LOC"], n).tolist()
        rows.append({"word": words[draw.integers(0, 7, n)].tolist(), "bag": bags, "label": labels})
    return Corpus.from_sentences(rows)


def scorer_with_segments(hash_bits):
    features = SegmentFeatures(["w[all]", "wl[first]|length"], max_length=6, cutoff=1, hash_bits=hash_bits)
    features.build_vocabulary(corpus(0))
    return SegmentLinear(SparseLinear(), features)


def tagger_of(kind, **more):
    features = FeatureExtractor(NODE, **{"cutoff": 1, "progress": False, **KINDS[kind]})
    features.fit(corpus(0))
    scorer = scorer_with_segments(KINDS[kind].get("hash_bits")) if "segments" in kind else SparseLinear()
    tagger = Tagger(features, scorer, PerceptronLoss(), KBest(2), **more)
    tagger.allocate(LabelSet.from_corpus(["O", "B-PER", "B-LOC"], "IOB2"))
    draw = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for p in tagger.parameters():
            rows = torch.rand(len(p), *[1] * (p.ndim - 1), generator=draw) < 0.4
            p.copy_(torch.randn(p.shape, generator=draw) * rows)
    return tagger.eval()


@pytest.mark.parametrize("kind", KINDS)
def test_pruning_keeps_labels(kind, tmp_path):
    tagger = tagger_of(kind)
    small = prune(tagger)
    assert small.features.n_node_features < tagger.features.n_node_features
    assert small.features.index.shared == tagger.features.index.shared
    small.save(tmp_path / "model")
    light, new = structperc.load(tmp_path / "model"), corpus(5)
    assert isinstance(light, SparsePredictor) == ("bag" not in kind)
    assert light.label(new) == small.label(new) == tagger.label(new)


@pytest.mark.parametrize("kind", ["segments", "hashed segments"])
def test_pruning_of_segments(kind):
    tagger = tagger_of(kind)
    scorer, small = tagger.scorer, prune(tagger, 0.5).scorer
    weight = torch.where(scorer.weight.abs() < 0.5, 0.0, scorer.weight)
    rows = weight.any(1)
    assert torch.equal(small.weight, weight[rows])
    kept = scorer.segments.feature_names(rows.nonzero().flatten().tolist())
    assert small.segments.feature_names(range(small.segments.n_features)) == kept


def test_segments_without_weights_are_gone(tmp_path):
    tagger = tagger_of("segments")
    tagger.scorer.weight.data.zero_()
    small = prune(tagger)
    assert small.scorer.segments.n_features == 0
    small.save(tmp_path / "model")
    assert structperc.load(tmp_path / "model").label(corpus(5)) == small.label(corpus(5)) == tagger.label(corpus(5))


@pytest.mark.parametrize("kind", ["indexed", "hashed"])
def test_pruning_keeps_names(kind):
    tagger = tagger_of(kind)
    small = prune(tagger)
    for name in ("node", "edge"):
        table = getattr(tagger.scorer, name)
        rows = table.any(1)
        assert torch.equal(getattr(small.scorer, name), table[rows])
        kept = tagger.features.index.names(name, rows.nonzero().flatten().numpy())
        assert small.features.index.names(name) == kept


def test_small_weights_count_as_zero():
    tagger = tagger_of("indexed")
    small = prune(tagger, 0.5)
    node = tagger.scorer.node
    wanted = torch.where(node.abs() < 0.5, 0.0, node)
    assert torch.equal(small.scorer.node, wanted[wanted.any(1)])
    assert torch.equal(small.scorer.transition, tagger.scorer.transition)


def test_edges_without_weights_are_gone(tmp_path):
    tagger = tagger_of("indexed")
    tagger.scorer.edge.data.zero_()
    small = prune(tagger)
    assert small.scorer.edge is None
    small.save(tmp_path / "model")
    assert structperc.load(tmp_path / "model").label(corpus(5)) == tagger.label(corpus(5))


def test_other_weights_are_kept():
    tagger = tagger_of("indexed", nonlocal_features=[PhraseConsistency()])
    weight = tagger.nonlocal_features[0].weight
    weight.data[:] = torch.tensor([1.0, -0.25, 0.0])
    assert torch.equal(prune(tagger).nonlocal_features[0].weight, weight)


@pytest.mark.parametrize(("below", "message"), [(-1.0, "must be >= 0"), (1e9, "no feature has such a weight")])
def test_models_without_pruning(below, message):
    with pytest.raises(InputError, match=message):
        prune(tagger_of("indexed"), below)


def test_only_weights_of_features_can_be_pruned():
    tagger = Tagger(None, Neural(Window([WordEmbedding(4)])), PerceptronLoss(), KBest(2))
    with pytest.raises(InputError, match="only SparseLinear"):
        prune(tagger)


@pytest.mark.parametrize("width", ["float16", "int8"])
@pytest.mark.parametrize("kind", ["indexed", "segments"])
def test_quantised_tables_are_float32_after_loading(kind, width, tmp_path):
    tagger = tagger_of(kind)
    tagger.save(tmp_path / "model", width)
    stored = load_file(tmp_path / "model" / "model.safetensors")
    loaded = Tagger.load(tmp_path / "model")
    for name in ("scorer.labels.node", "scorer.weight") if kind == "segments" else ("scorer.node", "scorer.edge"):
        assert stored[name].dtype == width
        given, found = (one.state_dict()[name] for one in (tagger, loaded))
        assert found.dtype == torch.float32
        largest = given.abs().amax(1, keepdim=True)
        error = given.abs() * 2**-11 if width == "float16" else largest / 254 * 1.0001
        assert ((found - given).abs() <= error + 1e-7).all()
    light = structperc.load(tmp_path / "model")
    assert isinstance(light, SparsePredictor)
    assert light.label(corpus(5)) == loaded.label(corpus(5))


@pytest.mark.parametrize("width", ["float32", "int8"])
def test_rows_of_zeros_in_quantised_files(width):
    table = np.zeros((50, 3), np.float32)
    table[[4, 7, 49]] = [[0, 127, -1], [0, 0, 0], [-5, 0, 127]]
    arrays, tables = quantize_tables({"scorer.node": table}, width)
    assert arrays["scorer.node"].shape == (2, 3)
    found = dequantize_tables({"tables": tables}, {**arrays, "other": np.ones(1)})
    assert found.keys() == {"scorer.node", "other"}
    assert found["scorer.node"].dtype == np.float32
    assert np.array_equal(found["scorer.node"], table)


def test_table_without_rows_of_zeros():
    table = np.ones((5, 3), np.float32)
    arrays, tables = quantize_tables({"scorer.node": table}, "float32")
    assert (arrays["scorer.node"] is table, len(arrays), tables) == (True, 1, {})
    arrays, tables = quantize_tables({"scorer.node": table}, "float16")
    assert arrays.keys() == {"scorer.node"}
    assert np.array_equal(dequantize_tables({"tables": tables}, arrays)["scorer.node"], table)


@pytest.mark.parametrize("kind", ["edges as nodes", "segments"])
def test_rows_of_zeros_in_saved_models(kind, tmp_path):
    tagger = tagger_of(kind)
    tagger.save(tmp_path / "model")
    stored, state = load_file(tmp_path / "model" / "model.safetensors"), tagger.state_dict()
    for name in ("scorer.labels.node", "scorer.weight") if "segments" in kind else ("scorer.node",):
        assert len(stored[name]) == int(state[name].any(1).sum()) < len(state[name])
        assert torch.equal(Tagger.load(tmp_path / "model").state_dict()[name], state[name])


def test_weights_beyond_float16(tmp_path):
    tagger = tagger_of("indexed")
    tagger.scorer.node.data[0, 0] = 1e5
    with pytest.raises(InputError, match=r"scorer.node .*100000.*float16.*int8"):
        tagger.save(tmp_path / "model", "float16")
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize(
    ("entry", "rows", "message"),
    [
        ({"width": "float16", "rows": 9}, [1, 2], "scorer.node"),
        ({"width": "int8", "rows": 9}, [1, 2], "float32 scale"),
        ({"width": "int8", "rows": 9}, [2, 1], "scorer.node"),
        ({"width": "int8", "rows": 9}, [-1, 1], "scorer.node"),
        ({"width": "int8", "rows": 9}, None, "scorer.node"),
        ({"width": "int4", "rows": 9}, [1, 2], r"^tables.scorer.node.width: "),
        ({"width": "int8"}, [1, 2], r"^tables.scorer.node: .*'rows'"),
    ],
)
def test_damaged_quantised_tables(entry, rows, message):
    arrays = {"scorer.node": np.zeros((2, 3), np.int8)}
    if rows is not None:
        arrays["scorer.node.rows"] = np.array(rows, np.int32)
    with pytest.raises(InputError, match=message):
        dequantize_tables({"tables": {"scorer.node": entry}}, arrays)


def test_output_of_prune(tmp_path, run):
    tagger = tagger_of("indexed")
    tagger.save(tmp_path / "model")
    small = tmp_path / "new" / "small"
    shown = run("push", tmp_path / "model", "-o", small, "--below", "0.3", "--table", "int8").splitlines()
    heading, before, after = (line.split() for line in shown)
    assert heading == ["megabytes", "features", "weights", "not", "0"]
    assert (before[0], after[0]) == ("before", "after")
    loaded = Tagger.load(small)
    kept = loaded.features.n_node_features + loaded.features.n_edge_features
    assert int(after[2]) == kept < int(before[2])
    tables = json.loads((small / "model.json").read_text())["tables"]
    assert [entry["width"] for entry in tables.values()] == ["int8", "int8"]
