"""The best label sequence (Viterbi 1967), scores of given ones, and max-marginals."""

import torch
from torch import Tensor, nn

from structperc.chain.lattices import token_mask, validate_lattice
from structperc.errors import InputError
from structperc.ops import best_before_and_after as best_scores
from structperc.ops import path_score as scores_of
from structperc.ops import viterbi as best_path
from structperc.ops.registration import implementation
from structperc.structures import Lattice


def max_marginals(lattice: Lattice) -> Tensor:
    """Return m (B, T, L), where m[b, t, y] is the best score of a path of sequence b with label y at token t.

    It is -inf where there is none, and in the padding. Up to rounding, max_y m[b, t, y] is the Viterbi score at every
    t, and the second best path scores max over t and y != v_t of m[b, t, y], v being the best path.

    The gradient of an entry is that of the score of its path, the lowest labels among equals from token t outwards; 0
    where there is none. A score of +inf or NaN makes all entries of its sequence NaN.
    """
    lattice = validate_lattice(lattice)
    before, after = best_scores(*lattice)
    scores = (before + lattice.unary + after).where(token_mask(lattice).unsqueeze(2), -torch.inf)
    return scores.where(scores != -torch.inf, -torch.inf)


def best_before_and_after(lattice: Lattice) -> tuple[Tensor, Tensor]:
    """Return the best score of all before and of all after each label, (B, T, L) each; see `structperc.ops`."""
    before, after = best_scores(*validate_lattice(lattice))
    return before, after


@torch.no_grad()
def viterbi(lattice: Lattice) -> tuple[Tensor, Tensor]:
    """Return the score (B,) and the labels (B, T) int64 of the best label sequences, 0 in the padding.

    Ties go to the first in lexicographic order. A sequence without a possible path gets score -inf and labels 0; an
    empty one scores 0. There are no gradients: use `path_score`.

    Raises:
        InputError: shapes are wrong.

    Example:
        >>> import torch
        >>> from structperc.structures import Lattice
        >>> scores = torch.tensor([[[0.0, 1.0], [2.0, 0.0]]])
        >>> viterbi(Lattice(scores, torch.zeros(1, 1, 2, 2), torch.tensor([2])))
        (tensor([3.]), tensor([[1, 0]]))
    """
    scores, labels = best_path(*validate_lattice(lattice))
    return scores, labels


class Viterbi(nn.Module):
    """The function `viterbi` as a module."""

    def forward(self, lattice: Lattice) -> tuple[Tensor, Tensor]:
        """Return the score (B,) and the labels (B, T) of the best label sequences."""
        return viterbi(lattice)


def path_score(lattice: Lattice, labels: Tensor, rows: Tensor | None = None) -> Tensor:
    """Return the scores of given label sequences; the only way for gradients of searches to reach a lattice.

    Args:
        lattice: of B sequences.
        labels: (B, T), or (B, K, T) for several of each sequence, or (S, T) with rows; ignored in the padding.
        rows: (S,) int64, the sequence of each label sequence.

    Returns:
        (B,), (B, K) or (S,). The score of an invalid label is NaN on other devices than a CPU.

    Raises:
        InputError: shapes are wrong, or, on a CPU, a label of a real token is outside 0..L-1.
    """
    lattice = validate_lattice(lattice)
    B, T, _ = lattice.unary.shape
    if rows is None:
        if labels.dim() not in (2, 3) or labels.shape[0] != B or labels.shape[-1] != T:
            raise InputError(f"labels: expected shape ({B}, {T}) or ({B}, K, {T}), got {tuple(labels.shape)}")
        rows = torch.arange(B, device=labels.device)
        if labels.dim() == 3:
            K = labels.shape[1]
            scores = path_score(lattice, labels.reshape(B * K, T), rows.repeat_interleave(K, output_size=B * K))
            return scores.view(B, K)
    if labels.shape != (rows.shape[0], T):
        raise InputError(f"labels: expected shape ({rows.shape[0]}, {T}) for these rows, got {tuple(labels.shape)}")
    return scores_of(*lattice, labels, rows)


@torch.no_grad()
def exportable_viterbi(lattice: Lattice) -> tuple[Tensor, Tensor]:
    """Return the results of `viterbi` for T >= 1 by operations of torch alone, for export without structperc.

    An exported `viterbi` is an operator of this library; here loops over tokens are scans, one node each for sequences
    of any length. Scores may differ in their last digit; `viterbi` is faster.
    """
    scores, labels = implementation("reference", "viterbi")(*validate_lattice(lattice))
    return scores, labels


@torch.no_grad()
def exportable_marginals(lattice: Lattice) -> tuple[Tensor, Tensor]:
    """Return the results of `log_partition` and `marginals` for T >= 1 by operations of torch alone.

    With the score of `exportable_viterbi`, exp(score - log Z) is the probability of its label sequence.
    """
    log_z, probabilities, _ = implementation("reference", "forward_backward")(*validate_lattice(lattice), False)
    return log_z, probabilities


class ExportableViterbi(nn.Module):
    """The function `exportable_viterbi` as a module of tensors."""

    def forward(self, unary: Tensor, edge: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """Return scores (B,), labels (B, T) from unary (B, T, L), edge (B, T, L, L) or (1, 1, L, L), lengths (B,)."""
        return exportable_viterbi(Lattice(unary, edge, lengths))
