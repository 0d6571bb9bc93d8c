"""Prediction without PyTorch, from saved taggers of sparse features.

base.py             base class of all predictors, with or without PyTorch: text -> corpus -> predictions
sparse.py           the predictor of sparse features; search.py its compiled search and probabilities
segment_weights.py  its features of segments; segment_search.py the search and probabilities with them

`structperc.load` returns the sparse predictor of a saved model if there is one.
"""

from structperc.predictor.base import Prediction, Predictor

__all__ = [
    "Predictor",
    "Prediction",
]
