"""Minimum classification error: a smooth count of wrong sequences.

Smooth stand-ins for the 0-1 loss, of the misclassification measure d: d >= 0 is a mistake.
"""

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn

from structperc.criteria.base import Criterion, check_candidates
from structperc.criteria.misclassification import Measure, Strongest
from structperc.errors import InputError
from structperc.structures import Scored


class Smoothing(nn.Module, ABC):
    """Base of smoothings: forward(d) -> l(d), element by element, growing with d. Suzuki et al. 2006, Eq. 8.

    Args:
        alpha: steepness; the larger, the closer to the step.
        beta: moves the step to d = -beta / alpha.

    Raises:
        InputError: alpha is not positive.
    """

    def __init__(self, alpha: float = 1.0, beta: float = 0.0) -> None:
        super().__init__()
        if not alpha > 0:
            raise InputError(f"{type(self).__name__}: alpha must be > 0, got {alpha}")
        self.alpha, self.beta = alpha, beta

    @abstractmethod
    def forward(self, d: Tensor) -> Tensor:
        """Return l(d), of the shape of d; infinite d have the limit, and no slope where l levels out."""


class Sigmoid(Smoothing):
    """l_sig = 1 / (1 + exp(-alpha d - beta)), between 0 and 1: what is wrong beyond hope weighs no more."""

    def forward(self, d: Tensor) -> Tensor:
        """Return l_sig(d); its derivative is alpha l (1 - l)."""
        return torch.sigmoid(self.alpha * d + self.beta)

    def complement(self, d: Tensor) -> Tensor:
        """Return 1 - l_sig(d), which keeps its digits where l_sig rounds to 1."""
        return torch.sigmoid(-self.alpha * d - self.beta)


class Logistic(Smoothing):
    """l_log = log(1 + exp(alpha d + beta)) / alpha: without bound, convex in d; the derivative is l_sig."""

    def forward(self, d: Tensor) -> Tensor:
        """Return l_log(d), which is computed without overflow; its derivative is l_sig."""
        # not softplus, which leaves out the small term of large sums
        return -nn.functional.logsigmoid(-self.alpha * d - self.beta) / self.alpha


class MCELoss(Criterion):
    """loss = l(d), Suzuki, McDermott & Isozaki 2006, Eq. 9 and 10: without 1/N; the prior is added elsewhere.

    The gradient is l'(d) times that of d: with Strongest, a perceptron step against the best rival on every
    sequence, weighted by how close the decision was. A sequence whose gold labelling is the only legal one has
    loss 0 and asks for no update.

    Args:
        measure: misclassification measure d; by default that of the strongest rival (Eq. 5).
        smoothing: l; by default Sigmoid(), the paper's MCELoss(sig). Logistic() is its MCELoss(log).

    Raises:
        ValueError: the search gives fewer candidates than the measure compares.
    """

    measure: Measure
    smoothing: Smoothing

    def __init__(self, measure: Measure | None = None, smoothing: Smoothing | None = None) -> None:
        super().__init__()
        self.measure, self.smoothing = measure or Strongest(), smoothing or Sigmoid()
        self.min_candidates = self.measure.min_candidates
        self.needs_lattice = not self.min_candidates

    def losses_and_updates(self, scored: Scored) -> tuple[Tensor, Tensor]:
        """Return losses (B,), and where gold has a rival (B,) bool."""
        check_candidates(self, scored)
        d, exists = self.measure(scored)
        return torch.where(exists, self.smoothing(d), 0.0), exists
