"""Local and non-local weights learned together on n-best candidates."""

from typing import Literal

import torch
from torch import Tensor

from structperc.criteria.base import Criterion, best, check_candidates, highest, is_gold, local_gap, total_gap
from structperc.errors import InputError
from structperc.structures import Scored


class LocalAndNonlocal(Criterion):
    """Two margins: of the total model among the candidates, of the local model. Kazama & Torisawa 2007, Alg. 4.2.

    (A) The rival is the best candidate by total score that is not gold, the gap that of the total scores. When
        gap <= C, loss = -gap: the weights of all features move along Phi(gold) - Phi(rival).
    (B) The rival is the best candidate by local score that is not gold, the gap that of the local scores. When
        gap <= C_local, loss = -gap: the weights of the local features alone move.

    At most one of the two acts on a sequence; the other is asked only where the first does nothing. (B) keeps the
    local model so good that gold is among the candidates: without it (`Margin`, the paper's Algorithm 4.1) gold may
    stay outside of the list for good, where no total score can choose it.

    On a set that local features separate by delta, one sequence per step, there are at most
    (2 max(C, C_local) + R^2) / delta^2 updates, and gold then leads all other candidates by a total margin of at
    least delta C / (2C + R^2) for C = C_local (the paper's appendix A).

    Args:
        C: total margin, the paper's C^a.
        C_local: local margin, the paper's C^l; the paper sets both alike, which is the default.
        local: when (B) asks for an update. "aggressive": as long as the local margin is missing; "conservative":
            only while gold is not among the candidates.
        first: which comes first, (A) "total" or (B) "local".

    Raises:
        InputError: a margin is negative, an option is not one of those named.
        ValueError: the search gives fewer than two candidates.
    """

    rivals_needed = 2

    def __init__(
        self,
        C: float,
        C_local: float | None = None,
        local: Literal["aggressive", "conservative"] = "aggressive",
        first: Literal["total", "local"] = "total",
    ) -> None:
        super().__init__()
        for name, value in (("C", C), ("C_local", C if C_local is None else C_local)):
            if not value >= 0:
                raise InputError(f"LocalAndNonlocal: {name} must be >= 0, got {value}")
        if local not in ("aggressive", "conservative"):
            raise InputError(f"LocalAndNonlocal: local must be aggressive or conservative, got {local!r}")
        if first not in ("total", "local"):
            raise InputError(f"LocalAndNonlocal: first must be total or local, got {first!r}")
        self.C, self.C_local, self.local, self.first = C, C_local, local, first

    def judge(self, scored: Scored) -> tuple[Tensor, Tensor]:
        """Return losses (B,), 0 where neither (A) nor (B) acts, and where one of them acts (B,) bool."""
        check_candidates(self, scored)
        valid = scored.candidates.valid
        gold = is_gold(scored) & valid
        rivals = ~gold & valid
        exists = rivals.any(1)
        total = total_gap(scored, best(scored, rivals))
        local = local_gap(scored, highest(scored.candidate_scores, rivals))
        in_total, in_local = exists & (total.detach() <= self.C), exists & self._asks_local(local.detach(), gold)
        if self.first == "total":
            losses = torch.where(in_total, -total, torch.where(in_local, -local, 0.0))
        else:
            losses = torch.where(in_local, -local, torch.where(in_total, -total, 0.0))
        return losses, in_total | in_local

    def _asks_local(self, gap: Tensor, gold: Tensor) -> Tensor:
        if self.local == "conservative":
            return ~gold.any(1)
        return gap <= (self.C if self.C_local is None else self.C_local)
