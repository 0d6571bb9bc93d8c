"""Dropout is for training alone: whoever labels text, and whenever, gets the same."""

import csv
import json

import pytest
import torch
from torch import nn

from structperc.chain import KBest
from structperc.cli.main import main
from structperc.criteria import CRFLoss
from structperc.datamodules.sources import Synthetic
from structperc.encoders import BiLSTM, WordEmbedding
from structperc.models.base import evaluation_mode
from structperc.scorers import Neural
from structperc.taggers.tagger import Tagger
from structperc.training.report import label_split
from tests.tiny import Sentences, sentences, without_names

CONFIG = "pkg:studies/embedded#bilstm_crf"
SIZES = {"train": 24, "dev": 6, "test": 6}


def test_mode_is_restored_after_errors():
    module = nn.Sequential(nn.Dropout(), nn.Sequential(nn.Dropout()))
    module[1].eval()
    before = [part.training for part in module.modules()]

    def fails():
        with evaluation_mode(module):
            assert not any(part.training for part in module.modules())
            raise KeyError

    with pytest.raises(KeyError):
        fails()
    assert [part.training for part in module.modules()] == before == [True, True, False, False]


@pytest.fixture
def tagger():
    """In training mode, with much dropout."""
    torch.manual_seed(0)
    encoder = BiLSTM([WordEmbedding(8, cutoff=1)], hidden=8, dropout=0.8)
    made = Tagger(None, Neural(encoder), CRFLoss(), KBest(1), torch.optim.Adam)
    made.build_vocabulary(Sentences(sentences(12)))
    for p in made.parameters():
        nn.init.normal_(p)
    return made.train()


TEXT = [["Anna", "met", "Bo", "in", "Rome"], ["Paris", "saw", "the", "Bo"], ["Bo"]] * 4


def test_inference_without_dropout(tagger):
    labels, scores, shares = tagger.tag(TEXT), tagger.kbest(TEXT, 3), tagger.marginals(TEXT)
    assert tagger.training
    assert tagger.scorer.encoder.training
    tagger.eval()
    assert labels == tagger.tag(TEXT)
    assert scores == tagger.kbest(TEXT, 3)
    assert all(map(torch.equal, shares, tagger.marginals(TEXT)))


def test_splits_are_scored_without_dropout(tagger):
    data = Sentences(sentences(12))
    data.encode(tagger.encode, "fit")
    found = label_split(tagger, data, "train").labels
    assert tagger.training
    assert found == label_split(tagger.eval(), data, "train").labels


def test_reported_scores(tmp_path):
    options = [f"--data.{split}={n}" for split, n in SIZES.items()]
    quiet = ["--trainer.enable_progress_bar=false", "--trainer.enable_model_summary=false", "--trainer.accelerator=cpu"]
    more = ["--trainer.max_epochs=6", f"--trainer.default_root_dir={tmp_path}", "--data.batch_size=4"]
    assert main(["fit", "-c", CONFIG, *options, *quiet, *more]) == 0
    run = tmp_path / "1"
    with open(run / "logs" / "version_0" / "metrics.csv", encoding="utf-8") as file:
        logged = max(float(row["dev/score"]) for row in csv.DictReader(file) if row["dev/score"])
    assert json.loads((run / "results.json").read_text())["dev"]["score"] == pytest.approx(logged)
    assert logged > 0
    corpus = Synthetic(unit="document", **SIZES).corpus("test")
    labels = [label for sentence in Tagger.load(run / "model").label(corpus) for label in sentence]
    lines = without_names((run / "predictions" / "test.conll").read_text()).splitlines()
    assert [line.split()[-1] for line in lines if line and not line.startswith("-DOCSTART-")] == labels
