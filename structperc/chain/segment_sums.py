"""Sums over all labellings that agree with a given one on a segment, and over all that do not."""

import torch
from torch import Tensor

from structperc.chain.lattices import is_stationary
from structperc.chain.marginals import log_partition
from structperc.chain.segments import Segments, checked_segments
from structperc.structures import Lattice


def log_sum_with(lattice: Lattice, labels: Tensor, segments: Segments) -> Tensor:
    """Return the log (S,) of the sum of exp(score) over labellings that agree with `labels` (B, T) on each segment.

    -inf where there is none. Differentiable as `log_partition`, which is called for a lattice of each segment. Errors
    are those of `score_with`.
    """
    lattice = checked_segments(lattice, labels, segments)
    return log_partition(_agreeing(lattice, labels, segments))


def log_sum_without(lattice: Lattice, labels: Tensor, segments: Segments) -> Tensor:
    """Return the log (S,) of the sum over labellings that differ from `labels` (B, T) at some token of each segment.

    As `log_sum_with`. Each labelling counts at the first token at which it differs, so that a small sum is never the
    difference of two large ones; there is a lattice for each token of a segment.
    """
    lattice = checked_segments(lattice, labels, segments)
    sizes = segments.ends - segments.starts
    owner = torch.arange(len(sizes), device=sizes.device).repeat_interleave(sizes)
    place = torch.arange(len(owner), device=sizes.device) - (sizes.cumsum(0) - sizes)[owner]
    rows, starts = segments.rows[owner], segments.starts[owner]
    unary, edge, lengths = _agreeing(lattice, labels, Segments(rows, starts, starts + place))
    turn = unary.new_zeros(unary.shape, dtype=torch.bool)
    turn[torch.arange(len(owner), device=sizes.device), starts + place, labels[rows, starts + place]] = True
    sums = log_partition(Lattice(unary.masked_fill(turn, -torch.inf), edge, lengths))
    table = sums.new_full((len(sizes), int(sizes.max()) if len(sizes) else 1), -torch.inf)
    table = table.index_put((owner, place), sums)
    exists = (table.detach() > -torch.inf).any(1)
    return table.where(exists.unsqueeze(1), 0).logsumexp(1).where(exists, -torch.inf)  # a sum of nothing has no slope


def _agreeing(lattice: Lattice, labels: Tensor, segments: Segments) -> Lattice:
    """A lattice for each segment, which may be empty, of the labellings that agree with `labels` on it."""
    unary, edge, lengths = lattice
    rows, starts, ends = segments
    tokens = torch.arange(unary.shape[1], device=unary.device)
    inside = (tokens >= starts.unsqueeze(1)) & (tokens < ends.unsqueeze(1))
    other = labels.unsqueeze(2) != torch.arange(unary.shape[2], device=unary.device)
    own = unary[rows].masked_fill(inside.unsqueeze(2) & other[rows], -torch.inf)
    return Lattice(own, edge if is_stationary(edge) or edge.shape[0] == 1 else edge[rows], lengths[rows])
