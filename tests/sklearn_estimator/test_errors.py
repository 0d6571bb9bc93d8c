"""What a user did wrong, in one line that says where."""

import inspect

import numpy as np
import pytest

from structperc.sklearn import SequenceTagger
from tests.errors import error_message


def sklearn_crfsuite_options(  # of sklearn_crfsuite.CRF 0.5
    algorithm=None, min_freq=None, all_possible_transitions=None, c1=None, c2=None,
    max_iterations=None, num_memories=None, epsilon=None, period=None, delta=None, linesearch=None, max_linesearch=None,
    calibration_eta=None, calibration_rate=None, calibration_samples=None, calibration_candidates=None,
    calibration_max_trials=None, pa_type=None, c=None, error_sensitive=None, averaging=None, variance=None, gamma=None,
    verbose=False, model_filename=None, keep_tempfiles=False, trainer_cls=None,
):  # fmt: skip
    """Only its parameters are used."""


WORDS, LABELS = [["Anna", "left"], ["Bo"]], [["B-PER", "O"], ["B-PER"]]
TOKEN = {"w": "a"}


def fitted(**options):
    return SequenceTagger(**{"algorithm": "averaged_perceptron", "max_iterations": 1, **options}).fit(WORDS, LABELS)


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([], [], "X has no tokens"),
        ("Anna left", [["O"]], "X is a list of sentences, not a str; a sentence is a list of words"),
        (["Anna", "left"], ["B-PER", "O"], "X is one sentence; give [X] and [y]"),
        (["Anna left"], LABELS, "X, sentence 1 is the text 'Anna left'; split each sentence into a list of words"),
        (WORDS, LABELS[:1], "X has 2 sentences, y has 1; give a list of labels for each sentence"),
        (WORDS, [["O"], ["O"]], "sentence 1: X has 2 tokens, y has 1 label; give one for each"),
        (WORDS, ["BO", "O"], "y holds the labels of one sentence; give a list of sentences: [y]"),
        (WORDS, None, "y is a list of sentences, each a list of labels, not None"),
        (WORDS, [["O", 1], ["O"]], "y, sentence 1, token 2: expected a string, got 1; "),
        (
            [["a"], [TOKEN]],
            [["O"], ["O"]],
            "X, sentence 2 is of the form lists of feature dicts, or of lists of feature names, but sentence 1 of "
            "lists of words; give all in one form",
        ),
        ([{"pos": ["a"]}], [["O"]], "X, sentence 1 has columns pos; give word, pos"),
        ([{"word": ["a"], "label": ["O"]}], [["O"]], "X, sentence 1 has a column 'label'"),
        ([{"word": ["a"], "pos": "b"}], [["O"]], "X, sentence 1: column 'pos' is 'b'; give a list of strings"),
        ([{"word": ["a"], "pos": []}], [["O"]], "X, sentence 1: 1 words, but 0 of 'pos'; correct it"),
        (
            [[TOKEN], [TOKEN, {**TOKEN, "x": None}]],
            [["O"], ["O", "O"]],
            "X, sentence 2, token 2, feature 'x': None is a NoneType; "
            "give a string, a number, a bool, a dict or a list of strings",
        ),
        ([[{"a": {"x": float("nan")}}]], [["O"]], "X, sentence 1, token 1, feature 'a:x': nan"),
        ([[{1: "x"}]], [["O"]], "X, sentence 1, token 1: "),
    ],
)
def test_training_data(X, y, message):
    assert error_message(SequenceTagger().fit, X, y).startswith(message)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"algorithm": "svm"},
            "algorithm must be one of crf, averaged_perceptron, margin, passive_aggressive, softmax_margin, or a",
        ),
        ({"C": 0}, "C must be > 0, got 0"),
        ({"c2": -1}, "c2 must be >= 0 and finite, got -1"),
        ({"C": 3, "c2": 1}, "set C or c2, not both: C = 1 / (2 c2)"),
        ({"algorithm": "margin", "c2": 1}, "c2 needs algorithm='crf'"),
        ({"cutoff": 0}, "cutoff: 0 is too small; 1 keeps every feature of the training corpus"),
    ],
)
def test_options(options, message):
    assert error_message(SequenceTagger(**options).fit, WORDS, LABELS).startswith(message)


def test_labels_of_another_scheme():
    message = error_message(SequenceTagger(scheme="IOBES").fit, [["a"], ["b", "c"]], [["O"], ["O", "U-PER"]])
    assert message.startswith("y, sentence 2, token 2: label 'U-PER' is not of scheme IOBES")


@pytest.mark.parametrize(("name", "fact"), [("pa", "passive_aggressive"), ("arow", "passive_aggressive")])
def test_algorithms_of_crfsuite(name, fact):
    message = error_message(SequenceTagger(name).fit, WORDS, LABELS)
    assert repr(name) in message
    assert fact in message


@pytest.mark.parametrize("name", list(inspect.signature(sklearn_crfsuite_options).parameters))
def test_options_of_sklearn_crfsuite(name):
    """Each is understood, or answered with what to set in its place."""
    if name in SequenceTagger().get_params():
        assert SequenceTagger(**{name: 1}).get_params()[name] == 1
        return
    with pytest.raises(TypeError) as caught:
        SequenceTagger(**{name: 1})
    assert name in str(caught.value)
    assert "unknown parameter" not in str(caught.value)


def test_misspelled_option():
    with pytest.raises(TypeError, match=r"max_iteration: .*max_iterations"):
        SequenceTagger(max_iteration=5)


@pytest.mark.parametrize("form", ["words", "dicts"])
def test_one_sentence_instead_of_many(form):
    X = {
        "words": WORDS,
        "columns": [{"word": words} for words in WORDS],
        "dicts": [[{"w": word} for word in words] for words in WORDS],
        "names": [[["w:" + word, "x"] for word in words] for words in WORDS],
    }[form]
    tagger = SequenceTagger("averaged_perceptron", max_iterations=1).fit(X, LABELS)
    assert tagger.predict_single(X[0]) == tagger.predict(X)[0]
    for call, single in ((tagger.predict, "predict_single"), (tagger.predict_marginals, "predict_marginals_single")):
        message = error_message(call, X[0])
        assert "one sentence" in message
        assert f"[X], or call {single}(X)" in message
        assert f"call {call.__name__}(X)" in error_message(getattr(tagger, single), X)
    assert "[X] and [y]" in error_message(tagger.score, X[0], LABELS[0])
    if form != "names":
        assert "[X] and [y]" in error_message(SequenceTagger().fit, X[0], LABELS[0])


def test_development_data():
    for dev in ((WORDS, None), (None, LABELS)):
        assert "X_dev and y_dev" in error_message(SequenceTagger().fit, WORDS, LABELS, *dev)
    assert error_message(SequenceTagger().fit, WORDS, LABELS, WORDS[0], LABELS[0]).startswith("X_dev is one sentence")
    assert error_message(SequenceTagger().fit, WORDS, LABELS, WORDS, LABELS[:1]).startswith(
        "X_dev has 2 sentences, y_dev"
    )
    message = error_message(SequenceTagger("averaged_perceptron").fit, WORDS, LABELS, [[TOKEN]], [["O"]])
    assert message.startswith("X_dev is of the form lists of feature dicts")


def test_another_form_than_in_training():
    message = error_message(fitted().predict, [[TOKEN]])
    assert message.startswith("X is of the form lists of feature dicts")
    assert message.endswith("but training had lists of words")


def test_no_probabilities():
    message = "predict_marginals: averaged_perceptron gives scores, not probabilities; set algorithm='crf'"
    assert error_message(fitted().predict_marginals, WORDS) == message


def test_numbers_of_numpy_are_numbers():
    X = [[{"x": np.float32(0.5), "y": np.int64(2), "z": np.bool_(True)}, {"z": 1}]]
    found = SequenceTagger("averaged_perceptron").fit(X, [["A", "B"]])
    assert found.attributes_ == ["x", "y", "z"]


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0], "X has 2 sentences, sample_weight the shape (1,); give one number for each sentence"),
        ([1, np.inf], "sample_weight, sentence 2: inf must be a finite number >= 0"),
        (["a", 1], "sample_weight: expected a number for each sentence, got ['a', 1]"),
    ],
)
def test_wrong_weights(weights, message):
    assert error_message(lambda: SequenceTagger().fit(WORDS, LABELS, sample_weight=weights)) == message


def test_table_instead_of_sentences():
    class Frame(list):
        columns = ("word",)  # a DataFrame iterates over the names of its columns

    assert error_message(lambda: SequenceTagger().fit(Frame(["word"]), LABELS)).startswith(
        "X is a list of sentences, not a Frame"
    )


def test_weights_twice():
    X = [{"word": words, "weight": ["1"] * len(words)} for words in WORDS]
    assert "'weight'" in error_message(lambda: SequenceTagger().fit(X, LABELS, sample_weight=[1, 2]))
