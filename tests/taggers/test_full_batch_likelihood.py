"""Compiled full-batch training of a CRF against the gradients of autograd."""

from functools import partial

import numpy as np
import pytest
import pytorch_lightning as pl
import torch

from structperc import Corpus, FeatureExtractor, LabelSet
from structperc.chain import KBest
from structperc.criteria import CRFLoss, Prior
from structperc.datamodules import Synthetic
from structperc.datamodules.encoded import PrecomputedBatches
from structperc.encoders import Window, WordEmbedding
from structperc.errors import InputError
from structperc.optim import LBFGS
from structperc.scorers import Neural, SparseLinear
from structperc.taggers import Tagger
from structperc.taggers.full_batch_likelihood import FullBatchLikelihood, add_gradients, likelihood, supports_likelihood
from structperc.taggers.learning import FullBatchTraining

SENTENCES = [
    {
        "word": ["Anna", "saw", "New", "York"],
        "label": ["B-PER", "O", "B-LOC", "I-LOC"],
        "values": ["a:0.5", "b", "a", "b:2"],
    },
    {"word": ["Yes"], "label": ["O"], "values": ["b:-1"]},
    {"word": ["in", "New", "York", "now"], "label": ["O", "B-LOC", "I-LOC", "O"], "values": ["a"] * 4},
]
QUIET = {
    "logger": False,
    "enable_checkpointing": False,
    "enable_progress_bar": False,
    "enable_model_summary": False,
}


def tagger_of(corpus: Corpus, values: bool, transitions: bool) -> Tagger:
    column = "values" if values else None
    features = FeatureExtractor(["w[-1]", "w[0]"], cutoff=1, weighted_column=column)
    features.fit(corpus)
    scorer = SparseLinear(transitions=transitions, sparse_grad=False)
    tagger = Tagger(features, scorer, CRFLoss(), KBest(1), LBFGS)
    tagger.allocate(LabelSet.from_corpus(corpus.columns["label"], "IOB2"))
    tagger.double()
    torch.manual_seed(1)
    for p in tagger.parameters():
        torch.nn.init.normal_(p)
    return tagger


@pytest.mark.parametrize(("values", "transitions"), [(False, True), (True, False)])
@pytest.mark.parametrize("unit", ["sentence", "document"])
def test_loss_and_gradients(unit, values, transitions):
    corpus = Corpus.from_sentences(SENTENCES, documents=[0, 0, 1], unit=unit)
    if values:
        weights = np.repeat(["2", "0.5", "1"][: len(corpus)], corpus.lengths)
        corpus = corpus.replace_column("weight", weights.tolist())
    tagger = tagger_of(corpus, values, transitions)
    assert supports_likelihood(tagger)
    (batch,) = PrecomputedBatches(tagger.encode(corpus), [range(len(corpus))])
    losses = tagger.criterion(tagger.score_batch(batch))
    expected = torch.autograd.grad(losses.sum(), list(tagger.parameters()))
    found, gradients = likelihood(tagger.scorer.compiled(), tagger.labels, batch)
    for p in tagger.parameters():
        p.grad = torch.ones_like(p)
    add_gradients(tagger.scorer.compiled(), batch, gradients)
    torch.testing.assert_close(found, losses)
    for p, gradient in zip(tagger.parameters(), expected, strict=True):
        torch.testing.assert_close(p.grad - 1, gradient.to_dense())


def test_training_gives_the_same_weights(monkeypatch):
    found = []
    for supported in (True, False):
        if not supported:
            monkeypatch.setattr("structperc.taggers.tagger.supports_likelihood", lambda tagger: False)
        data = Synthetic(train=30, dev=0, test=0, unit="sentence", batch_size=10, shuffle=False)
        features = FeatureExtractor(["w[-1]", "w[0]", "w[1]"])
        tagger = Tagger(features, SparseLinear(sparse_grad=False), CRFLoss(), KBest(1), LBFGS, prior=Prior(10.0))
        trainer = pl.Trainer(max_epochs=6, **QUIET)
        trainer.fit(tagger, datamodule=data)
        assert isinstance(tagger.training_method, FullBatchLikelihood) == supported
        assert isinstance(tagger.training_method, FullBatchTraining)
        found.append([*(p.detach() for p in tagger.parameters()), trainer.callback_metrics["train/objective"]])
    for a, b in zip(*found, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-4)


def test_only_pairs_in_the_training_data_are_trained():
    data = Synthetic(train=30, dev=0, test=0, unit="sentence", batch_size=10)
    make = partial(LBFGS, supported_only=True)
    tagger = Tagger(FeatureExtractor(["w[-1]", "w[0]"]), SparseLinear(sparse_grad=False), CRFLoss(), KBest(1), make)
    pl.Trainer(max_epochs=6, **QUIET).fit(tagger, datamodule=data)
    corpus = data.corpus("train")
    nodes, gold = tagger.features.encode(corpus).nodes, tagger.labels.encode(corpus.columns["label"])
    lists = nodes.take(np.arange(corpus.tokens), np.arange(corpus.tokens) + 1)
    seen = {(f, gold[t]) for f, t in zip(lists.ids.tolist(), lists.row_ids.tolist(), strict=True)}
    assert {tuple(pair) for pair in tagger.scorer.node.nonzero().tolist()} == seen


def test_supported_only_needs_a_linear_scorer():
    make = partial(LBFGS, supported_only=True)
    tagger = Tagger(FeatureExtractor([]), Neural(Window([WordEmbedding(4)])), CRFLoss(), KBest(1), make)
    with pytest.raises(InputError, match="supported_only needs the scorer SparseLinear"):
        pl.Trainer(max_epochs=1, **QUIET).fit(tagger, datamodule=Synthetic(train=3, dev=0, test=0))
