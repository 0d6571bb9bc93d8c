"""The best label sequence (Viterbi 1967), scores of given label sequences, and max-marginals."""

import torch
from torch import Tensor, nn

from structperc.chain.lattices import operands
from structperc.chain.segment_scores import best_labels, best_with_labels, score_of_labels
from structperc.errors import InputError
from structperc.ops.operators import best_before_and_after as best_scores
from structperc.ops.operators import path_score as scores_of
from structperc.ops.operators import viterbi as best_path
from structperc.ops.registration import implementation
from structperc.structures import Lattice, real_tokens


def max_marginals(lattice: Lattice) -> Tensor:
    """Return the best score of a label sequence with a given label at a given token, for all labels and tokens.

    At each token the largest entry is the Viterbi score, up to rounding. The second best label sequence has the largest
    score of all entries whose label is not that of the best label sequence. The gradient of an entry is the gradient of
    the score of its label sequence. Of several such sequences, it is the one with the lowest labels, from the token
    outwards. It is 0 where there is none. Returns the scores (B, T, L), -inf where no label sequence is possible and in
    the padding, NaN for a sequence with a score of +inf or NaN.

    Example:
        >>> import torch
        >>> from structperc.chain import max_marginals
        >>> from structperc.structures import Lattice
        >>> lattice = Lattice(torch.tensor([[[0.0, 1.0], [2.0, 0.0]]]), torch.zeros(1, 1, 2, 2), torch.tensor([2]))
        >>> max_marginals(lattice)
        tensor([[[2., 3.],
                 [3., 1.]]])
    """
    if lattice.segments is not None:
        return best_with_labels(lattice)
    unary, edge, lengths = operands(lattice)
    before, after = best_scores(unary, edge, lengths)
    scores = (before + unary + after).where(real_tokens(lengths, unary.shape[1]).unsqueeze(2), -torch.inf)
    return scores.where(scores != -torch.inf, -torch.inf)


def best_before_and_after(lattice: Lattice) -> tuple[Tensor, Tensor]:
    """Return the best scores of all that is before, and of all that is after, each label.

    The sum of both and of the label's own unary score is its max-marginal. Functions of `segments` share the results.
    Returns two tensors (B, T, L), 0 at the ends and in the padding, -inf where nothing is possible. Differentiable.
    """
    before, after = best_scores(*operands(lattice))
    return before, after


@torch.no_grad()
def viterbi(lattice: Lattice) -> tuple[Tensor, Tensor]:
    """Return the best label sequence of each sequence and its score (Viterbi 1967).

    Of several best label sequences, the first in lexicographic order is returned. There are no gradients: use
    `path_score`. Returns scores (B,) and labels (B, T) int64, 0 in the padding. Without a possible label sequence the
    score is -inf and all labels are 0. An empty sequence has score 0.

    Raises:
        InvalidScoreError: on a CPU, a score of +inf or NaN.

    Example:
        >>> import torch
        >>> from structperc.chain import viterbi
        >>> from structperc.structures import Lattice
        >>> lattice = Lattice(torch.tensor([[[0.0, 1.0], [2.0, 0.0]]]), torch.zeros(1, 1, 2, 2), torch.tensor([2]))
        >>> viterbi(lattice)
        (tensor([3.]), tensor([[1, 0]]))
    """
    if lattice.segments is not None:
        return best_labels(lattice)
    scores, labels = best_path(*operands(lattice))
    return scores, labels


class Viterbi(nn.Module):
    """Module that searches for the best label sequence; see the function `viterbi`."""

    def forward(self, lattice: Lattice) -> tuple[Tensor, Tensor]:
        """Return the scores (B,) and labels (B, T) of the best label sequences."""
        return viterbi(lattice)


def path_score(lattice: Lattice, labels: Tensor, rows: Tensor | None = None) -> Tensor:
    """Return the scores of given label sequences.

    The searches have no gradients. To train, search for label sequences first, and then compute their scores here: the
    gradient reaches the scores of the labels and label pairs on the path. `labels`: (B, T), one label sequence for each
    sequence; (B, K, T), several for each; or (S, T) with `rows`. Labels in the padding are ignored. `rows`: (S,) int64,
    the sequence that each label sequence belongs to. Returns the scores (B,), (B, K) or (S,). On other devices than a
    CPU the score is NaN if a label is outside 0..L-1.

    Raises:
        InputError: wrong shapes; on a CPU also a label of a token outside 0..L-1.
    """
    B, T = lattice.unary.shape[:2]
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
    if lattice.segments is not None:
        return score_of_labels(lattice, labels, rows)
    return scores_of(*operands(lattice), labels, rows)


@torch.no_grad()
def exportable_viterbi(lattice: Lattice) -> tuple[Tensor, Tensor]:
    """Return the results of `viterbi` by operations of torch only, for a program that runs without structperc.

    An exported `viterbi` is an operator of this library. Here a loop over tokens is exported as one scan, for sequences
    of any length >= 1. Scores may differ from those of `viterbi` in the last digit, and `viterbi` is faster. Returns
    scores (B,) and labels (B, T) int64.
    """
    scores, labels = implementation("reference", "viterbi")(*operands(lattice))
    return scores, labels


@torch.no_grad()
def exportable_marginals(lattice: Lattice) -> tuple[Tensor, Tensor]:
    """Return the results of `log_partition` and `marginals` by operations of torch only, for export; T >= 1.

    With the score of `exportable_viterbi`, exp(score - log Z) is the probability of its label sequence. Returns log Z
    (B,) and the marginals (B, T, L).
    """
    log_z, probabilities, _ = implementation("reference", "forward_backward")(*operands(lattice), False)
    return log_z, probabilities


class ExportableViterbi(nn.Module):
    """Module that searches for the best label sequence by operations of torch only; see `exportable_viterbi`.

    Its arguments are tensors, as torch.export requires.
    """

    def forward(self, unary: Tensor, edge: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """Return the scores (B,) and labels (B, T) of the best label sequences.

        Args:
            unary: (B, T, L) scores of labels.
            edge: (B, T, L, L) or (1, 1, L, L) scores of label pairs.
            lengths: (B,) int64.
        """
        return exportable_viterbi(Lattice(unary, edge, lengths))
