"""The loss of the perceptron, as a criterion.

The margin perceptron, and with non-local features the candidate algorithm.
"""

import torch
from torch import Tensor

from structperc.criteria.base import ComparisonUnit, PairwiseLoss, UpdateRule, best, check_unit, is_gold
from structperc.errors import InputError
from structperc.structures import Scored


class PerceptronLoss(PairwiseLoss):
    """Asks for an update when the best candidate is wrong; the rival is that candidate. Collins 2002.

    loss = [y' != y*] (s(y') - s(y*)) with y' the best candidate under the total score. On a separable set,
    one sequence per step, there are at most R^2 / delta^2 updates (R: longest difference of feature vectors,
    delta: margin of the best unit vector). This is the perceptron's loss; `structperc.optim.Perceptron` is its
    step.
    """

    def rule(self) -> UpdateRule:
        """Return that the best labelling is the rival, whatever the gap."""
        return UpdateRule(other=False, should_update=_always)

    def rival(self, scored: Scored) -> tuple[Tensor, Tensor]:
        """Choose the best candidate, which is a rival unless it is gold."""
        valid = scored.candidates.valid
        index = best(scored, valid)
        return index, (valid & ~is_gold(scored)).gather(1, index[:, None]).squeeze(1)

    def should_update(self, gap: Tensor) -> Tensor:
        """Ask for an update always: a rival is a mistake."""
        return torch.ones_like(gap, dtype=torch.bool)


def _always(gap: float, limit: float) -> bool:
    return True


class MarginLoss(PairwiseLoss):
    """Acts when gold leads its best rival by no more than C. Kazama & Torisawa 2007, Algorithms 3.1 and 4.1.

    With local features alone, and a search for the two best labellings, it is the margin perceptron (3.1). With
    non-local features, and a search for the n best by local score, it is the candidate algorithm (4.1): scores
    are total ones, the rival is the best by total score among the n, and updates move all weights.

    loss = [gap <= C] (s(rival) - s(y*)), rival = best candidate that is not gold (the first if it is wrong,
    else the second), gap = s(y*) - s(rival). The loss may be negative: it is the update that counts.

    On a separable set the number of updates is at most (2C + R^2) / delta^2 and the margin reached at least
    delta C / (2C + R^2), one sequence per step. For steps that sum the updates of up to m sequences decided
    with the same weights w: let step k update U_k <= m sequences with sum g_k of their differences. Then
    w.u grows by >= U_k delta for the best unit vector u, and |w|^2 by 2 w.g_k + |g_k|^2 <= 2C U_k + (U_k R)^2
    <= U_k (2C + m R^2). With N = sum U_k: (N delta)^2 <= |w|^2 <= N (2C + m R^2), so N <= (2C + m R^2) / delta^2.

    Args:
        C: margin in units of the score; the paper tries 500 ... 32000 with whole documents as sequences.
        unit: what gold is compared in: each "sequence", or for documents each "sentence" of one by itself. Sentences
            are then independent of each other: a pair of labels on both sides of their boundary scores 0.

    Raises:
        InputError: C is negative, unknown unit.
        ValueError: the search gives fewer than two candidates.
    """

    min_candidates = 2

    def __init__(self, C: float, unit: ComparisonUnit = "sequence") -> None:
        super().__init__()
        if not C >= 0:
            raise InputError(f"MarginLoss: C must be >= 0, got {C}")
        check_unit(self, "unit", unit)
        self.C, self.unit, self.independent_sentences = C, unit, unit == "sentence"

    def rule(self) -> UpdateRule:
        """Return that the best labelling but gold is the rival, and must stay more than C behind."""
        return UpdateRule(other=True, should_update=_within, limit=self.C, unit=self.unit)

    def rival(self, scored: Scored) -> tuple[Tensor, Tensor]:
        """Choose the best candidate that is not gold."""
        others = ~is_gold(scored)
        return best(scored, others), (scored.candidates.valid & others).any(1)

    def should_update(self, gap: Tensor) -> Tensor:
        """Ask for an update when the score of the rival comes within C of that of gold."""
        return gap <= self.C


def _within(gap: float, limit: float) -> bool:
    return gap <= limit
