"""Scores of label sequences for searches of scikit-learn, and of single tokens with the names of sklearn-crfsuite.

Scores of segments are in `structperc.metrics`: `segment_f1_score`, `classification_report`.
"""

from collections.abc import Iterable
from itertools import chain
from typing import Any

from sklearn.metrics import accuracy_score, classification_report, f1_score, precision_score, recall_score

from structperc.metrics import segment_f1_score
from structperc.metrics.seqeval import LabelLists, check_same_lengths, label_sequences


def segment_f1_scorer(estimator: Any, X: Iterable[Any], y: LabelLists) -> float:
    """Return the segment F1 of the predictions of an estimator, for `scoring=` of GridSearchCV and cross_val_score.

    Args:
        estimator: A fitted `SequenceTagger`, or any object with `predict`.
        X: Sentences.
        y: Gold labels of each sentence.

    Example:
        >>> from sklearn.model_selection import cross_val_score
        >>> from structperc.sklearn import SequenceTagger
        >>> X, y = [["Anna", "left"], ["Oslo", "wins"]] * 2, [["B-PER", "O"], ["B-LOC", "O"]] * 2
        >>> model = SequenceTagger("averaged_perceptron", random_state=1, max_iterations=5)
        >>> cross_val_score(model, X, y, cv=2, scoring=segment_f1_scorer).tolist()
        [1.0, 1.0]
    """
    scheme = "IO" if getattr(estimator, "scheme_", None) == "IO" else None  # else of any scheme with prefixes
    return segment_f1_score(y, estimator.predict(X), scheme=scheme)


def flat_accuracy_score(y_true: LabelLists, y_pred: LabelLists, **options: Any) -> float:
    """Return the share of correctly labelled tokens.

    Args:
        y_true: Gold labels of each sentence.
        y_pred: Predicted labels of each sentence.
        options: Options of `sklearn.metrics.accuracy_score`.

    Raises:
        InputError: The arguments are not lists of sentences, or have different lengths.
    """
    return float(accuracy_score(*_flat(y_true, y_pred), **options))


def flat_precision_score(y_true: LabelLists, y_pred: LabelLists, *, average: str = "weighted", **options: Any) -> Any:
    """Return the precision of the labels of all tokens.

    Args:
        y_true: Gold labels of each sentence.
        y_pred: Predicted labels of each sentence.
        average: Average over the labels, see `sklearn.metrics.precision_score`.
        options: Further options of `sklearn.metrics.precision_score`, such as `labels=[...]` to exclude "O".

    Raises:
        InputError: The arguments are not lists of sentences, or have different lengths.
    """
    return precision_score(*_flat(y_true, y_pred), average=average, **options)


def flat_recall_score(y_true: LabelLists, y_pred: LabelLists, *, average: str = "weighted", **options: Any) -> Any:
    """Return the recall of the labels of all tokens.

    Args:
        y_true: Gold labels of each sentence.
        y_pred: Predicted labels of each sentence.
        average: Average over the labels, see `sklearn.metrics.recall_score`.
        options: Further options of `sklearn.metrics.recall_score`, such as `labels=[...]` to exclude "O".

    Raises:
        InputError: The arguments are not lists of sentences, or have different lengths.
    """
    return recall_score(*_flat(y_true, y_pred), average=average, **options)


def flat_f1_score(y_true: LabelLists, y_pred: LabelLists, *, average: str = "weighted", **options: Any) -> Any:
    """Return the F1 of the labels of all tokens.

    Args:
        y_true: Gold labels of each sentence.
        y_pred: Predicted labels of each sentence.
        average: Average over the labels, see `sklearn.metrics.f1_score`.
        options: Further options of `sklearn.metrics.f1_score`, such as `labels=[...]` to exclude "O" for named
            entities.

    Raises:
        InputError: The arguments are not lists of sentences, or have different lengths.
    """
    return f1_score(*_flat(y_true, y_pred), average=average, **options)


def flat_classification_report(y_true: LabelLists, y_pred: LabelLists, **options: Any) -> Any:
    """Return precision, recall and F1 of the labels of all tokens, as text or as a dictionary.

    Args:
        y_true: Gold labels of each sentence.
        y_pred: Predicted labels of each sentence.
        options: Options of `sklearn.metrics.classification_report`; output_dict=True returns a dictionary.

    Raises:
        InputError: The arguments are not lists of sentences, or have different lengths.
    """
    return classification_report(*_flat(y_true, y_pred), **options)


def sequence_accuracy_score(y_true: LabelLists, y_pred: LabelLists) -> float:
    """Return the share of sentences without a wrong label; 0.0 without sentences.

    Args:
        y_true: Gold labels of each sentence.
        y_pred: Predicted labels of each sentence.

    Raises:
        InputError: The arguments are not lists of sentences, or have different lengths.
    """
    gold, predicted = _read(y_true, y_pred)
    return sum(map(list.__eq__, gold, predicted)) / max(len(gold), 1)


def _read(y_true: LabelLists, y_pred: LabelLists) -> tuple[list[list[str]], list[list[str]]]:
    gold, predicted = label_sequences(y_true, "y_true"), label_sequences(y_pred, "y_pred")
    check_same_lengths(gold, predicted, ("y_true", "y_pred"))
    return gold, predicted


def _flat(y_true: LabelLists, y_pred: LabelLists) -> tuple[list[str], ...]:
    return tuple(list(chain.from_iterable(labels)) for labels in _read(y_true, y_pred))
