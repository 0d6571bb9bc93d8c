"""Taggers of hashed features: where no two collide they learn, say and show what those of indexed ones do."""

import re
from functools import partial

import pytest
import torch

import structperc
from structperc.analysis import explain
from structperc.chain import KBest
from structperc.criteria import CRFLoss, HingeLoss, LocalAndNonlocal, PerceptronLoss
from structperc.data import Synthetic
from structperc.features import FeatureExtractor
from structperc.nonlocal_features import PhraseConsistency
from structperc.optim import LBFGS, PassiveAggressive
from structperc.optim import Perceptron as Additive
from structperc.predictor.sparse import SparsePredictor
from structperc.scorers import SparseLinear
from structperc.taggers import Tagger
from tests.tiny import fit

NODE = ["bias", {"of": ["w", "s2", "ic"], "at": [-1, 0, 1]}, "w[-1]|w[0]"]
EDGE = ["bias", "ic[0]"]


@pytest.fixture(scope="module")
def data():
    return Synthetic(train=6, dev=3, test=1, unit="document")


LEARNERS = {
    "passive-aggressive": {"criterion": partial(HingeLoss, 1.0), "optimizer": PassiveAggressive},
    "likelihood": {"criterion": CRFLoss, "optimizer": LBFGS},
    "non-local": {
        "criterion": partial(LocalAndNonlocal, C=1.0),
        "search": partial(KBest, 5),
        "decoder": partial(KBest, 5),
        "nonlocal_features": lambda: [PhraseConsistency()],
    },
}


SEARCH = partial(KBest, 2)


def trained(data, hash_bits, criterion, search=SEARCH, optimizer=Additive, **more):
    features = FeatureExtractor(NODE, EDGE, cutoff=1, progress=False, hash_bits=hash_bits)
    more = {name: make() for name, make in more.items()}
    tagger = Tagger(features, SparseLinear(), criterion(), search(), optimizer, **more)
    fit(tagger, data, 3)
    return tagger.eval()


@pytest.mark.parametrize("learner", LEARNERS)
def test_model_without_collisions(data, learner):
    hashed, indexed = (trained(data, bits, **LEARNERS[learner]) for bits in (22, None))
    near = {"rtol": 1e-4, "atol": 1e-4} if learner == "likelihood" else {"rtol": 0, "atol": 0}  # sums in other orders
    for kind in ("node", "edge"):
        names, known = (tagger.features.index.names(kind) for tagger in (hashed, indexed))
        rows = [names.index(name) for name in known]
        assert sorted(rows) == list(range(len(names)))
        mine, its = (getattr(tagger.scorer, kind) for tagger in (hashed, indexed))
        torch.testing.assert_close(mine[rows], its, **near)
    corpus = data.corpus("dev")
    assert hashed.label(corpus) == indexed.label(corpus)
    if learner == "non-local":
        assert explain(hashed, corpus, 0) == explain(indexed, corpus, 0)


def test_model_with_collisions(data, tmp_path):
    tagger = trained(data, 6, PerceptronLoss)
    assert tagger.features.n_node_features <= 64
    tagger.save(tmp_path / "model")
    light = structperc.load(tmp_path / "model")
    assert isinstance(light, SparsePredictor)
    corpus = data.corpus("dev")
    assert light.label(corpus) == Tagger.load(tmp_path / "model").label(corpus) == tagger.label(corpus)


def test_names_of_shared_buckets(data, tmp_path, run):
    trained(data, 8, PerceptronLoss).save(tmp_path / "model")
    shown = run("explain", str(tmp_path / "model"), "--top", "5")
    assert re.search(r"^node features: about 1,1\d\d different ones in 25\d of 256 buckets \(hash_bits: 8\)", shown)
    assert re.search(r"\[-?\d\]=\S* and \d+ more -> [BIO]", shown)
    assert "node template" not in shown
