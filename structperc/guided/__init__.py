"""Guided learning for bidirectional tagging (Shen, Satta & Joshi 2007): tokens are labelled one by one, easiest first.

context.py      features of the labels, and words, next to a token
model.py        weights, inference and learning; update rules and the averaging optimizer
arrays.py       arguments and results of the compiled functions
chart.py        compiled: spans of one sentence, their states, the queue of candidates
search.py       compiled: Algorithm 1
learning.py     compiled: Algorithm 2 with either rule
"""

from structperc.guided.arrays import Decisions
from structperc.guided.context import ContextFeatures
from structperc.guided.model import Aggressive, EarlyUpdate, GuidedModel, GuidedOptimizer, GuidedRule, LearningCounts

__all__ = [
    "GuidedModel",
    "ContextFeatures",
    "GuidedRule",
    "Aggressive",
    "EarlyUpdate",
    "Decisions",
    "LearningCounts",
    "GuidedOptimizer",
]
