"""Optimizers and learning rates of taggers that are created without an optimizer.

The rates were chosen by cross-validation, see docs/results/learning_rates.md.
"""

from functools import partial

from torch import nn

from structperc.criteria import Criterion, HingeLoss
from structperc.criteria.base import CandidateLoss
from structperc.encoders import FrozenVectors, Transformer
from structperc.optim import LazyAdamW, ParameterGroups, PassiveAggressive, Perceptron
from structperc.optim.wrappers import MakeOptimizer
from structperc.scorers import Neural

ADAM = partial(LazyAdamW, lr=0.005)  # its steps change only the weights of features that occur in the mini-batch
OPTIMIZERS: dict[type, MakeOptimizer] = {  # the closest base class counts
    HingeLoss: PassiveAggressive,
    CandidateLoss: Perceptron,
    Criterion: ADAM,
}
PRETRAINED_RATE = 5e-5


def default_optimizer(criterion: Criterion, scorer: nn.Module) -> MakeOptimizer:
    """Return the constructor of the default optimizer for a criterion and a scorer.

    Losses of the gold sequence and one candidate have the averaged perceptron, which learns sequence by sequence and
    needs no rate; `HingeLoss`, whose loss is a margin to restore, has PassiveAggressive. All others have LazyAdamW. So
    has every criterion with an encoder: the steps of a perceptron are too large for its weights.

    Example:
        >>> from structperc.criteria import CRFLoss, MarginLoss
        >>> from structperc.scorers import SparseLinear
        >>> default_optimizer(MarginLoss(C=1.0), SparseLinear())
        <class 'structperc.optim.averaged_perceptron.Perceptron'>
        >>> default_optimizer(CRFLoss(), SparseLinear()).keywords  # of LazyAdamW
        {'lr': 0.005}
    """
    if any(isinstance(part, Neural) for part in scorer.modules()):
        return ADAM
    return next(OPTIMIZERS[base] for base in type(criterion).__mro__ if base in OPTIMIZERS)


def default_rates(model: nn.Module) -> ParameterGroups | None:
    """Return learning rates for the pretrained encoders of a model that are trained; None without any."""
    frozen = {inner for part in model.modules() if isinstance(part, FrozenVectors) for inner in part.modules()}
    trained = (
        name
        for name, part in model.named_modules()
        if isinstance(part, Transformer) and not part.frozen and part not in frozen
    )
    rates = dict.fromkeys(trained, PRETRAINED_RATE)
    return ParameterGroups(rates) if rates else None
