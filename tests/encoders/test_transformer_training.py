"""Taggers over a transformer: they learn, and a saved one is complete."""

import shutil
from dataclasses import replace

import numpy as np
import pytorch_lightning as pl
import torch

from structperc.chain import KBest
from structperc.criteria import CRFLoss
from structperc.data.conll import write_conll
from structperc.datamodules.sources import Synthetic
from structperc.encoders import Transformer
from structperc.predictor import base as predictor
from structperc.scorers import Neural
from structperc.taggers.tagger import Tagger
from structperc.tagging.labelling import FileTagger, OutputOptions
from tests.tiny import fit


def adam(parameters):
    return torch.optim.AdamW(parameters, lr=5e-3)


def data():
    """Sentences in which words alone decide their labels."""
    return Synthetic(train=6, dev=0, test=0, ambiguity=0.0, batch_size=3)


def trained(folder, epochs, callbacks=(), optimizer=adam, **options):
    """A tagger of a few sentences."""
    tagger = Tagger(None, Neural(Transformer(str(folder), **options)), CRFLoss(), KBest(1), optimizer)
    pl.seed_everything(1)
    fit(tagger, data(), epochs, callbacks=list(callbacks))
    return tagger


class Objectives(pl.Callback):
    """That of each epoch."""

    def __init__(self):
        self.values = []

    def on_train_epoch_end(self, trainer, module):
        self.values.append(module.objective())


def test_training_lowers_the_objective(bert):
    seen = Objectives()
    trained(bert, 6, [seen])
    assert len(seen.values) == 6
    assert seen.values[-1] < 0.7 * seen.values[0]


def test_saved_tagger_is_self_contained(bert, tmp_path):
    own = tmp_path / "bert"
    shutil.copytree(bert, own)
    tagger = trained(own, 1, pool="mean", window=16, overlap=5).eval()
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
    files = ["README.md", "model.json", "model.safetensors"]
    assert sorted(path.name for path in (tmp_path / "saved").iterdir()) == files
    loaded.save(tmp_path / "again")
    assert (tmp_path / "again" / "model.json").read_bytes() == (tmp_path / "saved" / "model.json").read_bytes()


def test_saved_tagger_with_document_context(bert, tmp_path, monkeypatch):
    """Documents give context to `tag_iter` and to files, which are read in parts of whole documents."""
    tagger = trained(bert, 1, within="document", context_pieces=9)
    tagger.save(tmp_path / "saved")
    loaded = Tagger.load(tmp_path / "saved")
    assert (loaded.extent, loaded.scorer.encoder.context_pieces) == ("document", 9)
    corpus = Synthetic(train=1, dev=4, test=0).corpus("dev")
    alone = replace(corpus, documents=np.arange(len(corpus)))
    found, separate = (loaded.predict(one, confident=True) for one in (corpus, alone))
    assert not np.allclose(found.tokens, separate.tokens)
    words, ids = corpus.sentences_of(corpus.columns["word"]), corpus.documents.tolist()
    monkeypatch.setattr(predictor, "GROUP", 30)
    assert list(loaded.tag_iter(words, ids)) == loaded.tag(words, ids)
    write_conll(tmp_path / "text", corpus, ["word", "label"])
    for name, size in (("one", 100), ("other", 2**20)):
        files = FileTagger(str(tmp_path / "saved"), OutputOptions(probabilities=True), chunk_size=size)
        files.tag_file(str(tmp_path / "text"), str(tmp_path / name))
    lines = [line.split() for line in (tmp_path / "one").read_text().splitlines()]
    assert lines == [line.split() for line in (tmp_path / "other").read_text().splitlines()]
    assert [line[-1] for line in lines[1:] if line and line[0] != "-DOCSTART-"] == found.labels
