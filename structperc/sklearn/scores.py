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
    """Return the segment F1 of the predictions of an estimator, for `scoring=` of GridSearchCV and cross_val_score."""
    return segment_f1_score(y, estimator.predict(X))


def flat_accuracy_score(y_true: LabelLists, y_pred: LabelLists, **options: Any) -> float:
    """Return the share of correctly labelled tokens; options are those of `sklearn.metrics.accuracy_score`."""
    return float(accuracy_score(*_flat(y_true, y_pred), **options))


def flat_precision_score(y_true: LabelLists, y_pred: LabelLists, *, average: str = "weighted", **options: Any) -> Any:
    """Return the precision of the labels of all tokens; options are those of `sklearn.metrics.precision_score`."""
    return precision_score(*_flat(y_true, y_pred), average=average, **options)


def flat_recall_score(y_true: LabelLists, y_pred: LabelLists, *, average: str = "weighted", **options: Any) -> Any:
    """Return the recall of the labels of all tokens; options are those of `sklearn.metrics.recall_score`."""
    return recall_score(*_flat(y_true, y_pred), average=average, **options)


def flat_f1_score(y_true: LabelLists, y_pred: LabelLists, *, average: str = "weighted", **options: Any) -> Any:
    """Return the F1 of the labels of all tokens; options are those of `sklearn.metrics.f1_score`.

    Use `labels=[...]` to exclude "O" for named entities. Raises InputError for arguments that are not lists of
    sentences, or of different lengths.

    Example:
        >>> flat_f1_score([["N", "V"], ["N"]], [["N", "N"], ["N"]], labels=["N"])
        0.8
    """
    return f1_score(*_flat(y_true, y_pred), average=average, **options)


def flat_classification_report(y_true: LabelLists, y_pred: LabelLists, **options: Any) -> Any:
    """Return precision, recall and F1 of the labels of all tokens, text or with output_dict=True a dictionary.

    Options are those of `sklearn.metrics.classification_report`.
    """
    return classification_report(*_flat(y_true, y_pred), **options)


def sequence_accuracy_score(y_true: LabelLists, y_pred: LabelLists) -> float:
    """Return the share of sentences without a wrong label; 0.0 without sentences."""
    gold, predicted = _read(y_true, y_pred)
    return sum(map(list.__eq__, gold, predicted)) / max(len(gold), 1)


def _read(y_true: LabelLists, y_pred: LabelLists) -> tuple[list[list[str]], list[list[str]]]:
    gold, predicted = label_sequences(y_true, "y_true"), label_sequences(y_pred, "y_pred")
    check_same_lengths(gold, predicted, ("y_true", "y_pred"))
    return gold, predicted


def _flat(y_true: LabelLists, y_pred: LabelLists) -> tuple[list[str], ...]:
    return tuple(list(chain.from_iterable(labels)) for labels in _read(y_true, y_pred))
