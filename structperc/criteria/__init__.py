"""Compared scores -> losses (B,). A criterion never searches and never writes weights."""

from structperc.criteria.base import Criterion, RivalCriterion
from structperc.criteria.hinge import Hinge
from structperc.criteria.likelihood import Likelihood
from structperc.criteria.local_and_nonlocal import LocalAndNonlocal
from structperc.criteria.margin import Margin
from structperc.criteria.perceptron import Perceptron

__all__ = ["Criterion", "Hinge", "Likelihood", "LocalAndNonlocal", "Margin", "Perceptron", "RivalCriterion"]
