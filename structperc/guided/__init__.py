"""Guided learning for bidirectional tagging (Shen, Satta & Joshi 2007): no lattice, tokens are labelled easiest first.

templates.py says which labels of neighbours make features, context.py scores them. states.py and chart.py hold what
is decided about spans of tokens and what may come next, queue.py which comes next; search.py is inference. lesson.py
adds gold, rules.py says what to do about errors, learning.py is the loop; model.py has the weights,
updates.py moves the weights and keeps their averages.
"""

from structperc.guided.context import ContextFeatures
from structperc.guided.learning import Progress
from structperc.guided.model import GuidedModel
from structperc.guided.rules import Aggressive, EarlyUpdate, Rule
from structperc.guided.search import Decisions
from structperc.guided.updates import Updates

__all__ = ["GuidedModel", "ContextFeatures", "Rule", "Aggressive", "EarlyUpdate", "Decisions", "Progress", "Updates"]
