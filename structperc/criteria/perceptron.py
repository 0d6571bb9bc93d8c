"""The perceptron criterion."""

import torch
from torch import Tensor

from structperc.criteria.base import RivalCriterion, best, is_gold
from structperc.structures import Scored


class Perceptron(RivalCriterion):
    """Acts when the best candidate is wrong; the rival is that candidate. Collins 2002.

    loss = [y' != y*] (s(y') - s(y*)) with y' the best candidate under the total score. On a separable set,
    one sequence per step, there are at most R^2 / delta^2 updates (R: longest difference of feature vectors,
    delta: margin of the best unit vector).
    """

    def rival(self, scored: Scored) -> Tensor:
        """-> (B,) index of the best candidate, gold or not."""
        return best(scored, torch.ones_like(scored.candidates.valid))

    def acts(self, scored: Scored) -> Tensor:
        """-> (B,) bool, True where the best candidate is not gold."""
        right = is_gold(scored).gather(1, self.rival(scored)[:, None]).squeeze(1)
        return ~right & scored.candidates.valid[:, 0]
