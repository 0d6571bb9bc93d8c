"""The best segmentations (Sarawagi & Cohen 2004), scores of given ones, and max-marginals."""

import torch
from torch import Tensor

from structperc.chain.kbest import check_candidates
from structperc.errors import InputError
from structperc.ops import semi_markov_best, semi_markov_kbest, semi_markov_viterbi
from structperc.ops.cpu.checks import check_labels, check_lengths
from structperc.ops.reference.semi_markov import semi_markov_path_score
from structperc.semi_markov.lattices import validate_segment_lattice
from structperc.structures import Candidates, SegmentLattice


@torch.no_grad()
def viterbi(lattice: SegmentLattice) -> tuple[Tensor, Tensor]:
    """Return the best segmentation of each sequence and its score (Sarawagi & Cohen 2004, Section 3.1).

    Of several best segmentations, the first in lexicographic order of its labels is returned. There are no gradients:
    use `path_score`.

    Args:
        lattice: scores of B sequences.

    Returns:
        Scores (B,), -inf if no segmentation is possible and 0 for an empty sequence; labels (B, T) int64 in 0..2C - 1,
        0 in both cases and in the padding. Label c begins a segment of type c, C + c continues it.

    Raises:
        InputError: wrong shapes.
        InvalidScoreError: on a CPU, a score of +inf or NaN.

    Example:
        >>> import torch
        >>> from structperc.semi_markov import viterbi
        >>> from structperc.structures import SegmentLattice
        >>> token = torch.tensor([[[0.0, 1.0], [0.0, 1.0], [2.0, 0.0]]])
        >>> viterbi(SegmentLattice(token, torch.zeros(1, 1, 2, 2), -torch.ones(2, 2), torch.tensor([3])))
        (tensor([3.]), tensor([[1, 3, 0]]))
    """
    scores, labels = semi_markov_viterbi(*validate_segment_lattice(lattice))
    return scores, labels


@torch.no_grad()
def kbest(lattice: SegmentLattice, k: int) -> Candidates:
    """Return the k best segmentations of each sequence, exactly and without duplicates.

    Segmentations of equal scores are in lexicographic order of their labels.

    Args:
        lattice: scores of B sequences.
        k: number of candidates, at least 1.

    Returns:
        The candidates, best first; labels (B, k, T) are those of `viterbi`.

    Raises:
        InputError: wrong shapes, k < 1, or candidates that do not fit into memory.
        InvalidScoreError: on a CPU, a score of +inf or NaN.

    Example:
        >>> import torch
        >>> from structperc.semi_markov import kbest
        >>> from structperc.structures import SegmentLattice
        >>> token = torch.tensor([[[0.0, 1.0], [2.0, 0.0]]])
        >>> found = kbest(SegmentLattice(token, torch.zeros(1, 1, 2, 2), -torch.ones(2, 2), torch.tensor([2])), 3)
        >>> found.labels.tolist(), found.scores.tolist()
        ([[[0, 2], [1, 0], [0, 0]]], [[2.0, 2.0, 1.0]])
    """
    lattice = validate_segment_lattice(lattice)
    B, T, C = lattice.token.shape
    check_candidates(k, torch.Size([B, T, 2 * C]), lattice.token.device)
    return Candidates(*semi_markov_kbest(*lattice, k))


def path_score(lattice: SegmentLattice, labels: Tensor) -> Tensor:
    """Return the scores of given segmentations, with gradients.

    Args:
        lattice: scores of B sequences.
        labels: (B, T), one segmentation for each sequence, or (B, K, T), several for each; label c begins a segment of
            type c, C + c continues it. Labels in the padding are ignored.

    Returns:
        The scores (B,) or (B, K); -inf for a segment of more than D tokens, and for a label that continues no segment
        of its type. On other devices than a CPU the score is NaN if a label is outside 0..2C - 1.

    Raises:
        InputError: wrong shapes; on a CPU also a label of a token outside 0..2C - 1.

    Example:
        >>> import torch
        >>> from structperc.semi_markov import path_score
        >>> from structperc.structures import SegmentLattice
        >>> token = torch.tensor([[[0.0, 1.0], [2.0, 0.0]]])
        >>> lattice = SegmentLattice(token, torch.zeros(1, 1, 2, 2), -torch.ones(2, 2), torch.tensor([2]))
        >>> path_score(lattice, torch.tensor([[[0, 2], [0, 0]]]))
        tensor([[2., 1.]])
    """
    lattice = validate_segment_lattice(lattice)
    B, T, C = lattice.token.shape
    if labels.dim() not in (2, 3) or labels.shape[0] != B or labels.shape[-1] != T:
        raise InputError(f"labels: expected shape ({B}, {T}) or ({B}, K, {T}), got {tuple(labels.shape)}")
    if labels.dim() == 2:
        return path_score(lattice, labels.unsqueeze(1)).squeeze(1)
    if labels.is_cpu and not (torch.compiler.is_compiling() or torch.compiler.is_exporting()):
        check_lengths(lattice.lengths, T)
        rows = torch.arange(B).repeat_interleave(labels.shape[1])
        check_labels(labels.flatten(0, 1), lattice.lengths, rows, 2 * C)
    return semi_markov_path_score(*lattice, labels)


def max_marginals(lattice: SegmentLattice) -> Tensor:
    """Return the best score of a segmentation that contains a given segment, for all segments.

    The gradient of an entry is the gradient of the score of its segmentation, of one of several equal ones.

    Args:
        lattice: scores of B sequences.

    Returns:
        The scores (B, T, D, C) of segments by first token, number of tokens less 1, and type; -inf where impossible
        and in the padding, NaN for a sequence with a score of +inf or NaN.

    Raises:
        InputError: wrong shapes.

    Example:
        >>> import torch
        >>> from structperc.semi_markov import max_marginals
        >>> from structperc.structures import SegmentLattice
        >>> token = torch.tensor([[[0.0, 1.0], [2.0, 0.0]]])
        >>> lattice = SegmentLattice(token, torch.zeros(1, 1, 2, 2), torch.zeros(2, 2), torch.tensor([2]))
        >>> max_marginals(lattice)[0, 0]  # of segments that begin at token 0: (D, C)
        tensor([[2., 3.],
                [2., 1.]])
    """
    best: Tensor = semi_markov_best(*validate_segment_lattice(lattice))
    return best
