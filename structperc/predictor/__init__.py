"""Labels without PyTorch: what a saved tagger of sparse features needs, and no more.

labeller.py     the interface of whatever labels text, whole or light
inference.py    new text as a corpus, decisions as strings; groups.py: text that is labelled as it comes
tagger.py       the light tagger; search.py: its compiled search for the best labels

`structperc.load` gives the light tagger of a saved model that has one.
"""

from structperc.predictor.base import Prediction, Predictor
from structperc.predictor.sparse import SparsePredictor

__all__ = ["Predictor", "SparsePredictor", "Prediction"]
