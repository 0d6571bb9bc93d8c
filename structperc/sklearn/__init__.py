"""Taggers as scikit-learn estimators, for pipelines, searches and cross-validation.

estimator.py      the estimator
sentences.py      sentences, labels and feature dicts as columns of strings
algorithms.py     the taggers of named algorithms, and replacements for options of sklearn-crfsuite
fitting.py        training in memory; copying and pickling of taggers
named_weights.py  weights by name, computed when they are read
scoring.py        scores of label sequences for `scoring=`, and of single tokens
"""

try:
    import sklearn  # noqa: F401
except ImportError:
    raise ImportError("structperc.sklearn needs the extra `sklearn`: pip install structperc[sklearn]") from None

from structperc.sklearn.estimator import SequenceTagger
from structperc.sklearn.scoring import (
    flat_accuracy_score,
    flat_classification_report,
    flat_f1_score,
    flat_precision_score,
    flat_recall_score,
    segment_f1_scorer,
    sequence_accuracy_score,
)
from structperc.sklearn.sentences import features_of

__all__ = [
    "SequenceTagger",
    "features_of",
    "segment_f1_scorer",
    "flat_accuracy_score",
    "flat_precision_score",
    "flat_recall_score",
    "flat_f1_score",
    "flat_classification_report",
    "sequence_accuracy_score",
]
