"""The CRF on weighted features against python-crfsuite, at the optimum of the same objective."""

import pycrfsuite
import pytest

from structperc.sklearn import SequenceTagger


def crfsuite(X, y, folder, **options):
    trainer = pycrfsuite.Trainer("lbfgs", verbose=False)
    everything = {"feature.possible_states": True, "feature.possible_transitions": True}
    trainer.set_params({**everything, "epsilon": 1e-7, "delta": 1e-9, "max_iterations": 2000, **options})
    for sentence, labels in zip(X, y, strict=True):
        trainer.append(sentence, labels)
    trainer.train(str(folder / "peer"))
    tagger = pycrfsuite.Tagger()
    tagger.open(str(folder / "peer"))
    return tagger


@pytest.mark.parametrize(("c1", "c2"), [(0.0, 0.1), (0.0, 1.0), (0.2, 0.1)])
def test_marginals_equal_crfsuite(dicts, tmp_path, c1, c2):
    X, y = dicts
    peer = crfsuite(X, y, tmp_path, c1=c1, c2=c2)
    tagger = SequenceTagger(C=1 / (2 * c2), c1=c1, scheme="none").fit(X, y)
    for sentence, found in zip(X, tagger.predict_marginals(X), strict=True):
        peer.set(sentence)
        for t, token in enumerate(found):
            assert token == pytest.approx({name: peer.marginal(name, t) for name in peer.labels()}, abs=1e-3)
    assert tagger.predict(X) == [peer.tag(sentence) for sentence in X]
