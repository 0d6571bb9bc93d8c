"""The best labelling, and how sure it is, in tensor operations alone, for programs that run where this library is not.

An exported `viterbi` is one node, an operator of this library. Here all loops over tokens are scans: one node of the
graph each, however long sequences are, made of operations that torch itself has.
"""

import torch
from torch import Tensor, nn

from structperc.chain.lattices import checked
from structperc.ops.declare import implementation
from structperc.structures import Lattice


@torch.no_grad()
def exportable_viterbi(lattice: Lattice) -> tuple[Tensor, Tensor]:
    """Return scores (B,) and labels (B, T) int64, 0 in the padding, of a lattice with T >= 1, without gradients.

    The labels are those of `viterbi`, ties decided alike; sums may differ in their last digit.
    Outside of exported programs `viterbi` is the faster one.
    """
    scores, labels = implementation("tensors", "viterbi", "viterbi")(*checked(lattice))
    return scores, labels


@torch.no_grad()
def exportable_marginals(lattice: Lattice) -> tuple[Tensor, Tensor]:
    """Return log Z (B,) and marginal probabilities (B, T, L) of a lattice with T >= 1, without gradients.

    They are those of `log_partition` and `marginals`. With the score of `exportable_viterbi`, exp(score - log Z) is the
    probability of its labelling.
    """
    log_z, probabilities, _ = implementation("tensors", "expectations", "expectations")(*checked(lattice), False)
    return log_z, probabilities


class ExportableViterbi(nn.Module):
    """`exportable_viterbi` as a module of tensors, to be exported by itself or called after a scorer."""

    def forward(self, unary: Tensor, edge: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """Return scores (B,), labels (B, T) from unary (B, T, L), edge (B, T, L, L) or (1, 1, L, L), lengths (B,)."""
        return exportable_viterbi(Lattice(unary, edge, lengths))
