"""Parts of a batch are what the sequences would be as batches of their own."""

import pytest
import torch

from structperc.chain import KBest
from structperc.criteria import MarginLoss
from structperc.data.labels import LabelSet
from structperc.datamodules import encoded as module
from structperc.datamodules.encoded import EncodedCorpus, split_batch
from structperc.datamodules.sources import Synthetic
from structperc.features import FeatureExtractor
from structperc.nonlocal_features import ConjunctionConsistency, PhraseConsistency
from structperc.ragged import Ragged
from structperc.scorers import SparseLinear
from structperc.taggers.tagger import Tagger


@pytest.fixture(scope="module")
def rows():
    corpus = Synthetic(train=7, dev=1, test=1, unit="document").corpus("train")
    features = FeatureExtractor(["w[0]", "w[-1]"], ["bias"], cutoff=1, progress=False)
    features.fit(corpus)
    return EncodedCorpus(corpus, features, LabelSet.from_corpus(corpus.columns["label"], "IOB2"))


def flat(batch):
    return [x for part in batch for x in (part if isinstance(part, tuple) else [part])]


@pytest.mark.parametrize("size", [1, 2, 3, 6])
def test_parts_are_batches_of_their_sequences(rows, monkeypatch, size):
    order = [3, 1, 6, 0, 5, 2, 4]
    whole = rows[order]
    T = whole.sentences.shape[1]
    monkeypatch.setattr(module, "MAX_PLACES", size * 10 * T)
    found = list(split_batch(whole, 10))
    assert [len(part.rows) for part in found] == [len(order[i : i + size]) for i in range(0, 7, size)]
    for i, part in enumerate(found):
        wanted = rows[order[i * size : (i + 1) * size]]
        for a, b in zip(flat(part), flat(wanted), strict=True):
            assert torch.equal(a, b) if isinstance(a, torch.Tensor) else a == b


def test_small_batch(rows):
    batch = rows[[0, 1]]
    assert list(split_batch(batch, 100)) == [batch]
    assert isinstance(next(split_batch(batch, 10**9)).nodes, Ragged)


def test_no_sequences(rows):
    (only,) = split_batch(rows[[]], 100)
    assert len(only.rows) == 0


def test_decisions_do_not_depend_on_parts(monkeypatch):
    data = Synthetic(train=7, dev=1, test=1, unit="document")
    features = FeatureExtractor(["w[0]", "w[-1]"], ["bias"], cutoff=1, progress=False)
    features.fit(data.corpus("train"))
    added = [PhraseConsistency(), ConjunctionConsistency()]
    tagger = Tagger(features, SparseLinear(), MarginLoss(1), KBest(2), nonlocal_features=added, decoder=KBest(10))
    tagger.allocate(LabelSet.from_corpus(data.corpus("train").columns["label"], "IOB2"))
    torch.manual_seed(0)
    for parameter in tagger.parameters():
        torch.nn.init.normal_(parameter)
    corpus = data.corpus("train")
    labels, candidates = tagger.label(corpus), tagger.kbest(corpus, 3)
    monkeypatch.setattr(module, "MAX_PLACES", 1)
    assert tagger.label(corpus) == labels
    for alone, together in zip(tagger.kbest(corpus, 3), candidates, strict=True):
        assert [one.labels for one in alone] == [one.labels for one in together]
        assert [one.score for one in alone] == pytest.approx([one.score for one in together], rel=1e-5)
