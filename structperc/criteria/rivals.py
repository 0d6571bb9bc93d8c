"""Sums over all labellings but gold.

Their logarithm could be had from that of all, log Z + log(1 - exp(s(y*) - log Z)), but the difference loses its
digits where gold holds nearly all mass. So they are summed in a lattice that has no labelling but the rivals, each
once: more labels tell whether it has left gold, and where. Sums then have terms of rivals only.
"""

import torch
from torch import Tensor
from torch.nn.functional import pad

from structperc.chain import log_partition
from structperc.chain.lattices import every_edge, full_precision, is_stationary, live, narrowed
from structperc.criteria.base import without_path
from structperc.structures import Lattice


def log_rivals(lattice: Lattice, gold: Tensor, psi: float) -> Tensor:
    """Return the log (B,) of the sum over y != y* of exp(psi (s(y) - s(y*))), gold (B, T) int64.

    Differentiable once. It is -inf, without a gradient, where gold is the only legal labelling or none is, and for
    empty sequences; +inf, without a gradient, where gold is impossible and others are not.
    """
    lattice, gold = narrowed(lattice), gold.where(live(lattice), 0)
    if not is_stationary(lattice.edge):  # edges may be the same for all tokens of a sequence, or for all sequences
        lattice = lattice._replace(edge=every_edge(lattice))
    scaled = lattice._replace(unary=psi * full_precision(lattice.unary), edge=psi * full_precision(lattice.edge))
    leads, possible = _leads(scaled, gold)
    scaled = scaled._replace(unary=leads)
    rivals = _departures(scaled, gold) if is_stationary(scaled.edge) else _detours(scaled, gold)
    total = log_partition(rivals)
    infinite = torch.where(without_path(lattice, ~possible), -torch.inf, torch.inf)
    total = total.where(possible, infinite.to(total.dtype))
    return total.where(lattice.lengths.to(total.device) > 0, -torch.inf)


@torch.no_grad()
def log_number_of_rivals(lattice: Lattice) -> Tensor:
    """Return the log of the number of legal labellings but one, (B,) float64; log(L^T - 1) if all are legal.

    It is -inf where there is no rival.
    """
    unary, edge, lengths = narrowed(lattice)
    number = log_partition(Lattice(_free(unary), _free(edge), lengths))
    return number + torch.log(-torch.expm1(-number))


def _free(scores: Tensor) -> Tensor:
    return torch.zeros_like(scores, dtype=torch.float64).masked_fill(scores == -torch.inf, -torch.inf)


def _leads(lattice: Lattice, gold: Tensor) -> tuple[Tensor, Tensor]:
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
    possible = (own.squeeze(2).detach() != -torch.inf) | ~live(lattice)
    return lattice.unary - own.where(possible.unsqueeze(2), 0), possible.all(1)


def _places(lattice: Lattice, gold: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """-> which labels are gold's (B, T, L) bool, which tokens the first (1, T, 1) and the last (B, T, 1)."""
    steps = torch.arange(gold.shape[1], device=gold.device).view(1, -1, 1)
    labels = torch.arange(lattice.unary.shape[2], device=gold.device)
    return gold.unsqueeze(2) == labels, steps == 0, steps == lattice.lengths.to(gold.device).view(-1, 1, 1) - 1


def _departures(lattice: Lattice, gold: Tensor) -> Lattice:
    """With 3 L labels and one transition matrix: each label as gold's own, as the first that is not, as a later one.

    Gold's own leads to its own or to the first other, that to later ones, these to later ones.
    """
    is_gold, at_start, at_end = _places(lattice, gold)
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
    is_gold, at_start, at_end = _places(lattice, gold)
    own = lattice.unary.masked_fill(is_gold & at_start, -torch.inf)
    still = own.new_zeros(*gold.shape, 1).masked_fill(at_end, -torch.inf)
    before = gold.roll(1, 1).view(*gold.shape, 1, 1).expand(-1, -1, 1, own.shape[2])
    leave = lattice.edge.gather(2, before).masked_fill(is_gold.unsqueeze(2), -torch.inf)
    edge = torch.cat([pad(lattice.edge, (0, 1), value=-torch.inf), pad(leave, (0, 1))], 2)
    return Lattice(torch.cat([own, still], 2), edge, lattice.lengths)
