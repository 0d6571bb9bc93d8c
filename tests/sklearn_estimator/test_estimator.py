"""The estimator in the hands of scikit-learn."""

import copy
import logging
import pickle
import subprocess
import sys
import warnings

import joblib
import pytest
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import f1_score, make_scorer
from sklearn.model_selection import GridSearchCV, KFold, RandomizedSearchCV, cross_val_predict, cross_val_score
from sklearn.utils import estimator_checks as checks

from structperc import Tagger
from structperc.chain import KBest
from structperc.cli.main import main
from structperc.criteria import CRFLoss, PerceptronLoss, SegmentCosts
from structperc.metrics import classification_report, segment_f1_score
from structperc.optim import Perceptron as Additive
from structperc.scorers import SparseLinear
from structperc.sklearn import (
    SequenceTagger,
    flat_accuracy_score,
    flat_classification_report,
    flat_f1_score,
    segment_f1_scorer,
    sequence_accuracy_score,
)
from structperc.sklearn.algorithms import ALGORITHMS
from structperc.sklearn.sentences import parse_sentences

QUICK = {"algorithm": "averaged_perceptron", "max_iterations": 3, "random_state": 1, "templates": ["w[0]", "w[-1]"]}


def quick(**options):
    return SequenceTagger(**{**QUICK, **options})


def weights(tagger):
    return torch.nn.utils.parameters_to_vector(tagger.tagger_.parameters())


def own_tagger(features):
    """What `algorithm` may be, too."""
    return Tagger(features, SparseLinear(), PerceptronLoss(), KBest(1), Additive)


# -- parameters ----------------------------------------------------------------------------------------------


def test_parameters():
    tagger = SequenceTagger()
    changed = {"algorithm": "margin", "C": 3.0, "c1": 0.5, "cost": 2.0, "max_iterations": 7, "templates": ["w[0]"]}
    changed |= {"c2": 0.1, "cutoff": 2, "scheme": "IOB2", "random_state": 5, "verbose": True, "hash_bits": 20}
    changed["all_possible_states"] = True
    assert tagger.get_params().keys() == changed.keys()
    assert tagger.set_params(**changed) is tagger
    assert tagger.get_params() == changed
    assert SequenceTagger(**changed).get_params() == changed
    assert repr(SequenceTagger(C=3.0)) == "SequenceTagger(C=3.0)"


def test_clone(words):
    tagger = quick(C=2.0).fit(*words)
    other = clone(tagger)
    assert other.get_params() == tagger.get_params()
    assert not hasattr(other, "tagger_")


def test_fit_keeps_parameters(words):
    tagger = quick()
    before = copy.deepcopy(tagger.get_params())
    assert tagger.fit(*words) is tagger
    assert tagger.get_params() == before


def test_conventions_of_scikit_learn():
    """Those of its checks that need no data: it has numbers as data alone."""
    for check in (
        checks.check_parameters_default_constructible,
        checks.check_no_attributes_set_in_init,
        checks.check_get_params_invariance,
        checks.check_set_params,
        checks.check_estimator_repr,
        checks.check_estimator_cloneable,
        checks.check_estimator_tags_renamed,
        checks.check_valid_tag_types,
        checks.check_mixin_order,
        checks.check_estimators_unfitted,
    ):
        check("SequenceTagger", SequenceTagger())


# -- what is learned -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ALGORITHMS)
def test_algorithms_learn_their_training_data(name, dicts):
    X, y = dicts
    full_batch = name in ("crf", "softmax_margin")
    tagger = SequenceTagger(name, random_state=0, C=100.0 if full_batch else 1.0).fit(X, y)
    assert tagger.score(X, y) > 0.9
    assert tagger.n_iter_ == (tagger.n_iter_ if full_batch else 10) > 1
    assert tagger.classes_ == ["O", "B-LOC", "I-LOC", "B-PER", "I-PER"]
    assert tagger.scheme_ == "IOB2"


@pytest.mark.filterwarnings("ignore:The scoring SequenceTagger.score does not support sample_weight")
def test_weights_of_sentences():
    """A weight of 2 is a sentence that occurs twice; searches divide the weights with the sentences."""
    X, y = [["Bo", "left"]] * 6, [["B-PER", "O"], ["O", "O"]] * 3
    crf = {"templates": ["w[0]"], "max_iterations": 20}
    twice = SequenceTagger(**crf).fit(X + X[::2], y + y[::2]).predict_marginals(X[:1])
    weighted = SequenceTagger(**crf).fit(X, y, sample_weight=[2, 1] * 3).predict_marginals(X[:1])
    assert weighted[0][0] == pytest.approx(twice[0][0], abs=1e-3)
    search = GridSearchCV(SequenceTagger(**crf), {"C": [2.0]}, cv=2).fit(X, y, sample_weight=[3, 1] * 3)
    assert search.predict(X[:1]) == y[:1]


@pytest.mark.parametrize("name", ["softmax_margin", "passive_aggressive"])
def test_costs_of_segments(name, words):
    costs = SegmentCosts(missed=3.0)
    tagger = clone(quick(algorithm=name, cost=costs)).fit(*words)
    assert tagger.tagger_.criterion.cost.missed == 3
    assert (tagger.cost.labels, costs.labels) == (None, None)


@pytest.mark.parametrize(
    ("name", "option", "number"),
    [
        ("margin", "C", 9.0),
        ("passive_aggressive", "C", 0.001),
        ("passive_aggressive", "cost", 9.0),
        ("softmax_margin", "cost", 9.0),
        ("softmax_margin", "c2", 9.0),
    ],
)
def test_options_of_algorithms_change_the_weights(name, option, number, words):
    X, y = words[0][:10], words[1][:10]
    plain, changed = (quick(algorithm=name, templates=["w[0]"], **more).fit(X, y) for more in ({}, {option: number}))
    assert not torch.equal(weights(plain), weights(changed))


def test_hashed_features(dicts, words):
    for X, y in (dicts, words):
        hashed, indexed = (quick(hash_bits=bits).fit(X, y) for bits in (20, None))
        assert hashed.predict(X) == indexed.predict(X)
        assert hashed.state_features_ == indexed.state_features_
        small = quick(hash_bits=5).fit(X, y)
        assert len(small.attributes_) <= 32
        assert small.predict(X) == pickle.loads(pickle.dumps(small)).predict(X)


def test_c1_makes_weights_zero(dicts):
    found = [len(SequenceTagger(c1=c1, max_iterations=30).fit(*dicts).state_features_) for c1 in (0.0, 1.0)]
    assert found[1] < found[0] / 2


def test_a_function_may_make_the_tagger(words):
    one, other = quick(algorithm=own_tagger).fit(*words), quick().fit(*words)
    assert one.tagger_.probabilistic is False
    assert one.score(*words) == pytest.approx(other.score(*words), abs=0.1)


def test_same_seed_same_model(words):
    one, other = quick().fit(*words), quick().fit(*words)
    assert torch.equal(weights(one), weights(other))
    assert not torch.equal(weights(one), weights(quick(random_state=2).fit(*words)))


def test_random_state_is_unchanged(words):
    torch.manual_seed(3)
    expected = torch.rand(2)
    torch.manual_seed(3)
    quick().fit(*words)
    assert torch.equal(torch.rand(2), expected)


def test_averaged_weights(words):
    tagger, raw = quick(), quick(algorithm=lambda features: own_raw(features))
    served, last = weights(tagger.fit(*words)), weights(raw.fit(*words))
    assert not torch.equal(served, served.round())
    assert torch.equal(last, last.round())


def own_raw(features):
    return Tagger(features, SparseLinear(), PerceptronLoss(), KBest(1), lambda p: Additive(p, average=False))


@pytest.mark.parametrize(
    ("labels", "scheme"),
    [
        (["I-A", "I-A", "B-A", "O"], "IOB1"),
        (["B-A", "I-A", "B-A", "O"], "IOB2"),
        (["B-A", "E-A", "S-A", "O"], "IOBES"),
        (["B-A", "L-A", "U-A", "O"], "BILOU"),
        (["DT", "NN", "VB", "DT"], "none"),
    ],
)
def test_schemes_are_recognised(labels, scheme):
    tagger = quick().fit([["a", "b", "c", "d"]], [labels])
    assert tagger.scheme_ == scheme
    assert tagger.predict([["a", "b", "c", "d"]]) == [labels]
    assert set(labels) <= set(tagger.classes_)
    assert quick(scheme="none").fit([["a", "b", "c", "d"]], [labels]).classes_ == sorted(set(labels))


# -- what is said --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        (["B-PER", "I-PER", "O", "b-LOC"], "2 of 3 labels fit IOB2, but not 'b-LOC'"),
        (["PER-B", "PER-I", "O", "LOC-B"], "IOB2 TYPE-B"),
        (["O", "O", "O", "O"], "only O will be predicted"),
    ],
)
def test_labels_without_segments(labels, said):
    with pytest.warns(UserWarning, match=said):
        quick().fit([["a", "b", "c", "d"]], [labels])


def test_scores(words):
    X, y = words
    segments, tokens = quick().fit(X[:20], y[:20]), quick(scheme="none").fit(X[:20], y[:20])
    assert segments.score(X, y) == segment_f1_score(y, segments.predict(X)) < 1
    pairs = [(a, b) for one, other in zip(tokens.predict(X), y, strict=True) for a, b in zip(one, other, strict=True)]
    assert tokens.score(X, y) == pytest.approx(sum(a == b for a, b in pairs) / len(pairs))


def test_names_and_priors_of_crfsuite(words):
    one, other = SequenceTagger("lbfgs", c2=0.25, templates=["w[0]"]), SequenceTagger(C=2.0, templates=["w[0]"])
    assert torch.equal(weights(one.fit(*words)), weights(other.fit(*words)))
    assert torch.equal(weights(quick(algorithm="ap").fit(*words)), weights(quick().fit(*words)))
    free = [SequenceTagger(c2=c2, templates=["w[0]"], max_iterations=30).fit(*words) for c2 in (0, 1.0)]
    assert weights(free[0]).abs().max() > 2 * weights(free[1]).abs().max()


def test_development_data_are_scored(words):
    X, y = words
    tagger = quick().fit(X[:20], y[:20], X_dev=X[20:], y_dev=y[20:])
    assert tagger.dev_score_ == tagger.score(X[20:], y[20:]) < 1
    assert torch.equal(weights(tagger), weights(quick().fit(X[:20], y[:20])))


def test_unseen_labels_are_missed():
    """Of three gold segments one is of an unknown type; a label of no scheme at all is missed, too."""
    X, y = [["Anna", "left", "Rome"], ["Bo"]], [["B-PER", "O", "B-PER"], ["O"]]
    tagger = quick(scheme="IOB2").fit(X, y)
    for unknown, name in (("B-ORG", "ORG"), ("XYZ", "XYZ"), ("S-ORG", "ORG")):
        with pytest.warns(UserWarning, match=f"1 segment .*{name}"):
            found = tagger.score(X, [y[0], [unknown]])
        assert found == pytest.approx(2 * 2 / (2 + 3))
    assert tagger.score(X, [["S-PER", "O", "S-PER"], ["O"]]) == 1.0
    flat = quick(scheme="none").fit(X, y)
    with pytest.warns(UserWarning, match="1 label .*B-ORG"):
        assert flat.score(X, [y[0], ["B-ORG"]]) == 3 / 4


@pytest.mark.filterwarnings("ignore:y. 1 segment")
def test_a_type_of_a_single_fold():
    X = [["Anna", "left"], ["Bo", "met"], ["Rome", "fell"]] * 4 + [["IBM", "fell"]]
    y = [["B-PER", "O"], ["B-PER", "O"], ["B-LOC", "O"]] * 4 + [["B-ORG", "O"]]
    tagger = SequenceTagger(templates=["w[0]"], max_iterations=10)
    search = GridSearchCV(tagger, {"C": [1e-9, 1]}, cv=KFold(3), error_score="raise").fit(X, y)
    assert search.best_params_ == {"C": 1}
    assert 0.8 < search.best_score_ < 1


def test_scorers(words):
    X, y = words
    flat = make_scorer(flat_f1_score, average="macro", labels=["B-PER", "B-LOC"])
    for scoring in (segment_f1_scorer, make_scorer(segment_f1_score, average="macro"), flat):
        scores = cross_val_score(quick(), X, y, cv=2, scoring=scoring, error_score="raise")
        assert ((scores > 0) & (scores < 1)).all()
    own = cross_val_score(quick(), X, y, cv=2)
    assert cross_val_score(quick(), X, y, cv=2, scoring=segment_f1_scorer).tolist() == own.tolist()


def test_scores_of_single_tokens(words):
    X, y = words
    found = quick().fit(X[:20], y[:20]).predict(X)
    gold, predicted = ([label for labels in rows for label in labels] for rows in (y, found))
    assert flat_f1_score(y, found) == f1_score(gold, predicted, average="weighted")
    assert flat_accuracy_score(y, found) == sum(map(str.__eq__, gold, predicted)) / len(gold)
    assert sequence_accuracy_score(y, found) == sum(map(list.__eq__, y, found)) / len(y)
    assert flat_classification_report(y, found, output_dict=True)["B-PER"]["support"] == gold.count("B-PER")
    assert classification_report(y, found, output_dict=True)["micro avg"]["f1-score"] == segment_f1_score(y, found)


def test_marginals_equal_those_of_the_tagger(words):
    X, y = words
    tagger = SequenceTagger(templates=["w[0]"]).fit(X, y)
    found = tagger.predict_marginals(X)
    for table, sentence in zip(tagger.tagger_.marginals(X), found, strict=True):
        assert [list(token) for token in sentence] == [tagger.classes_] * len(sentence)
        assert [list(token.values()) for token in sentence] == table.tolist()
    for one, other in zip(tagger.predict_marginals_single(X[3]), found[3], strict=True):
        assert one == pytest.approx(other)
    assert tagger.predict_single(X[3]) == tagger.predict(X)[3]


def test_weights_by_name(words):
    tagger = quick().fit(*words)
    node = tagger.tagger_.scorer.node.detach()
    at = tagger.attributes_.index("w[0]=Anna")
    assert tagger.state_features_["w[0]=Anna", "B-PER"] == float(node[at, tagger.classes_.index("B-PER")]) > 0
    assert tagger.transition_features_["O", "O"] == float(tagger.tagger_.scorer.transition.detach()[0, 0])


def test_mapping_of_weights_equals_the_table(words):
    tagger = quick().fit(*words)
    table = tagger.tagger_.scorer.node.detach()
    names = [(feature, label) for feature in tagger.attributes_ for label in tagger.classes_]
    nonzero = {pair: value for pair, value in zip(names, table.flatten().tolist(), strict=True) if value}
    found = tagger.state_features_
    assert (list(found), dict(found), len(found)) == (list(nonzero), nonzero, len(nonzero))
    absent = next(pair for pair in names if pair not in nonzero)
    assert absent not in found
    assert ("unknown", "O") not in found


def test_mapping_of_weights_follows_fit(words):
    X, y = words
    tagger = quick().fit(X, y)
    before = dict(tagger.state_features_)
    assert dict(copy.deepcopy(tagger).state_features_) == before
    assert dict(tagger.fit(X[:2], y[:2]).state_features_) != before


def test_weights_as_tables(words):
    tagger = quick().fit(*words)
    found = tagger.weights(3)
    node, transition = found[0], found.transitions
    assert node.sums.name == "node"
    assert {w.value for w in node.largest} <= set(tagger.state_features_.values())
    assert transition.values == tagger.tagger_.scorer.transition.tolist()
    page = found._repr_html_()
    assert all(name in page for name in tagger.classes_)
    assert node.largest[0].feature in page


# -- searches, pipelines, processes --------------------------------------------------------------------------


def test_grid_search_over_c(dicts):
    X, y = dicts
    search = GridSearchCV(SequenceTagger(max_iterations=20), {"C": [0.001, 10.0]}, cv=2, error_score="raise").fit(X, y)
    assert search.best_params_ == {"C": 10.0}
    assert search.predict(X) == search.best_estimator_.predict(X)


def test_randomized_search_in_threads(words):
    X, y = words
    choice = {"algorithm": ["averaged_perceptron", "passive_aggressive"], "cutoff": [1, 2]}
    with joblib.parallel_config("threading", n_jobs=2):
        search = RandomizedSearchCV(quick(), choice, n_iter=2, cv=2, random_state=0, error_score="raise").fit(X, y)
    assert search.best_score_ > 0.5
    assert logging.getLogger("pytorch_lightning").level < logging.ERROR


def upper(X):
    return [[word.upper() for word in sentence] for sentence in X]


@pytest.mark.long  # tests/test_pickling.py trains an estimator in another process
def test_processes(words):
    X, y = words
    options = {"cv": KFold(2), "error_score": "raise"}
    assert (
        cross_val_score(quick(), X, y, n_jobs=2, **options).tolist()
        == cross_val_score(quick(), X, y, **options).tolist()
    )
    found = joblib.Parallel(n_jobs=2)(joblib.delayed(quick(C=C).fit)(X, y) for C in (1.0, 2.0))
    assert found[1].predict(X) == quick().fit(X, y).predict(X)


@pytest.mark.parametrize("form", ["words", "dicts"])
def test_copy_pickle_and_dump(form, request, tmp_path):
    X, y = request.getfixturevalue(form)
    tagger = quick().fit(X, y)
    joblib.dump(tagger, tmp_path / "tagger.joblib")
    for other in (copy.deepcopy(tagger), pickle.loads(pickle.dumps(tagger)), joblib.load(tmp_path / "tagger.joblib")):
        assert other.predict(X) == tagger.predict(X)
        assert (other.get_params(), other.classes_) == (tagger.get_params(), tagger.classes_)
    assert pickle.loads(pickle.dumps(quick())).get_params() == quick().get_params()


def test_the_tagger_can_be_saved(dicts, tmp_path):
    X, y = dicts
    tagger = quick().fit(X, y)
    tagger.tagger_.save(tmp_path / "model")
    again = Tagger.load(tmp_path / "model")
    assert again.features.columns == ["word", "features"]
    assert again.label(parse_sentences(X).corpus) == tagger.predict(X)


@pytest.mark.parametrize("tokens", [None, 1], ids=["all tokens", "one token"])
def test_predictions_of_folds_are_in_the_order_of_the_sentences(tokens, words):
    X, y = ([sentence[:tokens] for sentence in part] for part in words)
    folds = KFold(3, shuffle=True, random_state=1)
    found = cross_val_predict(SequenceTagger(max_iterations=3), X, y, cv=folds)
    assert found.shape == (len(X),)
    for train, test in folds.split(X):
        tagger = SequenceTagger(max_iterations=3).fit([X[i] for i in train], [y[i] for i in train])
        assert found[test].tolist() == tagger.predict([X[i] for i in test])
    assert 0 < segment_f1_score(y, found) == segment_f1_score(y, found.tolist())


# -- silence -------------------------------------------------------------------------------------------------


def test_fit_is_silent(words, tmp_path, monkeypatch, capfd, caplog):
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings(), caplog.at_level(logging.INFO):
        warnings.simplefilter("error")
        SequenceTagger(max_iterations=2).fit(*words).score(*words)
        quick().fit(*words)
    assert capfd.readouterr() == ("", "")
    assert [record for record in caplog.records if record.name.startswith(("pytorch", "lightning"))] == []
    assert list(tmp_path.iterdir()) == []


def test_verbose_fit(words, capfd):
    quick(verbose=True, max_iterations=1).fit(*words)
    assert "Epoch" in "".join(capfd.readouterr())


def test_missing_scikit_learn():
    program = "import sys; sys.modules['sklearn'] = None; import structperc.sklearn"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    last = done.stderr.strip().splitlines()[-1]
    assert last == "ImportError: structperc.sklearn needs the extra `sklearn`: pip install structperc[sklearn]"


def test_not_fitted(words):
    X, y = words
    for call in (lambda t: t.predict(X), lambda t: t.score(X, y), lambda t: t.predict_marginals(X)):
        with pytest.raises(NotFittedError, match="SequenceTagger"):
            call(quick())
    with pytest.raises(NotFittedError):
        quick().state_features_  # noqa: B018


def test_likelihood_of_a_function_has_marginals(words):
    def crf(features):
        return Tagger(features, SparseLinear(), CRFLoss(), KBest(1), lambda p: torch.optim.SGD(p, lr=0.1))

    (token,) = quick(algorithm=crf).fit(*words).predict_marginals_single(["Anna"])
    assert sum(token.values()) == pytest.approx(1)


def test_commands_read_the_saved_tagger(dicts, tmp_path, capsys):
    tagger = quick().fit(*dicts).tagger_
    tagger.save(tmp_path / "model")
    assert main(["explain", str(tmp_path / "model"), "--top", "3"]) == 0
    largest = max(quick().fit(*dicts).state_features_.items(), key=lambda item: abs(item[1]))
    assert largest[0][0] in capsys.readouterr().out
