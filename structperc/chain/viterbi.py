"""The best labelling of each sequence (Viterbi 1967).

The score of given labellings, the only place where gradients enter.

The best labelling, and how sure it is, in tensor operations alone, for programs that run where this library is not.
"""

import torch
from torch import Tensor, nn

from structperc.chain.lattices import validate_lattice
from structperc.errors import InputError
from structperc.ops import path_score as scores_of
from structperc.ops import viterbi as best_labelling
from structperc.ops.registration import implementation
from structperc.structures import Lattice


@torch.no_grad()
def viterbi(lattice: Lattice) -> tuple[Tensor, Tensor]:
    """Return scores (B,) and labels (B, T) int64, 0 in the padding; without gradients, which `path_score` has.

    Of equal labellings the first in lexicographic order. A sequence without any legal labelling scores -inf and gets
    labels 0; an empty sequence scores 0. Raises InputError for tensors whose shapes do not fit.
    """
    scores, labels = best_labelling(*validate_lattice(lattice))
    return scores, labels


class Viterbi(nn.Module):
    """The best labelling of a lattice: `viterbi`, as a module."""

    def forward(self, lattice: Lattice) -> tuple[Tensor, Tensor]:
        """Return the score (B,) and the labels (B, T) of the best labelling."""
        return viterbi(lattice)


def path_score(lattice: Lattice, labels: Tensor, rows: Tensor | None = None) -> Tensor:
    """Return the sums of unary and edge scores along labellings: labels (B, T) -> (B,), labels (B, K, T) -> (B, K).

    With `rows` (S,) the labels are (S, T) and labelling s belongs to sequence rows[s] -> (S,).
    Labels in the padding are ignored. Gradients flow to the entries along the labellings only. Raises InputError for
    tensors whose shapes do not fit and, on a CPU, where a label of a real token is outside 0..L-1; on other devices,
    which would have to be waited for, its score is NaN.
    """
    lattice = validate_lattice(lattice)
    B, T, _ = lattice.unary.shape
    if rows is None:
        if labels.dim() not in (2, 3) or labels.shape[0] != B or labels.shape[-1] != T:
            raise InputError(f"labels: the shape is {tuple(labels.shape)}, expected ({B}, {T}) or ({B}, K, {T})")
        rows = torch.arange(B, device=labels.device)
        if labels.dim() == 3:
            K = labels.shape[1]
            scores = path_score(lattice, labels.reshape(B * K, T), rows.repeat_interleave(K, output_size=B * K))
            return scores.view(B, K)
    if labels.shape != (rows.shape[0], T):
        raise InputError(f"labels: the shape is {tuple(labels.shape)}, expected ({rows.shape[0]}, {T}), as rows say")
    return scores_of(*lattice, labels, rows)


@torch.no_grad()
def exportable_viterbi(lattice: Lattice) -> tuple[Tensor, Tensor]:
    """Return scores (B,) and labels (B, T) int64, 0 in the padding, of a lattice with T >= 1, without gradients.

    The labels are those of `viterbi`, ties decided alike; sums may differ in their last digit.
    Outside of exported programs `viterbi` is the faster one.
    """
    scores, labels = implementation("tensors", "viterbi", "viterbi")(*validate_lattice(lattice))
    return scores, labels


@torch.no_grad()
def exportable_marginals(lattice: Lattice) -> tuple[Tensor, Tensor]:
    """Return log Z (B,) and marginal probabilities (B, T, L) of a lattice with T >= 1, without gradients.

    They are those of `log_partition` and `marginals`. With the score of `exportable_viterbi`, exp(score - log Z) is the
    probability of its labelling.
    """
    log_z, probabilities, _ = implementation("tensors", "expectations", "expectations")(
        *validate_lattice(lattice), False
    )
    return log_z, probabilities


class ExportableViterbi(nn.Module):
    """`exportable_viterbi` as a module of tensors, to be exported by itself or called after a scorer."""

    def forward(self, unary: Tensor, edge: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """Return scores (B,), labels (B, T) from unary (B, T, L), edge (B, T, L, L) or (1, 1, L, L), lengths (B,)."""
        return exportable_viterbi(Lattice(unary, edge, lengths))
