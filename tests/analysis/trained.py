"""Taggers of documents that a perceptron has trained, for reports about their decisions."""

import torch

from structperc.chain import KBest
from structperc.criteria import PerceptronLoss
from structperc.data.corpus import Corpus
from structperc.data.labels import LabelSet
from structperc.data.synthetic import synthetic_corpus
from structperc.features import FeatureExtractor
from structperc.scorers import SparseLinear
from structperc.taggers.tagger import Tagger


def documents(inventory, number, seed=5):
    corpus = Corpus.from_dataset(synthetic_corpus(seed, number, inventory=inventory), "document")
    columns = {role: corpus.columns[role] for role in ("word", "pos", "label")}
    return Corpus(columns, corpus.starts, corpus.sentences, corpus.documents, "dev")


def untrained(corpus, templates, more, decoder=None):
    """A tagger of zero weights for documents."""
    features = FeatureExtractor(templates, cutoff=1)
    features.fit(corpus)
    tagger = Tagger(features, SparseLinear(), PerceptronLoss(), KBest(1), nonlocal_features=more, decoder=decoder)
    tagger.allocate(LabelSet.from_corpus({*corpus.columns["label"], "O"}, "IOB2"))
    tagger.unit = "document"
    return tagger.eval()


def trained(more, decoder=None, seed=5):
    """Two epochs of the perceptron and noise against ties; non-local weights are zero."""
    train = documents(0, 12, seed)
    tagger = untrained(train, ["bias", {"of": ["w", "pos", "s2"], "at": [-1, 0, 1]}], more, decoder)
    rows, optimizer = tagger.encode(train), torch.optim.SGD(tagger.scorer.parameters(), 1.0)
    tagger.on_train_epoch_start()
    for row in [*range(len(train))] * 2:
        optimizer.zero_grad()
        tagger.training_step(rows[[row]]).backward()
        optimizer.step()
    torch.manual_seed(1)
    with torch.no_grad():
        for parameter in tagger.scorer.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.05)
    return tagger.eval()
