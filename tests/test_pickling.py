"""Workers of other processes can hold what labels text, and copies of whatever has options."""

import copy
import inspect
import json
import pickle
from functools import partial
from importlib import import_module
from pkgutil import iter_modules

import pytest
from sklearn.base import clone

import structperc
from structperc.chain import KBest
from structperc.criteria import PerceptronLoss
from structperc.data import Synthetic
from structperc.features import Clusters, FeatureExtractor, Gazetteer, LongestMention
from structperc.optim import Perceptron as Additive
from structperc.scorers import SparseLinear
from structperc.sklearn import SequenceTagger
from structperc.taggers import Tagger
from tests.tiny import fit

SENTENCES = [["Anna", "saw", "Rome"], ["Bo", "left"]]
ROOMS = [import_module(f"structperc.{room.name}") for room in iter_modules(structperc.__path__) if room.ispkg]


def without_options():
    """Objects of all public classes that need no options."""
    found = {getattr(room, name) for room in ROOMS for name in getattr(room, "__all__", [])}
    for cls in sorted(filter(inspect.isclass, found), key=lambda cls: cls.__qualname__):
        try:
            yield cls()
        except Exception:  # it needs some, or is abstract
            continue


def test_public_classes_can_be_pickled_and_copied():
    made = list(without_options())
    assert len(made) > 50
    for one in made:
        assert type(pickle.loads(pickle.dumps(one))) is type(copy.deepcopy(one)) is type(one)


@pytest.fixture(scope="module")
def taggers(tmp_path_factory):
    """Taggers of all kinds of attributes, trained, with what the trainer has left in them."""
    data, made = Synthetic(train=10, dev=2, test=2), {}
    for name, hash_bits in (("indexed", None), ("hashed", 18)):
        features = FeatureExtractor(
            ["bias", {"of": ["w", "p2", "s3", "shape", "gl", "c2", "longest"], "at": [0, 1]}, "w[-1]|w[0]"],
            cutoff=1,
            gazetteers={"gl": Gazetteer(["Rome"])},
            clusters=Clusters({"Rome": "011", "saw": "10"}),
            documents={"longest": LongestMention("w", "before")},
            progress=False,
            hash_bits=hash_bits,
        )
        made[name] = Tagger(features, SparseLinear(), PerceptronLoss(), KBest(1), partial(Additive))
        fit(made[name], data, 2)
        made[name].save(tmp_path_factory.mktemp(name) / "model")
        light = structperc.load(tmp_path_factory.getbasetemp() / f"{name}0" / "model")
        light.tag(SENTENCES)  # so that all that is made when it is first needed is there
        made[f"{name}, light"] = light
    return made


def test_copies_label_as_the_original(taggers):
    for tagger in taggers.values():
        assert copy.deepcopy(tagger).tag(SENTENCES) == tagger.tag(SENTENCES)


def test_pickles_without_derived_tables(taggers):
    assert len(pickle.dumps(taggers["hashed, light"])) < 2**18  # of the ids of 2**18 buckets alone there is 1 MiB


def fit_and_predict(estimator, X, y):
    return estimator.fit(X, y).predict(X)


def write_results(calls, file):
    file.write_text(json.dumps([call() for call in calls]))


@pytest.mark.slow
def test_another_process_can_hold_taggers(taggers, fork_server, tmp_path):
    """Taggers, a fitted estimator and one that is fitted there are pickled for it."""
    X, y = [["Anna", "left"], ["Rome"]], [["B-PER", "O"], ["B-LOC"]]
    new = SequenceTagger("averaged_perceptron", max_iterations=2, hash_bits=10)
    fitted = clone(new).fit(X, y)
    calls = [*(partial(tagger.tag, SENTENCES) for tagger in taggers.values()), partial(fitted.predict, X)]
    calls.append(partial(fit_and_predict, new, X, y))
    assert fork_server(tmp_path / "log", write_results, calls, tmp_path / "found").status == 0
    assert json.loads((tmp_path / "found").read_text()) == [call() for call in calls]
