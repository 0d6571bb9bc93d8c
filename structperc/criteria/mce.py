"""Minimum classification error (MCE): a smooth count of wrong sequences, with its measures and smoothings.

A measure d is the lead of the rivals over the gold sequence, d >= 0 for a mistake; a smoothing of d replaces the 0-1
loss.
"""

import math
from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn

from structperc.criteria.base import Criterion, best, check_candidates, is_gold, total_gap
from structperc.criteria.wrong_paths import (
    log_lead_of_wrong_paths,
    log_number_of_wrong_paths,
    log_sum_of_wrong_paths,
)
from structperc.errors import InputError
from structperc.structures import Scored


class Smoothing(nn.Module, ABC):
    """Base class of smoothings of the 0-1 loss. Suzuki, McDermott & Isozaki 2006, Eq. 8.

    `forward(d)` returns l(d), an increasing function, element by element.

    Args:
        alpha: steepness; larger values are closer to a step function.
        beta: offset; the step is at d = -beta / alpha.

    Raises:
        InputError: alpha is not positive.
    """

    def __init__(self, alpha: float = 1.0, beta: float = 0.0) -> None:
        super().__init__()
        if not alpha > 0:
            raise InputError(f"{type(self).__name__}: alpha must be > 0, got {alpha}")
        self.alpha, self.beta = alpha, beta

    @abstractmethod
    def forward(self, d: Tensor) -> Tensor:
        """Return l(d), in the shape of d; for infinite d the limit, with gradient 0 if l is flat there."""


class Sigmoid(Smoothing):
    """Sigmoid smoothing, between 0 and 1: large errors have little weight.

    l_sig(d) = 1 / (1 + exp(-alpha d - beta)). Suzuki, McDermott & Isozaki 2006, Eq. 8.
    """

    def forward(self, d: Tensor) -> Tensor:
        """Return l_sig(d); its derivative is alpha l (1 - l)."""
        return torch.sigmoid(self.alpha * d + self.beta)

    def complement(self, d: Tensor) -> Tensor:
        """Return 1 - l_sig(d), which keeps its digits where l_sig rounds to 1."""
        return torch.sigmoid(-self.alpha * d - self.beta)


class Logistic(Smoothing):
    """Logistic smoothing, unbounded and convex in d.

    l_log(d) = log(1 + exp(alpha d + beta)) / alpha; its derivative is l_sig, see `Sigmoid`.

    Args:
        alpha: steepness; larger values are closer to max(0, d + beta / alpha).
        beta: offset; the bend is at d = -beta / alpha.
    """

    def forward(self, d: Tensor) -> Tensor:
        """Return l_log(d), which is computed without overflow; its derivative is l_sig."""
        # not softplus, which leaves out the small term of large sums
        return -nn.functional.logsigmoid(-self.alpha * d - self.beta) / self.alpha


class Measure(nn.Module, ABC):
    """Base class of misclassification measures. Suzuki, McDermott & Isozaki 2006, Eq. 5 to 7.

    `forward(scored)` returns d (B,), and a mask (B,) bool of the sequences with a rival, which is a wrong path or
    candidate. d is differentiable, and 0 without a rival.
    """

    min_candidates = 0  # candidates the search must deliver per sequence
    supports_incomplete = False  # True if it compares with sets of allowed labels, `Scored.allowed`

    @abstractmethod
    def forward(self, scored: Scored) -> tuple[Tensor, Tensor]:
        """Return d (B,), and the mask (B,) bool of the sequences with a rival."""


class MaxMeasure(Measure):
    """Misclassification measure of the best wrong candidate.

    d = -s(y*) + max over y != y* of s(y), in total scores. Suzuki, McDermott & Isozaki 2006, Eq. 5 (psi = inf). The
    maximum runs over the candidates: it is exact for local scores and a search for two candidates. With incomplete
    labels, y* is the best path of allowed labels, and rivals have a label that is not allowed.
    """

    min_candidates = 2
    supports_incomplete = True

    def forward(self, scored: Scored) -> tuple[Tensor, Tensor]:
        """Return d (B,) for the strongest rival, and the mask (B,) bool of the sequences with one."""
        others = scored.candidates.valid & ~is_gold(scored)
        exists = others.any(1)
        return torch.where(exists, -total_gap(scored, best(scored, others)), 0.0), exists


class SoftMaxMeasure(Measure):
    """Misclassification measure of all wrong paths, by a soft maximum.

    d = -s(y*) + 1/psi log( A sum over y != y* of exp(psi s(y)) ). Suzuki, McDermott & Isozaki 2006, Eq. 7. The sum runs
    over all legal paths except y*, so that it needs no candidates; A = 1 / their number, which is 1 / (L^T - 1) without
    a tag scheme. It uses local scores only. The gradient (Eq. 12) is the expectation of Phi(y) - Phi(y*) under p(y) ~
    exp(psi s(y)), y != y*. As psi grows, d approaches that of `MaxMeasure`. With incomplete labels, s(y*) is the same
    soft maximum over all paths of allowed labels, and rivals have a label that is not allowed.

    With A = 1, psi = 1 and the smoothing Logistic(1, 0) the criterion is the loss of a CRF (the paper's appendix). With
    A, d compares with the average rival: for small psi it is far below 0 for long sequences, where a sigmoid is flat.

    Args:
        psi: sharpness of the maximum; larger values give the best rivals more weight.
        normalised: if True, A is as above; else A = 1.

    Raises:
        InputError: psi is not positive, or infinite.
    """

    supports_incomplete = True

    def __init__(self, psi: float = 1.0, normalised: bool = True) -> None:
        super().__init__()
        _check_psi(self, psi)
        self.psi, self.normalised = psi, normalised

    def forward(self, scored: Scored) -> tuple[Tensor, Tensor]:
        """Return d (B,) for the soft maximum of all rivals, and the mask (B,) bool of the sequences with one."""
        if scored.allowed is not None:
            lead = log_lead_of_wrong_paths(scored.lattice, scored.allowed, self.psi, self.normalised)
            exists = lead.detach() > -torch.inf
            return torch.where(exists, lead / self.psi, 0.0), exists
        total = log_sum_of_wrong_paths(scored.lattice, scored.gold, self.psi)
        exists = total.detach() > -torch.inf
        if self.normalised:
            total = total - log_number_of_wrong_paths(scored.lattice).to(total.dtype)
        return torch.where(exists, total / self.psi, 0.0), exists


class PowerMeasure(Measure):
    """Base class of the two measures of the appendix of Suzuki et al. 2006: a power mean over the wrong candidates.

    With incomplete labels, y* is the best path of allowed labels, and wrong candidates have a label that is not
    allowed.

    Args:
        psi: sharpness of the maximum; larger values give the best rivals more weight.

    Raises:
        InputError: psi is not positive, or infinite.
    """

    min_candidates = 2
    supports_incomplete = True

    def __init__(self, psi: float = 1.0) -> None:
        super().__init__()
        _check_psi(self, psi)
        self.psi = psi


class PowerMean(PowerMeasure):
    """Misclassification measure by the power mean of probabilities.

    d = -g* + (A sum over rivals of g^psi)^(1/psi), g = p(y). Suzuki, McDermott & Isozaki 2006, appendix. Rivals are the
    wrong candidates, A is 1 / their number, scores are total scores. Differs: the paper leaves g open though powers
    require g >= 0; here g is the probability exp(s(y)) / (sum over y* and rivals of exp(s)), so that d is between -1
    and 1.
    """

    def forward(self, scored: Scored) -> tuple[Tensor, Tensor]:
        """Return d (B,) for the power mean of the rivals, and the mask (B,) bool of the sequences with one."""
        leads, exists = _leads(scored)
        gold = -torch.cat([torch.zeros_like(leads[:, :1]), leads], 1).logsumexp(1)
        return torch.where(exists, (_log_mean(leads, self.psi) + gold).exp() - gold.exp(), 0.0), exists


class PowerRatio(PowerMeasure):
    """Misclassification measure by the ratio of a power mean to the value of the gold sequence.

    d = (A sum over rivals of g^psi)^(1/psi) / g*, g = exp(s(y)) > 0. Suzuki, McDermott & Isozaki 2006, appendix. Rivals
    are the wrong candidates, A is 1 / their number, scores are total scores. A common factor of all g cancels: they may
    be probabilities. d is positive, and 1 if g* equals the mean of the rivals: a smoothing with beta = -alpha has its
    step there. Beyond the root of the largest float d is constant, with gradient 0.
    """

    def forward(self, scored: Scored) -> tuple[Tensor, Tensor]:
        """Return d (B,) for the power ratio of the rivals, and the mask (B,) bool of the sequences with one."""
        leads, exists = _leads(scored)
        return torch.where(exists, _log_mean(leads, self.psi).clamp(max=_max_exponent(leads)).exp(), 0.0), exists


def _leads(scored: Scored) -> tuple[Tensor, Tensor]:
    """Return leads of the rivals (B, K) in total score, -inf elsewhere, and a mask (B,) of sequences with rivals."""
    rivals = scored.candidates.valid & ~is_gold(scored)
    gold = scored.gold_scores + scored.gold_nonlocal
    leads = scored.candidate_scores + scored.candidate_nonlocal - gold.unsqueeze(1)
    exists = rivals.any(1)
    # 0 in rows without rivals: the logarithm of an empty sum has no gradient
    leads = leads.where(rivals, torch.where(exists, -torch.inf, 0.0).unsqueeze(1))
    return leads.clamp(max=_max_exponent(leads)), exists  # leads over impossible gold paths are infinite


def _max_exponent(leads: Tensor) -> float:
    """Return the logarithm of the root of the largest float."""
    return math.log(torch.finfo(leads.dtype).max) / 2


def _log_mean(leads: Tensor, psi: float) -> Tensor:
    """Return log( A sum exp(psi lead) )^(1/psi) (B,) over leads (B, K) > -inf."""
    number = (leads.detach() > -torch.inf).sum(1)
    return ((psi * leads).logsumexp(1) - number.log()) / psi


def _check_psi(measure: Measure, psi: float) -> None:
    if not 0 < psi < math.inf:
        raise InputError(f"{type(measure).__name__}: psi must be > 0 and finite, got {psi}; MaxMeasure is psi = inf")


class MCELoss(Criterion):
    """Minimum classification error loss, l(d). Suzuki, McDermott & Isozaki 2006, Eq. 9 and 10.

    The loss is not divided by N, and the prior is added elsewhere. Its gradient is l'(d) times that of d. With
    MaxMeasure it is a perceptron step against the best rival on every sequence, weighted by how close the decision
    was. A sequence whose only legal path is the gold path has loss 0 and no update.

    Args:
        measure: misclassification measure d; by default MaxMeasure() (Eq. 5).
        smoothing: smoothing l; by default Sigmoid(), the paper's MCE(sig). Logistic() is its MCE(log).

    Raises:
        ValueError: the search gives fewer candidates than the measure compares.

    Example:
        >>> import torch
        >>> from structperc.chain import kbest
        >>> from structperc.criteria import MCELoss
        >>> from structperc.criteria.base import score_candidates
        >>> from structperc.structures import Lattice
        >>> lattice = Lattice(torch.tensor([[[1.0, 3.0]]]).log(), torch.zeros(1, 1, 2, 2), torch.tensor([1]))
        >>> MCELoss()(score_candidates(lattice, torch.tensor([[1]]), kbest(lattice, k=2)))  # 1 / (1 + 3)
        tensor([0.2500])
    """

    measure: Measure
    smoothing: Smoothing

    def __init__(self, measure: Measure | None = None, smoothing: Smoothing | None = None) -> None:
        super().__init__()
        self.measure, self.smoothing = measure or MaxMeasure(), smoothing or Sigmoid()
        self.min_candidates = self.measure.min_candidates
        self.supports_incomplete = self.measure.supports_incomplete
        self.supports_segments = self.min_candidates > 0

    def losses_and_updates(self, scored: Scored) -> tuple[Tensor, Tensor]:
        """Return losses (B,), and the update mask (B,) bool: True where there is a rival."""
        check_candidates(self, scored)
        d, exists = self.measure(scored)
        return torch.where(exists, self.smoothing(d), 0.0), exists
