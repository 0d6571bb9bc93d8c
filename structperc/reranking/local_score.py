"""The local score of a re-ranker's second model: what it knows beside its non-local features."""

import torch
from torch import Tensor, nn

from structperc.chain import path_score
from structperc.errors import InputError
from structperc.scorers import LocalWeights, SparseLinear
from structperc.structures import Batch, Candidates


class LocalScore(LocalWeights):
    """The local scores (B, K) of a second model: forward(batch, labels (B, K, T), first (B, K)), with gradients.

    `first` are the first model's scores of these labellings, finite everywhere; what is given for labellings
    that are not valid is never read. Weights begin with zero.
    """

    sparse_grad = True  # as those of `LocalFeatures` may be


class FirstScore(LocalScore):
    """w0 s1(y) / unit: the first model's score s1 as one feature. Re-ranking 1 of Kazama & Torisawa 2007, §6.3.

    After Collins (2002), whose first model gave log-probabilities. Here scores of different labellings differ by
    about the margin C of the first model, thousands, while non-local features count to ten: an update would move
    w0 s1 by millions and all other weights by a few units. With a unit of about C both move alike. The paper
    says nothing about scaling; unit = 1 is its text to the letter.

    Args:
        unit: what counts as one, in units of the first model's score.

    Raises:
        InputError: unit is not positive.
    """

    weight: nn.Parameter

    def __init__(self, unit: float = 1.0) -> None:
        super().__init__()
        if not unit > 0:
            raise InputError(f"FirstScore: unit must be > 0, got {unit}")
        self.unit = unit

    def allocate(self, n_node: int, n_edge: int, n_labels: int) -> None:
        """Create w0 (1,), which is zero and does not depend on the sizes."""
        self.weight = nn.Parameter(torch.zeros(1))

    def forward(self, batch: Batch, labels: Tensor, first: Tensor) -> Tensor:
        """Return w0 * first / unit (B, K)."""
        return self.weight * (first / self.unit)


class LocalFeatures(LocalScore):
    """Local features with weights of their own. Re-ranking 2 of Kazama & Torisawa 2007, §6.3.

    "The same local features as the first model", whose weights are trained anew; the first model's score itself
    is not used.

    Args:
        scorer: batch -> Lattice, along which labellings are scored.
    """

    def __init__(self, scorer: SparseLinear) -> None:
        super().__init__()
        self.scorer = scorer

    def allocate(self, n_node: int, n_edge: int, n_labels: int) -> None:
        """Create the scorer's weights, all zero."""
        self.scorer.allocate(n_node, n_edge, n_labels)

    def forward(self, batch: Batch, labels: Tensor, first: Tensor) -> Tensor:
        """Return the scores (B, K) of the labellings in the scorer's lattice."""
        return path_score(self.scorer(batch), labels)


def local_scores(scorer: LocalScore, batch: Batch, candidates: Candidates) -> Tensor:
    """Return the second model's local scores (B, K) of a first model's candidates.

    Where not valid, any finite number.
    """
    return scorer(batch, candidates.labels, candidates.scores.where(candidates.valid, 0))
