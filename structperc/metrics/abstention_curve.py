"""Abstention: scores of the segments that are kept when those of low probability are dropped."""

from typing import NamedTuple

import torch
from torch import Tensor

from structperc.errors import InputError
from structperc.metrics.f_measure import f_measure


class AbstentionPoint(NamedTuple):
    """Scores of the n most probable of all predicted segments."""

    n: int
    correct: int
    gold: int
    total: int  # number of predicted segments
    probability: float  # the lowest of those that are kept

    @property
    def share(self) -> float:
        """The share of the predicted segments that are kept."""
        return self.n / max(self.total, 1)

    @property
    def precision(self) -> float:
        """The share of the kept segments that are right; 0.0 without any."""
        return self.correct / max(self.n, 1)

    @property
    def recall(self) -> float:
        """The share of the gold segments that are kept; 0.0 without any."""
        return self.correct / max(self.gold, 1)

    @property
    def f1(self) -> float:
        """The F1 score of the kept segments."""
        return f_measure(correct=self.correct, found=self.n, gold=self.gold)


def abstention_curve(probabilities: Tensor, correct: Tensor, gold: int, points: int = 20) -> list[AbstentionPoint]:
    """Return the scores of the kept segments when they are dropped in order of ascending probability.

    This is the risk-coverage curve of selective classification (El-Yaniv & Wiener 2010) for segments: precision is 1
    minus the risk, the share of kept segments is the coverage. Of segments with equal probabilities, all or none are
    dropped. Returns the points, by falling share; none without segments.

    Args:
        probabilities: (S,), of the predicted segments.
        correct: (S,) bool, True for gold segments.
        points: number of shares 1, (points - 1) / points, ..., 1 / points of kept segments; fewer points are returned
            if some of them are equal.

    Raises:
        InputError: `correct` is not bool or has another shape, or `points` is below 1.

    Example:
        >>> import torch
        >>> from structperc.metrics.abstention_curve import abstention_curve
        >>> correct = torch.tensor([True, False, True, False])
        >>> curve = abstention_curve(torch.tensor([0.9, 0.3, 0.8, 0.6]), correct, gold=3, points=4)
        >>> [(one.share, round(one.precision, 2), round(one.recall, 2)) for one in curve]
        [(1.0, 0.5, 0.67), (0.75, 0.67, 0.67), (0.5, 1.0, 0.67), (0.25, 1.0, 0.33)]
    """
    if correct.dtype != torch.bool or correct.shape != probabilities.shape or points < 1:
        shapes = f"{correct.dtype} {tuple(correct.shape)}, {tuple(probabilities.shape)} and {points}"
        raise InputError(f"give correct (S,) bool, probabilities (S,) and points >= 1, got {shapes}")
    ordered, order = probabilities.double().sort(descending=True)
    right, total = correct[order].long().cumsum(0).tolist(), len(ordered)
    found: dict[int, AbstentionPoint] = {}
    for step in range(points, 0, -1) if total else ():
        lowest = ordered[max(0, -(-step * total // points) - 1)]
        n = int((ordered >= lowest).sum())  # with all of the same probability
        found[n] = AbstentionPoint(n, right[n - 1], gold, total, float(lowest))
    return list(found.values())
