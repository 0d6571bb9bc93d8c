"""Guided learning for bidirectional tagging (Shen, Satta & Joshi 2007): tokens are labelled one by one, easiest first.

context_features.py  features of the labels, and words, next to a token
model.py             weights, inference and learning; update rules and the averaging optimizer
training_arrays.py   arguments and results of the compiled functions
chart.py             compiled: spans of one sentence, their states, the queue of candidates
beam_search.py       compiled: Algorithm 1
updates.py           compiled: Algorithm 2 with either rule
"""

from structperc.guided.context_features import ContextFeatures
from structperc.guided.model import Aggressive, GuidedModel

__all__ = [
    "GuidedModel",
    "ContextFeatures",
    "Aggressive",
]
