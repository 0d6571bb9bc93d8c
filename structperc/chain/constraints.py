"""Constraints on labels, as scores of -inf in a lattice, which all searches, sums and criteria respect.

Gradients reach all other scores.
"""

import torch
from torch import Tensor, nn

from structperc.chain.lattices import full_precision, narrow_edges
from structperc.data.labels import LabelSet
from structperc.structures import Lattice


def allow(lattice: Lattice, mask: Tensor) -> Lattice:
    """Forbid all labels outside a mask, such as partial labels or the entries of a tag dictionary.

    `mask`: bool, True at allowed labels; of any shape that broadcasts to (B, T, L). Returns the lattice with unary
    scores of -inf at all other labels.

    Example:
        >>> import torch
        >>> from structperc.chain import allow, viterbi
        >>> from structperc.structures import Lattice
        >>> lattice = Lattice(torch.tensor([[[0.0, 1.0], [2.0, 0.0]]]), torch.zeros(1, 1, 2, 2), torch.tensor([2]))
        >>> allowed = torch.tensor([[[True, False], [True, True]]])  # the first label must be 0
        >>> viterbi(allow(lattice, allowed))
        (tensor([2.]), tensor([[0, 0]]))
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
    """Forbid first labels, pairs of labels and last labels, for example those that a tag scheme excludes.

    A stationary transition matrix stays one matrix. Half precision becomes float32. Returns the lattice with scores of
    -inf for all that is forbidden.

    Args:
        start: (L,) bool, True at labels that may begin a sentence.
        transition: (L, L) bool, True at pairs (label before, label) that may follow one another.
        end: (L,) bool, True at labels that may end a sentence.
        first: (B, T) bool, True at the first tokens of sentences; by default, each sequence is one sentence.
        last: (B, T) bool, True at the last tokens of sentences.
    """
    if first is None or last is None:
        steps = torch.arange(lattice.unary.shape[1], device=lattice.unary.device)
        first = steps == 0 if first is None else first
        last = steps == lattice.lengths.to(steps.device).unsqueeze(1) - 1 if last is None else last
    barred = (first.unsqueeze(-1) & ~start) | (last.unsqueeze(-1) & ~end)
    unary, edge = full_precision(lattice.unary), full_precision(narrow_edges(lattice).edge)
    unary = unary.masked_fill(barred, -torch.inf)
    return lattice._replace(unary=unary, edge=edge.masked_fill(~transition, -torch.inf))


class Constraints(nn.Module):
    """Module that forbids what the tag scheme of a label set excludes; see `constrain`.

    The masks move with the module to a device, and are not part of its state.

    Attributes:
        start: (L,) bool, labels that may begin a sentence.
        transition: (L, L) bool, pairs (label before, label) that may follow one another.
        end: (L,) bool, labels that may end a sentence.
        unconstrained: True if the scheme is "none", so that nothing is forbidden.

    Example:
        >>> import torch
        >>> from structperc.chain import Constraints
        >>> from structperc.data import LabelSet
        >>> constraints = Constraints()
        >>> constraints.allocate(LabelSet(("O", "B-PER", "I-PER"), "IOB2"))
        >>> constraints.start
        tensor([ True,  True, False])
    """

    start: Tensor
    transition: Tensor
    end: Tensor
    unconstrained = False  # without a tag scheme

    def allocate(self, labels: LabelSet) -> None:
        """Create the masks of the labels that may begin a sentence, end it, and follow one another."""
        for name, mask in (("start", labels.start), ("transition", labels.transition), ("end", labels.end)):
            self.register_buffer(name, mask, persistent=False)
        self.unconstrained = labels.scheme == "none"

    def forward(self, lattice: Lattice, first: Tensor | None = None, last: Tensor | None = None) -> Lattice:
        """Return the lattice with -inf for all that the tag scheme forbids; see `constrain`."""
        if self.unconstrained:
            return lattice._replace(
                unary=full_precision(lattice.unary), edge=full_precision(narrow_edges(lattice).edge)
            )
        return constrain(lattice, self.start, self.transition, self.end, first, last)
