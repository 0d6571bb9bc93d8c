"""Biases and the temperature of a tagger: what they change, and that saved models keep them."""

import json
from math import exp

import pytest
import torch

import structperc
from structperc import Tagger
from structperc.chain import KBest, LabelBias, MinimumSegmentRisk, SegmentThreshold, marginals
from structperc.chain.minimum_risk import scale
from structperc.criteria import HingeLoss
from structperc.data import Synthetic, spans
from structperc.errors import InputError
from structperc.models.chain_model import ChainModel
from structperc.models.model_format import add_checksums
from structperc.nonlocal_features import MajorityPhrase
from structperc.predictor.sparse import SparsePredictor
from structperc.scorers import SparseLinear
from tests.tiny import random_tagger

TEXT = ["Shares", "of", "Penus", "Corp.", "fell"]
BIASES = {
    "recall": LabelBias({"O": -20.0}),
    "sure": MinimumSegmentRisk(threshold=0.9, temperature=2.0),
    "all": SegmentThreshold(threshold=0.0, temperature=50.0),
}


@pytest.fixture
def tagger() -> Tagger:
    """A margin-trained tagger with random weights."""
    corpus = Synthetic().corpus("train").slice(0, 40)
    labels = structperc.LabelSet.from_corpus(corpus.columns["label"], "IOB2")
    made = random_tagger(corpus, labels, HingeLoss(), sparse_grad=True, seed=1)
    for name, decoder in BIASES.items():
        made.biases.add(name, decoder)
    return made.eval()


def test_saved_models_keep_biases_and_temperature(tagger, tmp_path):
    tagger.biases.use("recall")
    tagger.temperature = 2.5
    tagger.save(tmp_path / "model")
    loaded = Tagger.load(tmp_path / "model")
    assert (loaded.biases.default, loaded.temperature) == ("recall", 2.5)
    for name in (*BIASES, None):
        tagger.biases.use(name)
        loaded.biases.use(name)
        assert loaded.tag([TEXT]) == tagger.tag([TEXT])


def test_models_with_biases_of_labels_load_without_torch(tagger, tmp_path):
    tagger.biases.use("recall")
    tagger.temperature = 2.5
    tagger.save(tmp_path / "model")
    for name, light in {None: True, "none": True, "recall": True, "sure": False, "all": False}.items():
        loaded = structperc.load(tmp_path / "model", bias=name)
        tagger.biases.use("recall" if name is None else None if name == "none" else name)
        assert type(loaded) is (SparsePredictor if light else ChainModel)
        assert loaded.tag([TEXT]) == tagger.tag([TEXT])
    with pytest.raises(InputError, match="unknown"):
        structperc.load(tmp_path / "model", bias="unknown")


def test_a_bias_of_outside_leaves_no_token_outside(tagger):
    tagger.biases.use("recall")
    assert "O" not in tagger.tag([TEXT])[0]


def test_a_temperature_gives_probabilities(tagger):
    with pytest.raises(InputError, match="temperature"):
        tagger.marginals([TEXT])
    labels = tagger.tag([TEXT])
    tagger.temperature = 3.0
    (batch,) = tagger.batches(tagger.read([TEXT]))
    torch.testing.assert_close(tagger.marginals([TEXT])[0], marginals(scale(tagger(batch), 3.0))[0])
    paths = tagger.kbest([TEXT], k=len(tagger.labels) ** 5)[0]
    assert sum(exp(path.log_probability) for path in paths) == pytest.approx(1, abs=1e-4)
    assert tagger.tag([TEXT]) == labels


def test_segments_that_overlap_are_spans_of_predictions_and_texts(tagger):
    tagger.biases.use("all")
    found = tagger.predict(tagger.read([TEXT, TEXT])).split([5, 5])
    for one in found:
        assert len(one.spans) == 15 * len(
            tagger.labels.type_names
        )  # every segment of the sentence has some probability
        assert {tuple(span) for span in spans(one.labels)} <= {span[:3] for span in one.spans}
    text = " ".join(TEXT)
    first = max(found[0].spans, key=lambda span: span.probability)
    words = {(text[span.start : span.end], span.type): span.confidence for span in tagger.annotate(text)}
    assert words[" ".join(TEXT[first.start : first.end]), first.type] == pytest.approx(first.probability)


def test_invalid_biases(tagger, tmp_path):
    with pytest.raises(InputError, match="sure"):
        tagger.biases.use("unknown")
    with pytest.raises(InputError, match="none"):
        tagger.biases.add("none", LabelBias({}))
    nonlocal_tagger = Tagger(None, SparseLinear(), HingeLoss(), KBest(1), nonlocal_features=[MajorityPhrase()])
    with pytest.raises(InputError, match="MinimumSegmentRisk"):
        nonlocal_tagger.biases.add("sure", MinimumSegmentRisk())
    tagger.save(tmp_path / "model")
    file = tmp_path / "model" / "model.json"
    config = json.loads(file.read_text())
    for entry in ({"temperature": -1.0}, {"default_bias": "other"}, {"biases": {"a": {"class_path": "os.system"}}}):
        file.write_text(json.dumps(add_checksums({**config, **entry}, file.parent)))
        for load in (Tagger.load, structperc.load):
            with pytest.raises(InputError):
                load(file.parent)
