"""Minimum classification error: a smooth count of wrong sequences."""

import torch
from torch import Tensor

from structperc.criteria.base import Criterion, check_candidates
from structperc.criteria.measures import Measure, Strongest
from structperc.criteria.smoothing import Sigmoid, Smoothing
from structperc.structures import Scored


class MCE(Criterion):
    """loss = l(d), Suzuki, McDermott & Isozaki 2006, Eq. 9 and 10: without 1/N; the prior is added elsewhere.

    The gradient is l'(d) times that of d: with Strongest, a perceptron step against the best rival on every
    sequence, weighted by how close the decision was. A sequence whose gold labelling is the only legal one has
    loss 0 and asks for no update.

    Args:
        measure: misclassification measure d; by default that of the strongest rival (Eq. 5).
        smoothing: l; by default Sigmoid(), the paper's MCE(sig). Logistic() is its MCE(log).

    Raises:
        ValueError: the search gives fewer candidates than the measure compares.
    """

    measure: Measure
    smoothing: Smoothing

    def __init__(self, measure: Measure | None = None, smoothing: Smoothing | None = None) -> None:
        super().__init__()
        self.measure, self.smoothing = measure or Strongest(), smoothing or Sigmoid()
        self.rivals_needed = self.measure.rivals_needed
        self.of_lattice = not self.rivals_needed

    def judge(self, scored: Scored) -> tuple[Tensor, Tensor]:
        """Return losses (B,), and where gold has a rival (B,) bool."""
        check_candidates(self, scored)
        d, exists = self.measure(scored)
        return torch.where(exists, self.smoothing(d), 0.0), exists
