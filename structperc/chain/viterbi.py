"""The best labelling of each sequence (Viterbi 1967)."""

import torch
from torch import Tensor, nn

from structperc.chain.lattices import checked
from structperc.ops import viterbi as best_labelling
from structperc.structures import Lattice


@torch.no_grad()
def viterbi(lattice: Lattice) -> tuple[Tensor, Tensor]:
    """Return scores (B,) and labels (B, T) int64, 0 in the padding; without gradients, which `path_score` has.

    Of equal labellings the first in lexicographic order. A sequence without any legal labelling scores -inf and gets
    labels 0; an empty sequence scores 0. Raises InputError for tensors whose shapes do not fit.
    """
    scores, labels = best_labelling(*checked(lattice))
    return scores, labels


class Viterbi(nn.Module):
    """The best labelling of a lattice: `viterbi`, as a module."""

    def forward(self, lattice: Lattice) -> tuple[Tensor, Tensor]:
        """Return the score (B,) and the labels (B, T) of the best labelling."""
        return viterbi(lattice)
