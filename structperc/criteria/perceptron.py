"""The loss of the perceptron, as a criterion."""

import torch
from torch import Tensor

from structperc.criteria.base import RivalCriterion, Rule, best, is_gold
from structperc.structures import Scored


class Perceptron(RivalCriterion):
    """Asks for an update when the best candidate is wrong; the rival is that candidate. Collins 2002.

    loss = [y' != y*] (s(y') - s(y*)) with y' the best candidate under the total score. On a separable set,
    one sequence per step, there are at most R^2 / delta^2 updates (R: longest difference of feature vectors,
    delta: margin of the best unit vector). This is the perceptron's loss; `structperc.optim.Perceptron` is its step.
    """

    def rule(self) -> Rule:
        """Return that the best labelling is the rival, whatever the gap."""
        return Rule(other=False, asks=_always)

    def rival(self, scored: Scored) -> tuple[Tensor, Tensor]:
        """Choose the best candidate, which is a rival unless it is gold."""
        valid = scored.candidates.valid
        index = best(scored, valid)
        return index, (valid & ~is_gold(scored)).gather(1, index[:, None]).squeeze(1)

    def asks(self, gap: Tensor) -> Tensor:
        """Ask for an update always: a rival is a mistake."""
        return torch.ones_like(gap, dtype=torch.bool)


def _always(gap: float, limit: float) -> bool:
    return True
