"""What a user did wrong, in one line that says where."""

import numpy as np
import pytest

from structperc.errors import InputError
from structperc.sklearn import SequenceTagger

WORDS, LABELS = [["Anna", "left"], ["Bo"]], [["B-PER", "O"], ["B-PER"]]
TOKEN = {"w": "a"}


def complaint(call, *args):
    with pytest.raises(InputError) as caught:
        call(*args)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def fitted(**options):
    return SequenceTagger(**{"algorithm": "averaged_perceptron", "max_iterations": 1, **options}).fit(WORDS, LABELS)


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([], [], "X has no token in it; give sentences to learn from"),
        ([[], []], [[], []], "X has no token in it; give sentences to learn from"),
        ("Anna left", [["O"]], "X is a list of sentences, not a str; put a single sentence into a list"),
        ({"word": ["a"]}, [["O"]], "X is a list of sentences, not a dict; put a single sentence into a list"),
        (["Anna", "left"], LABELS, "X, sentence 1 is 'Anna'; a sentence is a list of tokens, so split it into words"),
        (WORDS, LABELS[:1], "X has 2 sentences, y has 1; give a list of labels for each sentence"),
        (WORDS, [["O"], ["O"]], "sentence 1: X has 2 tokens, y has 1 labels; give one for each"),
        (WORDS, ["BO", "O"], "y, sentence 1: the labels of a sentence are a list of strings, not 'BO'"),
        (WORDS, None, "y is a list with the labels of each sentence, not None"),
        (WORDS, [["O", 1], ["O"]], "y, sentence 1, token 2: a label is a string, not 1; write its name"),
        ([["a"], ["b", 3]], [["O"], ["O", "O"]], "X, sentence 2, token 2: a word is a string, not 3"),
        (
            [["a"], [TOKEN]],
            [["O"], ["O"]],
            "X, sentence 2 is of the form lists of feature dicts, or of lists of feature names, but sentence 1 of "
            "lists of words; give all in one form",
        ),
        ([{"pos": ["a"]}], [["O"]], "X, sentence 1 has columns pos; give word, pos"),
        ([{"word": ["a"], "label": ["O"]}], [["O"]], "X, sentence 1 has a column 'label'; labels are given as y"),
        (
            [{"word": ["a"]}, {"word": ["a"], "pos": ["b"]}],
            [["O"]] * 2,
            "X, sentence 2 has columns word, pos; give word",
        ),
        ([{"word": "a"}], [["O"]], "X, sentence 1: column 'word' is 'a'; give a list of strings"),
        ([{"word": ["a"], "pos": []}], [["O"]], "X, sentence 1: 1 words, but 0 of 'pos'; correct it"),
        (
            [[TOKEN], [TOKEN, {**TOKEN, "x": None}]],
            [["O"], ["O", "O"]],
            "X, sentence 2, token 2, feature 'x': None is a NoneType; "
            "give a string, a number, a bool, a dict or a list of strings",
        ),
        (
            [[{"a": {"x": float("nan")}}]],
            [["O"]],
            "X, sentence 1, token 1, feature 'a:x': nan is no finite number; give one, or leave it out",
        ),
        (
            [[{"x": 1e39}]],
            [["O"]],
            "X, sentence 1, token 1, feature 'x': 1e+39 is no finite number; give one, or leave it out",
        ),
        (
            [[{1: "x"}]],
            [["O"]],
            "X, sentence 1, token 1: the name of a feature is a string, not 1; write it as a string",
        ),
        (
            [[TOKEN, "b"]],
            [["O", "O"]],
            "X, sentence 1, token 2: a token is a dict of features or a list of their names, not 'b'",
        ),
    ],
)
def test_training_data(X, y, message):
    assert complaint(SequenceTagger().fit, X, y) == message


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"algorithm": "svm"},
            "algorithm must be one of crf, averaged_perceptron, margin, passive_aggressive, or a function that makes a "
            "tagger; not 'svm'",
        ),
        ({"scheme": "BIO"}, "scheme must be auto or one of IOB1, IOB2, IOBES, BILOU, none, got 'BIO'"),
        ({"C": 0}, "C must be > 0, got 0"),
        ({"c1": -1}, "c1 must be >= 0, got -1"),
        ({"algorithm": "passive_aggressive", "cost": 0.0}, "Hinge: cost must be > 0, got 0.0"),
        ({"max_iterations": 0}, "max_iterations must be >= 1, got 0"),
        ({"cutoff": 0}, "cutoff: 0 is too small; 1 keeps every feature of the training corpus"),
    ],
)
def test_options(options, message):
    assert complaint(SequenceTagger(**options).fit, WORDS, LABELS) == message


def test_labels_of_another_scheme():
    message = complaint(SequenceTagger(scheme="IOBES").fit, [["a"], ["b", "c"]], [["O"], ["O", "U-PER"]])
    assert message.startswith("y, sentence 2, token 2: label 'U-PER' is not of scheme IOBES")


def test_an_unknown_label_at_score():
    """One segment of two is missed; that of the unknown type may be predicted as another one."""
    made = fitted()
    (first, second), known = made.predict(WORDS), made.score(WORDS, [["B-PER", "O"], ["O"]])
    assert first == ["B-PER", "O"]
    found = 1 + (second == ["B-PER"])
    assert known == pytest.approx(2 / (found + 1))
    assert made.score(WORDS, [["B-PER", "O"], ["B-LOC"]]) == pytest.approx(2 / (found + 2))
    message = complaint(made.score, WORDS, [["B-PER", "O"], ["LOC"]])
    assert message.startswith("y, sentence 2, token 1: label 'LOC' is not of scheme")


def test_another_form_than_in_training():
    message = complaint(fitted().predict, [[TOKEN]])
    assert message.startswith("X is of the form lists of feature dicts")
    assert message.endswith("but training had lists of words")


def test_no_probabilities():
    message = "predict_marginals: averaged_perceptron gives scores, not probabilities; set algorithm='crf'"
    assert complaint(fitted().predict_marginals, WORDS) == message


def test_numbers_of_numpy_are_numbers():
    X = [[{"x": np.float32(0.5), "y": np.int64(2), "z": np.bool_(True)}, {"z": 1}]]
    found = SequenceTagger("averaged_perceptron").fit(X, [["A", "B"]])
    assert found.attributes_ == ["x", "y", "z"]
