"""Objectives of a whole corpus, and MCE-F: the F score of soft counts of segments or tokens."""

import math
from abc import ABC, abstractmethod
from typing import Any

import torch
from torch import Tensor, nn

from structperc.chain.lattices import token_mask
from structperc.chain.minimum_risk import scale
from structperc.chain.segments import (
    Segments,
    log_partition_with_segment,
    log_partition_without_segment,
    max_score_with_segment,
    max_score_without_segment,
)
from structperc.chain.viterbi import best_before_and_after
from structperc.criteria.base import Criterion, check_candidates, highest, is_gold
from structperc.criteria.mce import Sigmoid, Smoothing
from structperc.data.labels import LabelSet, segment_boundaries
from structperc.errors import InputError
from structperc.structures import Lattice, Scored


class CorpusCriterion(Criterion):
    """Base class of criteria that are not a sum over sequences.

    The objective is a function of S soft counts, summed over the whole corpus. A subclass sets `n_counts` = S and
    defines `counts` and `objective`. The loss of a sequence is linear in its counts, counts @ c with the constant
    c = d objective / d totals: if totals are the counts under the same weights, the gradients of all sequences add up
    to the gradient of the objective. The sum of the losses is meaningless.

    Exact: set `totals` to the counts of the corpus, summed in a pass without gradients.
    In batches: while `totals` is None, they are estimated from the current and recent batches, whose weight
    falls by the factor `memory` from batch to batch, and scaled to `corpus_size` sequences unless that is None. The
    steps then differ from the exact gradient, since these counts are noisy and were computed with earlier weights.

    Args:
        memory: factor by which earlier batches lose weight, 0 <= memory < 1; 0: only the current batch counts.

    Raises:
        InputError: memory is out of range.
    """

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
        self.register_load_state_dict_pre_hook(_keep_counts)
        self.register_buffer("totals", None, persistent=False)
        self.register_buffer("recent", torch.zeros(self.n_counts, dtype=torch.float64))
        self.register_buffer("recent_size", torch.zeros((), dtype=torch.float64))

    @abstractmethod
    def counts(self, scored: Scored) -> Tensor:
        """Return the soft counts (B, S) of each sequence, differentiable."""

    @abstractmethod
    def objective(self, totals: Tensor) -> Tensor:
        """Return the value to minimise, a differentiable scalar, given the counts of the corpus (S,)."""

    def defined(self, totals: Tensor) -> bool:
        """Return True if the objective has a value at these totals (S,); batches without one make no update."""
        return True

    def losses_and_updates(self, scored: Scored) -> tuple[Tensor, Tensor]:
        """Return losses (B,) and the update mask (B,) bool; in training mode, store the counts if totals is None."""
        counts = self.weighted_counts(scored)
        rates = self.rates(self.estimate(counts.detach()) if self.totals is None else self.totals)
        return counts @ rates.to(counts), (counts.detach() != 0).any(1) & rates.any()

    def weighted_counts(self, scored: Scored) -> Tensor:
        """Return the soft counts (B, S) times the weights of the sequences."""
        counts = self.counts(scored)
        if scored.weights is None or not scored.gold.shape[1]:
            return counts
        return counts * scored.weights[:, :1].to(counts.dtype)

    def weighted(self, losses: Tensor, scored: Scored) -> Tensor:
        """Return the losses (B,): weights are in the counts."""
        return losses

    def rates(self, totals: Tensor) -> Tensor:
        """Return d objective / d totals (S,) at totals (S,), a constant; 0 where the objective is not defined."""
        if not self.defined(totals):
            return torch.zeros_like(totals)
        with torch.enable_grad():
            totals = totals.detach().clone().requires_grad_()
            return torch.autograd.grad(self.objective(totals), totals)[0]

    def estimate(self, counts: Tensor) -> Tensor:
        """Return totals (S,) float64 estimated from recent batches and the counts (B, S) of this one."""
        recent = self.memory * self.recent + counts.double().sum(0)
        size = self.memory * self.recent_size + len(counts)
        if self.training:
            self.recent, self.recent_size = recent, size
        return recent if self.corpus_size is None else recent * (self.corpus_size / size)


def _keep_counts(criterion: CorpusCriterion, state: dict[str, Any], prefix: str, *_: Any) -> None:
    """Keep the counts of recent batches if the state has none: checkpoints contain them, saved models do not."""
    for name in ("recent", "recent_size"):
        state.setdefault(prefix + name, getattr(criterion, name))


class SoftCounts(nn.Module, ABC):
    """Base class of the units that `MCEFLoss` counts.

    `forward(labels, real, starts, label_set)` returns the units of label sequences. Two units are equal if they cover
    the same tokens and are of the same kind. Rows without real tokens have no units.
    """

    @abstractmethod
    def forward(self, labels: Tensor, real: Tensor, starts: Tensor, label_set: LabelSet) -> tuple[Segments, Tensor]:
        """Find the units of label sequences.

        Returns the tokens of U units, and their kinds (U,) int64 in 0..L-1.

        Args:
            labels: label numbers (B, T) int64.
            real: (B, T) bool, False in the padding.
            starts: (B, T) bool, True at the first token of each sentence.
        """


class SegmentCounts(SoftCounts):
    """Soft counts of segments, as in the evaluation; the kind is the type. Suzuki et al. 2006, Eq. 15."""

    def forward(self, labels: Tensor, real: Tensor, starts: Tensor, label_set: LabelSet) -> tuple[Segments, Tensor]:
        """Return the segments of the labels and their types (U,) int64."""
        first, last = segment_boundaries(labels, real, starts, label_set)
        rows, starts = first.nonzero().unbind(1)
        types = label_set.types.to(labels.device)[labels[rows, starts]]
        return Segments(rows, starts, last.nonzero()[:, 1] + 1), types


class TokenCounts(SoftCounts):
    """Soft counts of tokens inside segments; the kind is the label. Suzuki et al. 2006, Eq. 14."""

    def forward(self, labels: Tensor, real: Tensor, starts: Tensor, label_set: LabelSet) -> tuple[Segments, Tensor]:
        """Return the tokens inside segments, as segments of length 1, and their labels (U,) int64."""
        inside = label_set.types.to(labels.device)[labels.where(real, 0)] >= 0
        rows, tokens = (inside & real).nonzero().unbind(1)
        return Segments(rows, tokens, tokens + 1), labels[rows, tokens]


MIN_FOUND = 1e-6  # minimum share of gold units found in the objective


class MCEFLoss(CorpusCriterion):
    """Minimum classification error loss of the F score (MCE-F).

    The objective is (beta^2 FN + FP) / ((beta^2 + 1) TP) over the corpus; with true counts F_beta = 1 / (1 + that).

    Suzuki, McDermott & Isozaki 2006, Eq. 13-16. A unit s (a segment, or with TokenCounts a token) has
    d(s) = -(best score of a path with the gold labels on s) + (best score of a path with other labels on s), and

    * for every gold unit, TP counts 1 - l(d(s)) and FN counts l(d(s));
    * for every unit of y~ that is not a gold unit, FP counts l(d(s)); y~ is the best wrong path (the
      paper's substitute, for psi = inf, for all possible segments).

    Scores are local scores. As alpha grows, the counts tend to those of the Viterbi path; y~ is the second
    best path if that is right. The label after s is left open, as in Eq. 15: if s is B-X, I-X in the gold path, a path
    with these labels that continues with I-X counts as right, though its segment is longer. IOBES marks the end.

    Differs: TP is at least 10^-6 of the gold units, so that the objective stays finite.

    The paper has psi = inf and one rival y~. With a finite psi the best scores in d(s) are 1/psi log sum exp(psi score)
    over all paths of either kind (Eq. 7 without A, in Eq. 15): with psi = 1 and Sigmoid(1, 0), 1 - l(d(s)) is the
    probability of the gold labels on s. With more rivals, each unit that is in some rival and is not a gold unit counts
    once.

    Args:
        beta: weight of recall relative to precision, the paper's gamma; 1 is F1.
        smoothing: smoothing l, between 0 and 1 so that TP stays positive; by default Sigmoid().
        units: units that are counted; by default SegmentCounts().
        memory: see `CorpusCriterion`; batches before the first gold unit make no update.
        psi: sharpness of the soft maximum over paths; None is infinite.
        rivals: number of wrong candidates whose units count as false positives; `search.k` must be larger.

    Raises:
        InputError: beta or psi is not positive, rivals < 1, the smoothing is not a Sigmoid; in `allocate`: labels
            without segments; in `objective`: a corpus without segments.
        ValueError: the search gives fewer than rivals + 1 candidates.

    Example:
        >>> import torch
        >>> from structperc.chain import kbest
        >>> from structperc.criteria import MCEFLoss
        >>> from structperc.criteria.base import score_candidates
        >>> from structperc.data import LabelSet
        >>> from structperc.structures import Lattice
        >>> criterion = MCEFLoss()
        >>> criterion.allocate(LabelSet(("O", "B-PER"), "IOB2"))
        >>> lattice = Lattice(torch.tensor([[[1.0, 3.0]]]).log(), torch.zeros(1, 1, 2, 2), torch.tensor([1]))
        >>> criterion.counts(score_candidates(lattice, torch.tensor([[1]]), kbest(lattice, k=2)))  # TP, FN, FP
        tensor([[0.7500, 0.2500, 0.0000]])
    """

    supports_segments = True
    n_counts = 3  # TP, FN, FP

    smoothing: Sigmoid
    units: SoftCounts
    labels: LabelSet

    def __init__(
        self,
        beta: float = 1.0,
        smoothing: Smoothing | None = None,
        units: SoftCounts | None = None,
        memory: float = 0.95,
        psi: float | None = None,
        rivals: int = 1,
    ) -> None:
        super().__init__(memory)
        if not beta > 0:
            raise InputError(f"MCEFLoss: beta must be > 0, got {beta}")
        if not isinstance(smoothing, Sigmoid | None):
            raise InputError(f"MCEFLoss: smoothing must be a Sigmoid, between 0 and 1, got {type(smoothing).__name__}")
        if psi is not None and not 0 < psi < math.inf:
            raise InputError(f"MCEFLoss: psi must be > 0 and finite, got {psi}; leave it out for the best paths")
        if rivals < 1:
            raise InputError(f"MCEFLoss: rivals must be >= 1, got {rivals}")
        self.psi, self.rivals, self.min_candidates = psi, rivals, rivals + 1
        self.beta, self.smoothing, self.units = beta, smoothing or Sigmoid(), units or SegmentCounts()
        self.counted = False  # True after the first gold unit

    def allocate(self, labels: LabelSet) -> None:
        """Set the labels whose segments are counted.

        Raises:
            InputError: the labels have no segments.
        """
        if not labels.type_names:
            raise InputError("MCEFLoss counts segments, but the labels have none: use MCELoss")
        self.labels = labels

    def counts(self, scored: Scored) -> Tensor:
        """Return TP, FN and FP of each sequence, (B, 3)."""
        check_candidates(self, scored)
        gold, extra = self._units(scored)
        d = _misclassification(scored.lattice, scored.gold, _concatenate(gold, extra), self.psi)
        right, wrong = self.smoothing.complement(d), self.smoothing(d)
        n, zeros = len(gold.rows), d.new_zeros(len(scored.gold))
        self.counted = self.counted or n > 0
        return torch.stack(
            [
                zeros.index_add(0, gold.rows, right[:n]),
                zeros.index_add(0, gold.rows, wrong[:n]),
                zeros.index_add(0, extra.rows, wrong[n:]),
            ],
            1,
        )

    def objective(self, totals: Tensor) -> Tensor:
        """Return the objective of Eq. 16, a scalar, from TP, FN and FP of the corpus (3,).

        It is NaN if training diverged and no sequence has a legal path.
        """
        if not self.defined(totals):
            if self.counted:
                return totals.sum() * math.nan
            raise InputError("MCEFLoss: the training data contain no segments; check data.scheme and the label column")
        found, missed, extra = totals
        found = torch.maximum(found, MIN_FOUND * (found + missed))
        return (self.beta**2 * missed + extra) / ((self.beta**2 + 1) * found)

    def defined(self, totals: Tensor) -> bool:
        """Return True if there is a gold unit, found or missed."""
        return bool(totals[0] + totals[1] > 0)

    def _units(self, scored: Scored) -> tuple[Segments, Segments]:
        """Return the gold units, and the units of the best wrong candidates that are not gold units, each once.

        A sequence without a legal path has no units.
        """
        real, starts = token_mask(scored.lattice), scored.starts
        if starts is None:
            starts = torch.arange(scored.gold.shape[1], device=scored.gold.device).expand_as(scored.gold) == 0
        legal = scored.candidates.valid.any(1, keepdim=True)
        gold, kinds = self.units(scored.gold, real & legal, starts, self.labels)
        known = self._keys(gold, kinds, real)
        others = scored.candidates.valid & ~is_gold(scored)
        new = [Segments(*(part[:0] for part in gold))]
        for _ in range(self.rivals):
            rival = highest(scored.candidate_scores, others)
            exists = others.any(1, keepdim=True)
            labels = scored.candidates.labels[torch.arange(len(rival), device=rival.device), rival]
            units, unit_kinds = self.units(labels, real & exists, starts, self.labels)
            keys = self._keys(units, unit_kinds, real)
            unknown = ~torch.isin(keys, known)
            new.append(Segments(*(part[unknown] for part in units)))
            known = torch.cat([known, keys])
            others = others.scatter(1, rival.unsqueeze(1), False)
        return gold, _concatenate(*new)

    def _keys(self, units: Segments, kinds: Tensor, real: Tensor) -> Tensor:
        """Return numbers (U,), equal for equal row, tokens and kind."""
        T = real.shape[1] + 1
        return ((units.rows * T + units.starts) * T + units.ends) * len(self.labels) + kinds


def _concatenate(*units: Segments) -> Segments:
    return Segments(*(torch.cat(parts) for parts in zip(*units, strict=True)))


def _misclassification(lattice: Lattice, gold: Tensor, units: Segments, psi: float | None) -> Tensor:
    """Return d of each unit (U,); -inf where only the gold labels are legal. Eq. 15 in Eq. 5, or in Eq. 7."""
    if psi is None:
        passes = None if lattice.segments is not None else best_before_and_after(lattice)
        return max_score_without_segment(lattice, gold, units, passes) - max_score_with_segment(
            lattice, gold, units, passes
        )
    scaled = scale(lattice, 1 / psi)
    return (log_partition_without_segment(scaled, gold, units) - log_partition_with_segment(scaled, gold, units)) / psi
