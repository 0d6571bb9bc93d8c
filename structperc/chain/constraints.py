"""What is impossible: -inf in the lattice, so that every search, sum and criterion sees the same constraints.

There is one way to constrain: make a lattice. Gradients flow to the scores that stay legal.
"""

import torch
from torch import Tensor

from structperc.chain.recursion import is_stationary
from structperc.structures import Lattice


def allow(lattice: Lattice, mask: Tensor) -> Lattice:
    """Keep the labels that `mask` allows; bool, (B, T, L) or anything that broadcasts to it.

    For partial labels, forced decoding and dictionaries of the tags of a word.
    """
    return lattice._replace(unary=lattice.unary.masked_fill(~mask, -torch.inf))


def constrain(lattice: Lattice, start: Tensor, transition: Tensor, end: Tensor) -> Lattice:
    """Keep what bool masks allow: first labels (L,), pairs (L before, L), last labels (L,).

    A stationary edge stays an expanded view.
    """
    steps = torch.arange(lattice.unary.shape[1], device=lattice.unary.device)
    first, last = steps == 0, steps == lattice.lengths.to(steps.device).unsqueeze(1) - 1
    barred = (first.unsqueeze(1) & ~start) | (last.unsqueeze(2) & ~end)
    edge = lattice.edge[:1, :1] if is_stationary(lattice.edge) else lattice.edge
    edge = edge.masked_fill(~transition, -torch.inf).expand_as(lattice.edge)
    return Lattice(lattice.unary.masked_fill(barred, -torch.inf), edge, lattice.lengths)
