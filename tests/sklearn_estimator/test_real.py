"""The tutorial of sklearn-crfsuite on a part of CoNLL-2003: its feature dicts, with ours in the place of its CRF."""

import pycrfsuite
import pytest

from benchmarks.feature_dicts import tutorial_features
from structperc.data import Conll
from structperc.metrics import segment_f1_score
from structperc.sklearn import SequenceTagger


@pytest.fixture(scope="module")
def parts(corpora):
    """(X, y) of 1200 training and 800 development sentences."""
    columns = ["word", "pos", "chunk", "label"]
    files = {"train": "eng.train", "dev": "eng.testa"}
    data = Conll(str(corpora / "conll2003"), files, columns, labels="IOB1", scheme="IOB2")
    found = []
    for split, n in (("train", 1200), ("dev", 800)):
        corpus = data.corpus(split)
        words, tags, labels = (corpus.sentences_of(corpus.columns[role])[:n] for role in ("word", "pos", "label"))
        sentences = [list(zip(*both, strict=True)) for both in zip(words, tags, strict=True)]
        found.append(([[tutorial_features(one, i) for i in range(len(one))] for one in sentences], labels))
    return found


@pytest.fixture(scope="module")
def crfsuite_f1(parts, tmp_path_factory):
    (X, y), (X_dev, y_dev) = parts
    trainer = pycrfsuite.Trainer("lbfgs", verbose=False)
    everything = {"feature.possible_states": True, "feature.possible_transitions": True}  # as ours is
    trainer.set_params({"c1": 0.0, "c2": 0.1, **everything})
    for sentence, labels in zip(X, y, strict=True):
        trainer.append(sentence, labels)
    model = str(tmp_path_factory.mktemp("crfsuite") / "model")
    trainer.train(model)
    tagger = pycrfsuite.Tagger()
    tagger.open(model)
    return segment_f1_score(y_dev, [tagger.tag(one) for one in X_dev])


@pytest.mark.long
@pytest.mark.parametrize(
    ("options", "behind"),
    [({"C": 5.0, "scheme": "none"}, 0.002), ({"algorithm": "averaged_perceptron", "random_state": 1}, 0.015)],
    ids=["the same CRF", "averaged perceptron"],
)
def test_same_score_as_crfsuite(parts, crfsuite_f1, options, behind):
    (X, y), dev = parts
    tagger = SequenceTagger(**options).fit(X, y)
    found = segment_f1_score(dev[1], tagger.predict(dev[0]))
    assert found > crfsuite_f1 - behind > 0.7, (found, crfsuite_f1)
