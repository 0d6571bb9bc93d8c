"""Optimizers. Each one is a torch.optim.Optimizer.

base.py        what training needs of an optimizer beyond torch's contract
averaged_perceptron.py  Perceptron and GPD: steps after each mini-batch or sequence, with averages
passive_aggressive.py   the same, with the step size of passive-aggressive learning
full_batch.py  contract of steps after each pass over the corpus
lbfgs.py, line_search.py                L-BFGS and OWL-QN, its variant for L1
quickprop.py   QuickProp
lazy.py        LazyAdamW: AdamW for sparse and dense gradients
groups.py      ParameterGroups: rates and weight decay by module and layer
wrappers.py    SequentialOptimizers, Averaging
schedules.py   schedules of learning rates, in addition to torch's
"""

from structperc.optim.averaged_perceptron import GPD, AveragedOptimizer, Perceptron, StepSizeRule, where
from structperc.optim.base import BaseOptimizer
from structperc.optim.groups import ParameterGroups
from structperc.optim.lazy import LazyAdamW
from structperc.optim.lbfgs import LBFGS, OWLQN
from structperc.optim.passive_aggressive import PassiveAggressive
from structperc.optim.quickprop import QuickProp
from structperc.optim.schedules import InverseTime, WarmupDecay
from structperc.optim.wrappers import Averaging, SequentialOptimizers

__all__ = [
    "Perceptron",
    "PassiveAggressive",
    "GPD",
    "LBFGS",
    "OWLQN",
    "QuickProp",
    "LazyAdamW",
    "SequentialOptimizers",
    "Averaging",
    "ParameterGroups",
    "WarmupDecay",
    "InverseTime",
    "where",
    "BaseOptimizer",
    "AveragedOptimizer",
    "StepSizeRule",
]
