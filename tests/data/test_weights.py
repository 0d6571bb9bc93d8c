"""Weights of tokens and sequences from files, up to mini-batches."""

import json

import pytest

import structperc
from structperc.criteria import CRFLoss, MCEFLoss, TokenCrossEntropyLoss
from structperc.data import LabelSet
from structperc.data.read_options import DEFAULT_READING
from structperc.datamodules import Conll, Table
from structperc.datamodules.cache import CorpusCache, CorpusStore
from structperc.datamodules.encoded import EncodedCorpus
from structperc.errors import InputError
from structperc.features import FeatureExtractor
from structperc.tagging.labelling import FileTagger
from tests.tiny import make_tagger

COLUMNS = {"word": "tokens", "label": "tags", "weight": "weight"}


def table(tmp_path, rows, columns):
    (tmp_path / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return Table(str(tmp_path), {"train": "train.jsonl"}, columns)


def test_weights_of_rows_and_tokens(tmp_path):
    rows = [
        {"weight": 2.5, "tokens": ["Anna", "left"], "tags": ["B-PER", "O"]},
        {"weight": [1, 0.5], "tokens": ["Yes", "!"], "tags": ["O", "O"]},
    ]
    assert table(tmp_path, rows, COLUMNS).corpus("train").columns["weight"] == ["2.5", "2.5", "1", "0.5"]
    texts = [{"text": "Anna left.", "entities": [{"start": 0, "end": 4, "label": "PER"}], "weight": 3}]
    columns = {"text": "text", "spans": "entities", "weight": "weight"}
    assert table(tmp_path, texts, columns).corpus("train").columns["weight"] == ["3", "3", "3"]


def conll(tmp_path, text):
    (tmp_path / "train.txt").write_text(text)
    return Conll(str(tmp_path), {"train": "train.txt"}, ["word", "weight", "label"])


def test_weights_in_batches(tmp_path):
    corpus = conll(tmp_path, "Yes 3 O\n\nAnna 2 B-PER\nleft 0.5 O\n").corpus("train")
    features = FeatureExtractor(["w[0]"], cutoff=1, progress=False)
    features.fit(corpus)
    rows = EncodedCorpus(corpus, features, LabelSet(("O", "B-PER", "I-PER")))
    assert rows[[0, 1]].weights.tolist() == [[3.0, 0.0], [2.0, 0.5]]
    assert rows.flat([1, 0]).weights.tolist() == [2.0, 0.5, 3.0]


@pytest.mark.parametrize("weight", ["-1", "high", "nan", "inf"])
def test_error_of_a_wrong_weight_names_its_line(tmp_path, weight):
    data = conll(tmp_path, f"Anna 1 B-PER\nleft {weight} O\n")
    with pytest.raises(InputError, match=r"train.txt:2"):
        make_tagger(data, CRFLoss()).requirements.check_weights(data.corpus("train"))


def test_criteria_without_weights_of_tokens(tmp_path):
    different, equal = (conll(tmp_path, f"Yes 3 O\n\nAnna 2 B-PER\nleft {w} O\n").corpus("train") for w in ("1", "2"))
    data = conll(tmp_path, "Anna 2 B-PER\n")
    tagger = make_tagger(data, CRFLoss())
    tagger.requirements.check_weights(equal)
    with pytest.raises(InputError, match=r"train.txt:4"):
        tagger.requirements.check_weights(different)
    make_tagger(data, TokenCrossEntropyLoss()).requirements.check_weights(different)
    make_tagger(data, MCEFLoss()).requirements.check_weights(equal)
    with pytest.raises(InputError, match=r"train.txt:4"):
        make_tagger(data, MCEFLoss()).requirements.check_weights(different)


def test_confidences_above_one(tmp_path):
    data = conll(tmp_path, "Anna 1 B-PER\nleft 1.5 O\n")
    with pytest.raises(InputError, match=r"train.txt:2"):
        make_tagger(data, CRFLoss(confidences=True)).requirements.check_weights(data.corpus("train"))


@pytest.mark.parametrize("criterion", [CRFLoss(), TokenCrossEntropyLoss()])
def test_predictions_ignore_weights(tmp_path, criterion):
    data = conll(tmp_path, "Anna 2 B-PER\nleft 2 O\n")
    make_tagger(data, criterion).save(tmp_path / "model")
    (tmp_path / "new.txt").write_text("Anna unknown\nleft -1\n")
    FileTagger(str(tmp_path / "model"), read_options=DEFAULT_READING._replace(columns=["word", "weight"])).tag_file(
        str(tmp_path / "new.txt"), str(tmp_path / "tagged.txt")
    )
    tagger = structperc.load(tmp_path / "model")
    (labels,) = tagger.tag([["Anna", "left"]])
    assert tagger.tag([{"word": ["Anna", "left"], "weight": ["unknown", "-1"]}]) == [labels]
    tagged = [line.split() for line in (tmp_path / "tagged.txt").read_text().splitlines() if line]
    assert tagged[-2:] == [["Anna", "unknown", labels[0]], ["left", "-1", labels[1]]]


def test_other_weights_are_not_those_of_the_cache(tmp_path):
    for weight in ("2", "3"):
        corpus = conll(tmp_path, f"Anna {weight} B-PER\nleft 0.5 O\n").corpus("train")
        features = CorpusStore().fit_features(FeatureExtractor(["w[0]"], cutoff=1, progress=False), corpus)
        cache, labels = CorpusCache(str(tmp_path / "cache")), LabelSet(("O", "B-PER", "I-PER"))
        for _ in range(2):
            batch = EncodedCorpus(corpus, features, labels, encode=cache.arrays)[[0]]
            assert batch.weights.tolist() == [[float(weight), 0.5]]
