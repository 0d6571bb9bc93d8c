"""Constraints: -inf in the lattice, so that every search, sum and criterion sees the same impossible paths.

Gradients flow to the other scores.
"""

import torch
from torch import Tensor, nn

from structperc.chain.lattices import full_precision, narrow_edges
from structperc.data.labels import LabelSet
from structperc.structures import Lattice


def allow(lattice: Lattice, mask: Tensor) -> Lattice:
    """Keep the labels of a bool mask that broadcasts to (B, T, L), such as partial labels or a tag dictionary."""
    return lattice._replace(unary=lattice.unary.masked_fill(~mask, -torch.inf))


def constrain(
    lattice: Lattice,
    start: Tensor,
    transition: Tensor,
    end: Tensor,
    first: Tensor | None = None,
    last: Tensor | None = None,
) -> Lattice:
    """Keep the first labels, pairs (label before, label) and last labels that bool masks (L,), (L, L), (L,) allow.

    `first` and `last` (B, T) bool mark the tokens where paths begin and end: by default the ends of the sequence, for
    documents also those of their sentences. A stationary edge stays one matrix. Half precision becomes float32.
    """
    if first is None or last is None:
        steps = torch.arange(lattice.unary.shape[1], device=lattice.unary.device)
        first = steps == 0 if first is None else first
        last = steps == lattice.lengths.to(steps.device).unsqueeze(1) - 1 if last is None else last
    barred = (first.unsqueeze(-1) & ~start) | (last.unsqueeze(-1) & ~end)
    unary, edge = full_precision(lattice.unary), full_precision(narrow_edges(lattice).edge)
    unary = unary.masked_fill(barred, -torch.inf)
    return Lattice(unary, edge.masked_fill(~transition, -torch.inf), lattice.lengths)


class Constraints(nn.Module):
    """The function `constrain` with the masks of a label set, which are not saved.

    start, end: (L,) bool. transition: (L, L) bool.
    """

    start: Tensor
    transition: Tensor
    end: Tensor
    unconstrained = False  # without a tag scheme

    def allocate(self, labels: LabelSet) -> None:
        """Set the masks of the labels that may begin, end and follow one another."""
        for name, mask in (("start", labels.start), ("transition", labels.transition), ("end", labels.end)):
            self.register_buffer(name, mask, persistent=False)
        self.unconstrained = labels.scheme == "none"

    def forward(self, lattice: Lattice, first: Tensor | None = None, last: Tensor | None = None) -> Lattice:
        """Return the lattice with -inf for what the tag scheme forbids; see `constrain`."""
        if self.unconstrained:
            return lattice._replace(
                unary=full_precision(lattice.unary), edge=full_precision(narrow_edges(lattice).edge)
            )
        return constrain(lattice, self.start, self.transition, self.end, first, last)
