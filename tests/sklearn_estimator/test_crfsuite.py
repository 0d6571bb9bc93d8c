"""The CRF on weighted features against python-crfsuite, at the optimum of the same objective."""

import pycrfsuite
import pytest

from structperc.sklearn import SequenceTagger

# Values of False are left out: a feature of value 0 does not occur, but CRFsuite counts it as seen with its label.


def crfsuite(X, y, folder, states, **options):
    trainer = pycrfsuite.Trainer("lbfgs", verbose=False)
    pairs = {"feature.possible_states": states, "feature.possible_transitions": True}
    trainer.set_params({**pairs, "epsilon": 1e-7, "delta": 1e-9, "max_iterations": 2000, **options})
    for sentence, labels in zip(X, y, strict=True):
        trainer.append(sentence, labels)
    trainer.train(str(folder / "peer"))
    tagger = pycrfsuite.Tagger()
    tagger.open(str(folder / "peer"))
    return tagger


@pytest.mark.parametrize(
    ("c1", "c2", "states"), [(0.0, 0.1, True), (0.0, 1.0, True), (0.2, 0.1, True), (0.0, 0.1, False), (0.2, 0.1, False)]
)
def test_marginals_equal_crfsuite(dicts, tmp_path, c1, c2, states):
    X, y = dicts
    X = [[{name: value for name, value in token.items() if value is not False} for token in one] for one in X]
    peer = crfsuite(X, y, tmp_path, states, c1=c1, c2=c2)
    tagger = SequenceTagger(C=1 / (2 * c2), c1=c1, scheme="none", all_possible_states=states).fit(X, y)
    for sentence, found in zip(X, tagger.predict_marginals(X), strict=True):
        peer.set(sentence)
        for t, token in enumerate(found):
            assert token == pytest.approx({name: peer.marginal(name, t) for name in peer.labels()}, abs=2e-3)
    assert tagger.predict(X) == [peer.tag(sentence) for sentence in X]
