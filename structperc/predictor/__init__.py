"""Prediction without PyTorch: all that a saved tagger of sparse features needs.

base.py     base class of all predictors, with or without PyTorch; new text as a corpus, predictions as strings
sparse.py   the predictor of sparse features; search.py its compiled search and probabilities

`structperc.load` returns the sparse predictor of a saved model that has one.
"""

from structperc.predictor.base import Prediction, Predictor
from structperc.predictor.sparse import SparsePredictor

__all__ = ["Predictor", "SparsePredictor", "Prediction"]
