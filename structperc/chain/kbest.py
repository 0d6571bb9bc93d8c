"""The k best labellings of each sequence, exactly."""

import torch
from torch import nn

from structperc.chain.lattices import checked
from structperc.chain.memory import check_memory
from structperc.errors import InputError
from structperc.ops import kbest as best_labellings
from structperc.structures import Candidates, Lattice


@torch.no_grad()
def kbest(lattice: Lattice, k: int) -> Candidates:
    """Return the k best labellings of each sequence, best first, none twice; without gradients, which `path_score` has.

    Equal ones stand in lexicographic order, so that the first is that of `viterbi` and the first k - 1 are those of
    `kbest(lattice, k - 1)`. The scores are sums over the lattice as given. An empty sequence has one candidate, the
    empty labelling with score 0. Memory O(T k). Raises InputError for k < 1, for lists that do not fit into memory, and
    for tensors whose shapes do not fit.
    """
    if isinstance(k, bool) or not isinstance(k, int) or k < 1:
        raise InputError(f"k must be a whole number >= 1, got {k!r}")
    lattice = checked(lattice)
    if not (torch.compiler.is_compiling() or torch.compiler.is_exporting()):  # where sizes may be unknown
        check_memory(k, lattice.unary.shape, lattice.unary.device)
    return Candidates(*best_labellings(*lattice, k))


class KBest(nn.Module):
    """The k best labellings of a lattice: `kbest`, as a module that holds k."""

    def __init__(self, k: int = 20):
        super().__init__()
        if k < 1:
            raise InputError(f"k must be >= 1, got {k}")
        self.k = k

    def forward(self, lattice: Lattice) -> Candidates:
        """Return the k best labellings, best first."""
        return kbest(lattice, self.k)
