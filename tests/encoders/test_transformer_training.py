"""Taggers over a transformer: they learn, and a saved one is complete."""

import shutil

import pytest
import pytorch_lightning as pl
import torch

from structperc.chain import KBest
from structperc.criteria import CRFLoss
from structperc.datamodules.sources import Synthetic
from structperc.encoders import Transformer
from structperc.scorers import Neural
from structperc.taggers.tagger import Tagger
from tests.encoders.tiny_models import save_bert


class Objectives(pl.Callback):
    """That of each epoch."""

    def __init__(self):
        self.values = []

    def on_train_epoch_end(self, trainer, module):
        self.values.append(module.objective())


def adam(parameters):
    return torch.optim.AdamW(parameters, lr=5e-3)


def data():
    """Sentences in which words alone decide their labels."""
    return Synthetic(train=6, dev=0, test=0, ambiguity=0.0, batch_size=3)


def trained(folder, epochs, **options):
    """A tagger of a few sentences, and the objective of each epoch."""
    encoder = Transformer(str(folder), **options)
    tagger = Tagger(None, Neural(encoder), CRFLoss(), KBest(1), adam)
    objectives = Objectives()
    quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False}
    pl.seed_everything(1)
    trainer = pl.Trainer(
        max_epochs=epochs, accelerator="cpu", enable_model_summary=False, callbacks=[objectives], **quiet
    )
    trainer.fit(tagger, datamodule=data())
    return tagger.eval(), objectives.values


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return save_bert(tmp_path_factory.mktemp("models") / "bert")


def network(tagger):
    return tagger.scorer.encoder.network


def test_training_moves_the_network(folder):
    tagger, objectives = trained(folder, 12)
    assert len(objectives) == 12
    assert objectives[-1] < objectives[0] / 2
    start = Transformer(str(folder))
    start.build_vocabulary(data().corpus("train"))
    moved = {
        name.partition(".")[0]
        for name, p in network(tagger).named_parameters()
        if not torch.equal(p, start.network.get_parameter(name))
    }
    assert moved == {"embeddings", "encoder"}


def test_frozen_network(folder):
    tagger, objectives = trained(folder, 3, frozen=True, pool="mean")
    assert objectives[-1] < objectives[0]
    start = Transformer(str(folder))
    start.build_vocabulary(data().corpus("train"))
    for name, p in network(tagger).named_parameters():
        assert torch.equal(p, start.network.get_parameter(name)), name


def test_saved_tagger_is_self_contained(folder, tmp_path):
    own = tmp_path / "bert"
    shutil.copytree(folder, own)
    tagger, _ = trained(own, 1, pool="mean", window=16, overlap=5)
    tagger.save(tmp_path / "saved")
    shutil.rmtree(own)
    loaded = Tagger.load(tmp_path / "saved")
    corpus = Synthetic(train=1, dev=4, test=0, unit="document").corpus("dev")
    batches = [one.encode(corpus)[[0, 1, 2, 3]] for one in (tagger, loaded)]
    with torch.no_grad():
        expected, found = (one(batch) for one, batch in zip((tagger, loaded), batches, strict=True))
    assert torch.equal(found.unary, expected.unary)
    assert torch.equal(found.edge, expected.edge)
    assert torch.isfinite(found.unary[0, 1]).all()
    assert sorted(path.name for path in (tmp_path / "saved").iterdir()) == [
        "README.md",
        "model.json",
        "model.safetensors",
    ]
    loaded.save(tmp_path / "again")
    assert (tmp_path / "again" / "model.json").read_bytes() == (tmp_path / "saved" / "model.json").read_bytes()
