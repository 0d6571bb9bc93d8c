"""Constraints: -inf in the lattice, so that every search, sum and criterion sees the same impossible labellings.

There is one way to constrain: make a lattice. Gradients flow to the scores that stay legal.
"""

import torch
from torch import Tensor, nn

from structperc.chain.lattices import full_precision, narrow_edges
from structperc.data.labels import LabelSet
from structperc.structures import Lattice


def allow(lattice: Lattice, mask: Tensor) -> Lattice:
    """Keep the labels that `mask` allows; bool, (B, T, L) or anything that broadcasts to it.

    For partial labels, forced decoding and dictionaries of the tags of a word.
    """
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

    `first` and `last` (B, T) bool say where a labelling begins and ends: by default at the ends of the sequence, for
    documents also at the boundaries of their sentences. A stationary edge stays one matrix. Half precision becomes
    float32, for all that follows.
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
    """`constrain` with the masks of a label set; they move with the module and are not saved.

    start, end: (L,) bool. transition: (L, L) bool.
    """

    start: Tensor
    transition: Tensor
    end: Tensor
    anything = False  # whether all labellings are allowed, as without a tag scheme

    def allocate(self, labels: LabelSet) -> None:
        """Take from the labels which of them may begin, end and follow one another."""
        for name, mask in (("start", labels.start), ("transition", labels.transition), ("end", labels.end)):
            self.register_buffer(name, mask, persistent=False)
        self.anything = labels.scheme == "none"

    def forward(self, lattice: Lattice, first: Tensor | None = None, last: Tensor | None = None) -> Lattice:
        """Return the Lattice with what the tag scheme forbids at -inf; `first` and `last` are as in `constrain`."""
        if self.anything:
            return lattice._replace(
                unary=full_precision(lattice.unary), edge=full_precision(narrow_edges(lattice).edge)
            )
        return constrain(lattice, self.start, self.transition, self.end, first, last)
