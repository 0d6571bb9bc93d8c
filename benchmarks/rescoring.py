"""Seconds for the scores of non-local features, and for the search, for lists of n' candidates of whole documents.

A tagger with all non-local features of Kazama & Torisawa 2007 is trained for one epoch, so that its lattices are those
of a real model, and lists the candidates of the development documents.
"""

from benchmarks.documents import documents
from structperc.analysis import nbest_scores
from structperc.chain import KBest
from structperc.criteria import LocalAndNonlocal
from structperc.data import Corpus
from structperc.datamodules import LengthBatchSampler, SequenceDataModule
from structperc.features import FeatureExtractor
from structperc.nonlocal_features import (
    ConjunctionConsistency,
    MajorityPhrase,
    MajoritySuperphrase,
    PhraseConsistency,
    SubphraseConsistency,
)
from structperc.scorers import SparseLinear
from structperc.taggers import Tagger

FEATURES = (PhraseConsistency, SubphraseConsistency, MajorityPhrase, MajoritySuperphrase, ConjunctionConsistency)


def run(smoke: bool) -> list[dict]:
    """Return seconds for each n', after a run that warms up."""
    data, name = documents(smoke)
    tagger = _trained(data)
    dev = data.corpus("dev")
    nbest_scores(tagger, dev, [20], progress=False)
    size = f"{len(dev)} documents, {dev.tokens} tokens of {name}"
    return [_row(tagger, dev, n, not smoke, size) for n in ((20,) if smoke else (100, 6400))]


def _row(tagger: Tagger, dev: Corpus, n: int, progress: bool, size: str) -> dict:
    seconds = nbest_scores(tagger, dev, [n], progress).seconds
    return {
        "what": f"non-local scores of n' = {n} candidates, against the search for them",
        "size": size,
        "ours": seconds.nonlocal_scores,
        "peer": seconds.search,
        "ratio": seconds.nonlocal_scores / seconds.search,
        "unit": "s",
        "target": None,
    }


def _trained(data: SequenceDataModule) -> Tagger:
    train = data.corpus("train")
    features = FeatureExtractor(["kazama2007"], ["kazama2007"], progress=False)
    features.fit(train)
    added = [feature() for feature in FEATURES]
    tagger = Tagger(features, SparseLinear(False), LocalAndNonlocal(100), KBest(20), nonlocal_features=added)
    tagger.allocate(data.label_set())
    rows, optimizer = tagger.encode(train), tagger.configure_optimizers()
    tagger.on_train_epoch_start()
    for batch in LengthBatchSampler(rows.corpus.lengths, 8, shuffle=True):
        optimizer.zero_grad()
        tagger.training_step(rows[batch]).backward()
        optimizer.step()
    return tagger
