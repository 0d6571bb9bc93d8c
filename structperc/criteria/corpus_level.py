"""Criteria that are no sum over sequences: one objective over counts of the whole corpus."""

from abc import abstractmethod
from typing import Any

import torch
from torch import Tensor

from structperc.criteria.base import Criterion
from structperc.errors import InputError
from structperc.structures import Scored


class CorpusCriterion(Criterion):
    """An objective over S soft counts summed over the whole corpus, which no mean over batches equals.

    A subclass gives `n_counts` = S, `counts` and `objective`. The loss of a sequence is linear in its counts,
    counts @ c with c = d objective / d totals held constant: at the totals of the present weights the gradients of
    all sequences add up to the gradient of the objective. Losses do not: their sum is no value to watch.

    Exact: set `totals` to the counts of the corpus under the present weights, summed in a pass without gradients.
    In batches: while `totals` is None they are estimated from recent batches, the present one included, whose weight
    falls by the factor `memory` from batch to batch; scaled up to `corpus_size` sequences, or not at all while that
    is None. The steps then differ from the exact gradient: these counts are noisy, and of earlier weights.

    Args:
        memory: factor by which earlier batches lose weight, 0 <= memory < 1; 0: the present batch alone.

    Raises:
        InputError: memory is outside of this range.
    """

    corpus_level = True
    n_counts: int

    totals: Tensor | None  # (S,) float64
    corpus_size: int | None  # number of sequences
    recent: Tensor  # (S,) float64, decayed sums of counts
    recent_size: Tensor  # () float64, decayed number of sequences

    def __init__(self, memory: float = 0.95) -> None:
        super().__init__()
        if not 0 <= memory < 1:
            raise InputError(f"{type(self).__name__}: memory must be >= 0 and < 1, got {memory}")
        self.memory = memory
        self.corpus_size = None
        self.register_buffer("totals", None, persistent=False)
        self.register_buffer("recent", torch.zeros(self.n_counts, dtype=torch.float64))
        self.register_buffer("recent_size", torch.zeros((), dtype=torch.float64))

    @abstractmethod
    def counts(self, scored: Scored) -> Tensor:
        """Return the soft counts (B, S) of each sequence, differentiable."""

    @abstractmethod
    def objective(self, totals: Tensor) -> Tensor:
        """Return what is minimised, a differentiable scalar, from the counts of the corpus (S,)."""

    def defined(self, totals: Tensor) -> bool:
        """Return whether the objective has a value at these totals (S,); batches before it has ask for no update."""
        return True

    def judge(self, scored: Scored) -> tuple[Tensor, Tensor]:
        """Return losses (B,), and which sequences count (B,) bool. Training keeps the counts while totals is None."""
        counts = self.counts(scored)
        rates = self.rates(self.estimate(counts.detach()) if self.totals is None else self.totals)
        return counts @ rates.to(counts), (counts.detach() != 0).any(1) & rates.any()

    def rates(self, totals: Tensor) -> Tensor:
        """Return d objective / d totals (S,) at totals (S,), a constant; 0 where the objective is not defined."""
        if not self.defined(totals):
            return torch.zeros_like(totals)
        with torch.enable_grad():
            totals = totals.detach().clone().requires_grad_()
            return torch.autograd.grad(self.objective(totals), totals)[0]

    def estimate(self, counts: Tensor) -> Tensor:
        """Return totals (S,) float64 as recent batches and the counts (B, S) of this one suggest them."""
        recent = self.memory * self.recent + counts.double().sum(0)
        size = self.memory * self.recent_size + len(counts)
        if self.training:
            self.recent, self.recent_size = recent, size
        return recent if self.corpus_size is None else recent * (self.corpus_size / size)

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *args: Any) -> None:
        """Checkpoints hold what recent batches counted; saved models, which hold weights alone, leave it as it is."""
        for name in ("recent", "recent_size"):
            state_dict.setdefault(prefix + name, getattr(self, name))
        super()._load_from_state_dict(state_dict, prefix, *args)
