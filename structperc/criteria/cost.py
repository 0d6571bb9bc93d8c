"""A cost for each wrong label, by which the margin that is asked for grows with the error."""

import torch
from torch import Tensor

from structperc.structures import Lattice, Scored, real_tokens


def augmented(lattice: Lattice, gold: Tensor, cost: float) -> Lattice:
    """Return the lattice with `cost` added to every label that is not that of gold (B, T) int64."""
    right = torch.nn.functional.one_hot(gold, lattice.unary.shape[-1]).bool()
    return lattice._replace(unary=lattice.unary + cost * ~right)


def costs(scored: Scored, cost: float) -> Tensor:
    """Return `cost` times the number of wrong labels of each candidate, (B, K)."""
    live = real_tokens(scored.lattice.lengths, scored.gold.shape[1])
    wrong = (scored.candidates.labels != scored.gold[:, None]) & live[:, None]
    return cost * wrong.sum(-1).to(scored.gold_scores.dtype)
