"""Misclassification measures d: by how much gold loses against its rivals; d >= 0 is a mistake.

Sums over all labellings but gold.
"""

import math
from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from structperc.chain import log_partition
from structperc.chain.lattices import expand_edges, full_precision, is_stationary, narrow_edges, token_mask
from structperc.criteria.base import best, is_gold, total_gap, without_path
from structperc.errors import InputError
from structperc.structures import Lattice, Scored


def log_sum_of_wrong_paths(lattice: Lattice, gold: Tensor, psi: float) -> Tensor:
    """Return the log (B,) of the sum over y != y* of exp(psi (s(y) - s(y*))), gold (B, T) int64.

    Differentiable once. It is -inf, without a gradient, where gold is the only legal labelling or none is, and for
    empty sequences; +inf, without a gradient, where gold is impossible and others are not.
    """
    lattice, gold = narrow_edges(lattice), gold.where(token_mask(lattice), 0)
    if not is_stationary(lattice.edge):  # edges may be the same for all tokens of a sequence, or for all sequences
        lattice = lattice._replace(edge=expand_edges(lattice))
    scaled = lattice._replace(unary=psi * full_precision(lattice.unary), edge=psi * full_precision(lattice.edge))
    leads, possible = _leads_over_gold(scaled, gold)
    scaled = scaled._replace(unary=leads)
    rivals = _departures(scaled, gold) if is_stationary(scaled.edge) else _detours(scaled, gold)
    total = log_partition(rivals)
    infinite = torch.where(without_path(lattice, ~possible), -torch.inf, torch.inf)
    total = total.where(possible, infinite.to(total.dtype))
    return total.where(lattice.lengths.to(total.device) > 0, -torch.inf)


@torch.no_grad()
def log_number_of_wrong_paths(lattice: Lattice) -> Tensor:
    """Return the log of the number of legal labellings but one, (B,) float64; log(L^T - 1) if all are legal.

    It is -inf where there is no rival.
    """
    unary, edge, lengths = narrow_edges(lattice)
    number = log_partition(Lattice(_free(unary), _free(edge), lengths))
    return number + torch.log(-torch.expm1(-number))


def _free(scores: Tensor) -> Tensor:
    return torch.zeros_like(scores, dtype=torch.float64).masked_fill(scores == -torch.inf, -torch.inf)


def _leads_over_gold(lattice: Lattice, gold: Tensor) -> tuple[Tensor, Tensor]:
    """-> (B, T, L) unary scores less what gold's own step to the token scores: paths sum to their lead over gold.

    Whether gold is possible (B,); where it is not, it counts as 0.
    """
    steps = torch.arange(gold.shape[1], device=gold.device)
    before = gold.roll(1, 1)
    if is_stationary(lattice.edge):
        along = lattice.edge[0, 0][before, gold]
    else:
        along = lattice.edge[torch.arange(len(gold), device=gold.device).unsqueeze(1), steps, before, gold]
    own = lattice.unary.gather(2, gold.unsqueeze(2)) + along.masked_fill(steps == 0, 0).unsqueeze(2)
    possible = (own.squeeze(2).detach() != -torch.inf) | ~token_mask(lattice)
    return lattice.unary - own.where(possible.unsqueeze(2), 0), possible.all(1)


def _gold_masks(lattice: Lattice, gold: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """-> which labels are gold's (B, T, L) bool, which tokens the first (1, T, 1) and the last (B, T, 1)."""
    steps = torch.arange(gold.shape[1], device=gold.device).view(1, -1, 1)
    labels = torch.arange(lattice.unary.shape[2], device=gold.device)
    return gold.unsqueeze(2) == labels, steps == 0, steps == lattice.lengths.to(gold.device).view(-1, 1, 1) - 1


def _departures(lattice: Lattice, gold: Tensor) -> Lattice:
    """With 3 L labels and one transition matrix: each label as gold's own, as the first that is not, as a later one.

    Gold's own leads to its own or to the first other, that to later ones, these to later ones.
    """
    is_gold, at_start, at_end = _gold_masks(lattice, gold)
    barred = torch.cat([~is_gold | at_end, is_gold, at_start.expand_as(is_gold)], 2)
    part = torch.arange(3, device=gold.device)
    follows = (part == (part.unsqueeze(1) + 1).clamp(max=2)) | (part + part.unsqueeze(1) == 0)
    L = is_gold.shape[2]
    edge = lattice.edge.repeat(1, 1, 3, 3)
    edge = edge.masked_fill(~follows.repeat_interleave(L, 0).repeat_interleave(L, 1), -torch.inf)
    return Lattice(lattice.unary.repeat(1, 1, 3).masked_fill(barred, -torch.inf), edge, lattice.lengths)


def _detours(lattice: Lattice, gold: Tensor) -> Lattice:
    """With L + 1 labels, the last of which stands for gold up to here, where each token has edges of its own.

    It begins at the first token, leads to itself or to any label but gold's, and does not end.
    """
    is_gold, at_start, at_end = _gold_masks(lattice, gold)
    own = lattice.unary.masked_fill(is_gold & at_start, -torch.inf)
    still = own.new_zeros(*gold.shape, 1).masked_fill(at_end, -torch.inf)
    before = gold.roll(1, 1).view(*gold.shape, 1, 1).expand(-1, -1, 1, own.shape[2])
    leave = lattice.edge.gather(2, before).masked_fill(is_gold.unsqueeze(2), -torch.inf)
    edge = torch.cat([pad(lattice.edge, (0, 1), value=-torch.inf), pad(leave, (0, 1))], 2)
    return Lattice(torch.cat([own, still], 2), edge, lattice.lengths)


class Measure(nn.Module, ABC):
    """Base of measures: forward(scored) -> d (B,), differentiable, and whether gold has a rival (B,) bool.

    Without a rival d is 0.
    """

    min_candidates = 0  # candidates the search must deliver per sequence

    @abstractmethod
    def forward(self, scored: Scored) -> tuple[Tensor, Tensor]:
        """Return d (B,), and whether gold has a rival (B,) bool."""


class Strongest(Measure):
    """d = -s(y*) + max over y != y* of s(y), in total scores. Suzuki, McDermott & Isozaki 2006, Eq. 5 (psi = inf).

    The rival is the best candidate that is not gold: exact for local scores and a search for two candidates.
    """

    min_candidates = 2

    def forward(self, scored: Scored) -> tuple[Tensor, Tensor]:
        """Return d (B,) for the strongest rival, and whether gold has a rival (B,) bool."""
        others = scored.candidates.valid & ~is_gold(scored)
        exists = others.any(1)
        return torch.where(exists, -total_gap(scored, best(scored, others)), 0.0), exists


class SoftMax(Measure):
    """d = -s(y*) + 1/psi log( A sum over y != y* of exp(psi s(y)) ). Suzuki, McDermott & Isozaki 2006, Eq. 7.

    The sum runs over all legal labellings, so that it needs no candidates; A = 1 / their number but one, which is
    1 / (L^T - 1) without a tag scheme. It uses local scores only. The gradient (Eq. 12) is the expectation of
    Phi(y) - Phi(y*) under p(y) ~ exp(psi s(y)), y != y*. As psi grows, d tends to that of `Strongest`.

    Without A, psi = 1 and the smoothing Logistic(1, 0) the criterion is the likelihood (the paper's appendix). With
    A, d is that of the average rival: for small psi it lies far below 0 in long sequences, where a sigmoid is flat.

    Args:
        psi: weight of strong rivals against many.
        normalised: whether A is used; otherwise it is 1.

    Raises:
        InputError: psi is not positive, or infinite.
    """

    def __init__(self, psi: float = 1.0, normalised: bool = True) -> None:
        super().__init__()
        _check_psi(self, psi)
        self.psi, self.normalised = psi, normalised

    def forward(self, scored: Scored) -> tuple[Tensor, Tensor]:
        """Return d (B,) for the soft maximum of all rivals, and whether gold has a rival (B,) bool."""
        total = log_sum_of_wrong_paths(scored.lattice, scored.gold, self.psi)
        exists = total.detach() > -torch.inf
        if self.normalised:
            total = total - log_number_of_wrong_paths(scored.lattice).to(total.dtype)
        return torch.where(exists, total / self.psi, 0.0), exists


class PowerMeasure(Measure):
    """Base of the two measures of the appendix of Suzuki et al. 2006: a power mean over the candidates but gold.

    Args:
        psi: weight of strong rivals against many.

    Raises:
        InputError: psi is not positive, or infinite.
    """

    min_candidates = 2

    def __init__(self, psi: float = 1.0) -> None:
        super().__init__()
        _check_psi(self, psi)
        self.psi = psi


class PowerMean(PowerMeasure):
    """d = -g* + (A sum over rivals of g^psi)^(1/psi), g = p(y). Suzuki, McDermott & Isozaki 2006, appendix.

    Rivals are the candidates but gold, A = 1 / their number, scores total ones. Differs: the paper leaves g open
    though powers ask for g >= 0; here g is the probability exp(s(y)) / (sum over gold and rivals of exp(s)), so
    that d lies between -1 and 1.
    """

    def forward(self, scored: Scored) -> tuple[Tensor, Tensor]:
        """Return d (B,) for the power mean of the rivals, and whether gold has a rival (B,) bool."""
        leads, exists = _leads(scored)
        gold = -torch.cat([torch.zeros_like(leads[:, :1]), leads], 1).logsumexp(1)
        return torch.where(exists, (_log_mean(leads, self.psi) + gold).exp() - gold.exp(), 0.0), exists


class PowerRatio(PowerMeasure):
    """d = (A sum over rivals of g^psi)^(1/psi) / g*, g = exp(s(y)) > 0. Suzuki, McDermott & Isozaki 2006, appendix.

    Rivals are the candidates but gold, A = 1 / their number, scores total ones. A factor of all g cancels: they may
    be probabilities. d is positive, and 1 where gold equals the mean of its rivals: give the smoothing
    beta = -alpha to have its step there. Beyond the root of the largest float d stays as it is, without a slope.
    """

    def forward(self, scored: Scored) -> tuple[Tensor, Tensor]:
        """Return d (B,) for the power ratio of the rivals, and whether gold has a rival (B,) bool."""
        leads, exists = _leads(scored)
        return torch.where(exists, _log_mean(leads, self.psi).clamp(max=_most(leads)).exp(), 0.0), exists


def _leads(scored: Scored) -> tuple[Tensor, Tensor]:
    """-> (B, K) total score of each rival less gold's, -inf for what is no rival, and where there are any (B,)."""
    rivals = scored.candidates.valid & ~is_gold(scored)
    gold = scored.gold_scores + scored.gold_nonlocal
    leads = scored.candidate_scores + scored.candidate_nonlocal - gold.unsqueeze(1)
    exists = rivals.any(1)
    # 0 in rows without any: the logarithm of an empty sum has no gradient
    leads = leads.where(rivals, torch.where(exists, -torch.inf, 0.0).unsqueeze(1))
    return leads.clamp(max=_most(leads)), exists  # those over impossible gold are infinite


def _most(leads: Tensor) -> float:
    """The logarithm of the root of the largest float."""
    return math.log(torch.finfo(leads.dtype).max) / 2


def _log_mean(leads: Tensor, psi: float) -> Tensor:
    """log( A sum exp(psi lead) )^(1/psi) over leads (B, K) > -inf -> (B,)."""
    number = (leads.detach() > -torch.inf).sum(1)
    return ((psi * leads).logsumexp(1) - number.log()) / psi


def _check_psi(measure: Measure, psi: float) -> None:
    if not 0 < psi < math.inf:
        raise InputError(f"{type(measure).__name__}: psi must be > 0 and finite, got {psi}; Strongest is psi = inf")
