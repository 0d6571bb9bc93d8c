"""Guided learning for bidirectional tagging (Shen, Satta & Joshi 2007): no lattice, tokens are labelled easiest first.

templates.py says which labels of neighbours make features, context.py which weights these have. rules.py says what to
do about errors, updates.py moves the weights' averages along; model.py has the weights and is inference and learning,
decisions.py what it says about sentences. compiled/ is how both are done, arrays.py what is handed over to it.
"""

from structperc.guided.context import ContextFeatures
from structperc.guided.decisions import Decisions
from structperc.guided.model import GuidedModel
from structperc.guided.rules import Aggressive, EarlyUpdate, Progress, Rule
from structperc.guided.updates import Updates

__all__ = [
    "GuidedModel",
    "ContextFeatures",
    "Rule",
    "Aggressive",
    "EarlyUpdate",
    "Decisions",
    "Progress",
    "Updates",
]
