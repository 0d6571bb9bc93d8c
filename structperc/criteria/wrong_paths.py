"""Sums over all wrong paths, that is, all paths except the gold path.

log Z + log(1 - exp(s(y*) - log Z)) would lose its digits if the gold path has nearly all mass. The sums therefore run
over a lattice that contains each wrong path once: additional labels record whether and where it left the gold path.
"""

import torch
from torch import Tensor
from torch.nn.functional import pad

from structperc.chain import allow, log_partition
from structperc.chain.lattices import expand_edges, is_stationary, map_scores, token_mask, validate_lattice
from structperc.criteria.base import without_path
from structperc.structures import Lattice


def log_sum_of_wrong_paths(lattice: Lattice, gold: Tensor, psi: float) -> Tensor:
    """Return the log (B,) of the sum over y != y* of exp(psi (s(y) - s(y*))), y* the gold labels (B, T) int64.

    Differentiable once. It is -inf, without a gradient, if the gold path is the only legal one or there is none, and
    for empty sequences; +inf, without a gradient, if the gold path is impossible and others are not.
    """
    lattice, gold = validate_lattice(lattice), gold.where(token_mask(lattice), 0)
    if not is_stationary(lattice.edge):  # edges may be the same for all tokens of a sequence, or for all sequences
        lattice = lattice._replace(edge=expand_edges(lattice))
    scaled = map_scores(lambda scores: psi * scores, lattice)
    leads, possible = _leads_over_gold(scaled, gold)
    scaled = scaled._replace(unary=leads)
    is_gold = _gold_masks(scaled, gold)[0]
    rivals = _departures(scaled, is_gold) if is_stationary(scaled.edge) else _detours(scaled, gold)
    total = log_partition(rivals)
    infinite = torch.where(without_path(lattice, ~possible), -torch.inf, torch.inf)
    total = total.where(possible, infinite.to(total.dtype))
    return total.where(lattice.lengths.to(total.device) > 0, -torch.inf)


def log_lead_of_wrong_paths(lattice: Lattice, allowed: Tensor, psi: float, normalised: bool) -> Tensor:
    """Return the log (B,) of a sum over wrong paths, minus that over right ones, whose labels are all allowed.

    The sums are those of exp(psi s(y)); if normalised, each is divided by the number of its paths. It is -inf without a
    wrong path, +inf without a right one. `allowed`: (B, T, L) bool. `psi`: factor of the scores. `normalised`: compare
    means in place of sums.
    """
    lattice = validate_lattice(lattice)
    if not is_stationary(lattice.edge):
        lattice = lattice._replace(edge=expand_edges(lattice))
    scaled = map_scores(lambda scores: psi * scores, lattice)
    lead = _lead(scaled, allowed)
    if not normalised:
        return lead
    paths = _lead(map_scores(_zeros_where_possible, scaled), allowed)
    return torch.where(paths.isfinite(), lead - paths.to(lead.dtype), lead)


def _lead(lattice: Lattice, allowed: Tensor) -> Tensor:
    wrong, right = log_partition(_departures(lattice, allowed)), log_partition(allow(lattice, allowed))
    return torch.where(wrong > -torch.inf, wrong - right, -torch.inf)


@torch.no_grad()
def log_number_of_wrong_paths(lattice: Lattice) -> Tensor:
    """Return the log of the number of legal paths minus one, (B,) float64; log(L^T - 1) if all are legal.

    It is -inf for a single path.
    """
    number = log_partition(map_scores(_zeros_where_possible, validate_lattice(lattice)))
    return number + torch.log(-torch.expm1(-number))


def _zeros_where_possible(scores: Tensor) -> Tensor:
    return torch.zeros_like(scores, dtype=torch.float64).masked_fill(scores == -torch.inf, -torch.inf)


def _leads_over_gold(lattice: Lattice, gold: Tensor) -> tuple[Tensor, Tensor]:
    """Return unary scores (B, T, L) minus the gold path's score of each step, and whether the gold path is legal (B,).

    With these unary scores the score of a path is its lead over the gold path. An illegal gold path counts as 0.
    """
    steps = torch.arange(gold.shape[1], device=gold.device)
    before = gold.roll(1, 1)
    if is_stationary(lattice.edge):
        along = lattice.edge[0, 0][before, gold]
    else:
        along = lattice.edge[torch.arange(len(gold), device=gold.device).unsqueeze(1), steps, before, gold]
    scores = lattice.unary.gather(2, gold.unsqueeze(2)) + along.masked_fill(steps == 0, 0).unsqueeze(2)
    possible = (scores.squeeze(2).detach() != -torch.inf) | ~token_mask(lattice)
    return lattice.unary - scores.where(possible.unsqueeze(2), 0), possible.all(1)


def _gold_masks(lattice: Lattice, gold: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return masks of the gold labels (B, T, L), of first tokens (1, T, 1) and of last tokens (B, T, 1)."""
    labels = torch.arange(lattice.unary.shape[2], device=gold.device)
    return gold.unsqueeze(2) == labels, *_ends(lattice, gold)


def _ends(lattice: Lattice, gold: Tensor) -> tuple[Tensor, Tensor]:
    """Return masks of first tokens (1, T, 1) and of last tokens (B, T, 1) on the device of `gold`."""
    steps = torch.arange(gold.shape[1], device=gold.device).view(1, -1, 1)
    return steps == 0, steps == lattice.lengths.to(gold.device).view(-1, 1, 1) - 1


def _departures(lattice: Lattice, right: Tensor) -> Lattice:
    """Return a lattice of 3 L labels whose paths are the wrong paths, given masks (B, T, L) of right labels.

    Each label occurs three times: while all labels of the path are right, at its first wrong label, and after that.
    """
    at_start, at_end = _ends(lattice, right)
    barred = torch.cat([~right | at_end, right, at_start.expand_as(right)], 2)
    part = torch.arange(3, device=right.device)
    follows = (part == (part.unsqueeze(1) + 1).clamp(max=2)) | (part + part.unsqueeze(1) == 0)
    L = right.shape[2]
    edge = lattice.edge.repeat(1, 1, 3, 3)
    edge = edge.masked_fill(~follows.repeat_interleave(L, 0).repeat_interleave(L, 1), -torch.inf)
    return Lattice(lattice.unary.repeat(1, 1, 3).masked_fill(barred, -torch.inf), edge, lattice.lengths)


def _detours(lattice: Lattice, gold: Tensor) -> Lattice:
    """Return a lattice of L + 1 labels, with edges per token, whose paths are the wrong paths.

    The last label stands for the gold path so far: it begins at the first token, leads to itself or to any wrong
    label, and cannot end.
    """
    is_gold, at_start, at_end = _gold_masks(lattice, gold)
    unary = lattice.unary.masked_fill(is_gold & at_start, -torch.inf)
    gold_so_far = unary.new_zeros(*gold.shape, 1).masked_fill(at_end, -torch.inf)
    before = gold.roll(1, 1).view(*gold.shape, 1, 1).expand(-1, -1, 1, unary.shape[2])
    leave = lattice.edge.gather(2, before).masked_fill(is_gold.unsqueeze(2), -torch.inf)
    edge = torch.cat([pad(lattice.edge, (0, 1), value=-torch.inf), pad(leave, (0, 1))], 2)
    return Lattice(torch.cat([unary, gold_so_far], 2), edge, lattice.lengths)
