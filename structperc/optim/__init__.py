"""Gradients (and the closure's loss) -> weights. Every optimizer is a torch.optim.Optimizer.

After each mini-batch: Perceptron, PassiveAggressive, GPD, and torch's own. After each pass over the corpus, with
objective and gradient of the whole: LBFGS, OWLQN, QuickProp. One after the other: Phases. With averages of what it
learns, any of torch's: Averaging. What training asks all of them, `TrainingProtocol`, and what it takes to be the
answers of torch's own, `learner`. How their learning rates change: torch's schedules, and those of schedules.py.

Each has a file. averaged.py keeps averages, served.py says which weights are looked at, full_batch.py is the contract
of the second kind; quasi_newton.py, limited_memory.py and line_search.py are what LBFGS and OWLQN share.
"""

from structperc.optim.base import BaseOptimizer, TrainingProtocol, learner
from structperc.optim.full_batch import Diverged, FullBatch, check_finite
from structperc.optim.gpd import GPD
from structperc.optim.lbfgs import LBFGS
from structperc.optim.owlqn import OWLQN
from structperc.optim.passive_aggressive import PassiveAggressive
from structperc.optim.perceptron import AveragedOptimizer, Perceptron, StepSizeRule, squared_norm
from structperc.optim.quickprop import QuickProp
from structperc.optim.schedules import InverseTime, Schedule, WarmupDecay, interval
from structperc.optim.wrappers import Averaging, Phases

__all__ = [
    "Perceptron",
    "PassiveAggressive",
    "GPD",
    "LBFGS",
    "OWLQN",
    "QuickProp",
    "Phases",
    "Averaging",
    "WarmupDecay",
    "InverseTime",
    "Schedule",
    "interval",
    "AveragedOptimizer",
    "StepSizeRule",
    "squared_norm",
    "FullBatch",
    "TrainingProtocol",
    "learner",
    "BaseOptimizer",
    "Diverged",
    "check_finite",
]
