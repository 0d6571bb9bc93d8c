"""The local score of a re-ranker's second model: what it knows beside its non-local features."""

import math
from typing import cast

import torch
from torch import Tensor, nn

from structperc.chain import path_score
from structperc.errors import InputError
from structperc.scorers import LocalWeights, SparseLinear
from structperc.structures import Batch, Candidates


class LocalScore(LocalWeights):
    """The local scores (B, K) of a second model: forward(batch, labels (B, K, T), first (B, K)), with gradients.

    `first` are the first model's scores of these labellings, finite everywhere; what is given for labellings
    that are not valid is never read. Weights begin with zero unless a subclass says otherwise.
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
        start: w0 before training. With start = unit the second model begins as the first one.

    Raises:
        InputError: unit is not positive, start not finite.
    """

    weight: nn.Parameter

    def __init__(self, unit: float = 1.0, start: float = 0.0) -> None:
        super().__init__()
        if not unit > 0:
            raise InputError(f"FirstScore: unit must be > 0, got {unit}")
        if not math.isfinite(start):
            raise InputError(f"FirstScore: start must be finite, got {start}")
        self.unit, self.start = unit, start

    def allocate(self, n_node: int, n_edge: int, n_labels: int) -> None:
        """Create w0 (1,), which does not depend on the sizes."""
        self.weight = nn.Parameter(torch.full((1,), float(self.start)))

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


class LocalSum(LocalScore):
    """The sum of several local scores, whose weights are learned together.

    Of `FirstScore` and `LocalFeatures` it is what Kazama & Torisawa (2007) leave open for re-ranking 2: local features
    whose weights are learned from nothing but what lists differ in, beside the score of a first model that has
    learned them from everything.

    Args:
        parts: at least one.

    Raises:
        InputError: no part.
    """

    def __init__(self, parts: list[LocalScore]) -> None:
        super().__init__()
        if not parts:
            raise InputError("LocalSum: parts is empty; give at least one")
        self.parts = nn.ModuleList(parts)

    def allocate(self, n_node: int, n_edge: int, n_labels: int) -> None:
        """Create the weights of each part."""
        for part in self.parts:
            cast(LocalScore, part).allocate(n_node, n_edge, n_labels)

    def forward(self, batch: Batch, labels: Tensor, first: Tensor) -> Tensor:
        """Return the sums (B, K) of what the parts give."""
        return torch.stack([part(batch, labels, first) for part in self.parts]).sum(0)


def local_scores(scorer: LocalScore, batch: Batch, candidates: Candidates) -> Tensor:
    """Return the second model's local scores (B, K) of a first model's candidates.

    Where not valid, any finite number.
    """
    return scorer(batch, candidates.labels, candidates.scores.where(candidates.valid, 0))
