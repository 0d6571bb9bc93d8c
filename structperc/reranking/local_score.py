"""Local scores of re-rankers, to which they add their non-local scores."""

import math
from typing import cast

import torch
from torch import Tensor, nn

from structperc.chain import path_score
from structperc.errors import InputError
from structperc.scorers import SparseLinear
from structperc.scorers.base import LocalWeights
from structperc.structures import Batch, Candidates


class LocalScore(LocalWeights):
    """Base class of the local scores of a re-ranker, to which it adds its non-local scores.

    A subclass defines `forward(batch, labels, first)`: labels (B, K, T) int64 -> scores (B, K), with gradients. `first`
    (B, K) are the scores of these label sequences by the first model, finite everywhere; the scores of invalid
    candidates are ignored. Weights start at zero unless a subclass sets other ones in `allocate`.

    Example:
        >>> import torch
        >>> class PlainScore(LocalScore):
        ...     '''The score of the first model, without a weight.'''
        ...     def allocate(self, n_node, n_edge, n_labels): ...
        ...     def forward(self, batch, labels, first):
        ...         return first
        >>> PlainScore()(None, torch.zeros(1, 2, 3, dtype=torch.int64), torch.tensor([[4.0, 3.0]]))
        tensor([[4., 3.]])
    """

    sparse_grad = True  # for `LocalFeatures`


class FirstScore(LocalScore):
    """The score of the first model as one feature: w0 s1(y) / unit. Re-ranking 1 of Kazama & Torisawa 2007, §6.3.

    After Collins (2002), whose first model gave log-probabilities. Scores of a margin perceptron differ by about its
    margin C, thousands, while counts of non-local features reach ten: without a unit, an update would change w0 s1 by
    millions and the other scores by a few units. With a unit of about C both change by similar amounts. The paper has
    no unit, which is a unit of 1.

    Args:
        unit: Scale of the first model's score.
        start: w0 before training. With start = unit the re-ranker starts as the first model.

    Raises:
        InputError: `unit` is not positive, or `start` is not finite.
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
        """Create w0 (1,); its size does not depend on the arguments."""
        self.weight = nn.Parameter(torch.full((1,), float(self.start)))

    def forward(self, batch: Batch, labels: Tensor, first: Tensor) -> Tensor:
        """Return w0 * first / unit (B, K)."""
        return self.weight * (first / self.unit)


class LocalFeatures(LocalScore):
    """The score of local features with new weights. Re-ranking 2 of Kazama & Torisawa 2007, §6.3.

    The features are "the same local features as the first model"; the score of the first model is not used.

    Args:
        scorer: Maps a batch to the Lattice in which candidates are scored.
    """

    def __init__(self, scorer: SparseLinear) -> None:
        super().__init__()
        self.scorer = scorer

    def allocate(self, n_node: int, n_edge: int, n_labels: int) -> None:
        """Create the scorer's weights, all zero."""
        self.scorer.allocate(n_node, n_edge, n_labels)

    def forward(self, batch: Batch, labels: Tensor, first: Tensor) -> Tensor:
        """Return the scores (B, K) of the label sequences in the scorer's lattice."""
        return path_score(self.scorer(batch), labels)


class LocalSum(LocalScore):
    """The sum of several local scores, whose weights are learned together.

    The sum of `FirstScore` and `LocalFeatures` is a variant of re-ranking 2 that Kazama & Torisawa (2007) do not try:
    the score of the first model is corrected by local features that are trained on the lists.

    Args:
        parts: The local scores, at least one.

    Raises:
        InputError: `parts` is empty.
    """

    def __init__(self, parts: list[LocalScore]) -> None:
        super().__init__()
        if not parts:
            raise InputError("LocalSum: parts is empty; expected at least one")
        self.parts = nn.ModuleList(parts)

    def allocate(self, n_node: int, n_edge: int, n_labels: int) -> None:
        """Create the weights of each part."""
        for part in self.parts:
            cast(LocalScore, part).allocate(n_node, n_edge, n_labels)

    def forward(self, batch: Batch, labels: Tensor, first: Tensor) -> Tensor:
        """Return the sums (B, K) of the scores of the parts."""
        return torch.stack([part(batch, labels, first) for part in self.parts]).sum(0)


def local_scores(scorer: LocalScore, batch: Batch, candidates: Candidates) -> Tensor:
    """Return the local scores (B, K) of a first model's candidates; any finite number where not valid."""
    return scorer(batch, candidates.labels, candidates.scores.where(candidates.valid, 0))


def with_local_scores(scorer: LocalScore, batch: Batch, candidates: Candidates) -> Candidates:
    """Return a first model's candidates, in its order, with their local scores; -inf where not valid."""
    local = local_scores(scorer, batch, candidates)
    return candidates._replace(scores=local.where(candidates.valid, -torch.inf))
