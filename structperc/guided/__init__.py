"""Guided learning for bidirectional tagging (Shen, Satta & Joshi 2007): no lattice, tokens are labelled easiest first.

templates.py    which labels of neighbours, with which words, make a feature
model.py        weights, inference and learning
rules.py        update rules, and the optimizer that averages the weights
arrays.py       arguments and results of the compiled functions
chart.py        compiled: spans of one sentence, their states, the queue of candidates
search.py       compiled: Algorithm 1
learning.py     compiled: Algorithm 2 with either rule
"""

from structperc.guided.arrays import Decisions
from structperc.guided.model import ContextFeatures, GuidedModel
from structperc.guided.rules import Aggressive, EarlyUpdate, GuidedOptimizer, GuidedRule, LearningCounts

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
