"""Gradients (and the closure's loss) -> weights. Every optimizer is a torch.optim.Optimizer."""

from structperc.optim.passive_aggressive import PassiveAggressive
from structperc.optim.perceptron import Perceptron

__all__ = ["Perceptron", "PassiveAggressive"]
