"""Sums over all segmentations: log-partition, probabilities of segments, samples, entropy."""

import torch
from torch import Tensor

from structperc.chain.segment_scores import sum_of_segmentations
from structperc.ops import semi_markov_sample, semi_markov_sums
from structperc.ops.reference.semi_markov import semi_markov_entropy
from structperc.semi_markov.lattices import validate_segment_lattice
from structperc.structures import SegmentLattice


def log_partition(lattice: SegmentLattice) -> Tensor:
    """Return the log-partition of each sequence, log Z = log sum_s exp(score(s)) over all segmentations s.

    Its gradient is the probabilities of the segments. Higher derivatives are available too.

    Args:
        lattice: scores of B sequences.

    Returns:
        log Z (B,), 0 for an empty sequence; -inf, with a gradient of 0, where no segmentation is possible.

    Raises:
        InputError: wrong shapes.

    Example:
        >>> import torch
        >>> from structperc.semi_markov import log_partition
        >>> from structperc.structures import SegmentLattice
        >>> token = torch.tensor([[[0.0, 1.0], [2.0, 0.0]]])
        >>> log_partition(SegmentLattice(token, torch.zeros(1, 1, 2, 2), torch.zeros(2, 2), torch.tensor([2])))
        tensor([3.7209])
    """
    return sum_of_segmentations(validate_segment_lattice(lattice))


def marginals(lattice: SegmentLattice) -> Tensor:
    """Return the probability p((t, d, c) in s | x) of each segment (Sarawagi & Cohen 2004, Section 3.2).

    Args:
        lattice: scores of B sequences.

    Returns:
        The probabilities (B, T, D, C) of segments by first token, number of tokens less 1, and type; 0 where impossible
        and in the padding. Differentiable.

    Raises:
        InputError: wrong shapes.

    Example:
        >>> import torch
        >>> from structperc.semi_markov import marginals
        >>> from structperc.structures import SegmentLattice
        >>> token = torch.tensor([[[0.0, 1.0], [2.0, 0.0]]])
        >>> lattice = SegmentLattice(token, torch.zeros(1, 1, 2, 2), torch.zeros(2, 2), torch.tensor([2]))
        >>> marginals(lattice)[0, 0]  # of segments that begin at token 0: (D, C); they sum to 1
        tensor([[0.2031, 0.5521],
                [0.1789, 0.0658]])
    """
    probabilities: Tensor = semi_markov_sums(*validate_segment_lattice(lattice))[1]
    return probabilities


@torch.no_grad()
def sample(lattice: SegmentLattice, n: int, generator: torch.Generator | None = None) -> Tensor:
    """Draw segmentations independently from p(s | x).

    Args:
        lattice: scores of B sequences.
        n: number of segmentations drawn for each sequence.
        generator: random number generator, on the device of the lattice.

    Returns:
        Labels (B, n, T) int64 as of `viterbi`, 0 in the padding and where no segmentation is possible.

    Raises:
        InputError: wrong shapes.
        InvalidScoreError: on a CPU, a score of +inf or NaN.

    Example:
        >>> import torch
        >>> from structperc.semi_markov import sample
        >>> from structperc.structures import SegmentLattice
        >>> token = torch.tensor([[[0.0, 1.0], [2.0, 0.0]]])
        >>> lattice = SegmentLattice(token, torch.zeros(1, 1, 2, 2), torch.zeros(2, 2), torch.tensor([2]))
        >>> drawn = sample(lattice, n=1000, generator=torch.Generator().manual_seed(0))
        >>> 0.58 < (drawn[0, :, 0] == 1).float().mean() < 0.66  # 0.618: segments of type 1 that begin at token 0
        tensor(True)
    """
    lattice = validate_segment_lattice(lattice)
    B, T, _ = lattice.token.shape
    dtype = torch.float32 if lattice.token.device.type == "mps" else torch.float64
    noise = torch.rand(B, n, T, generator=generator, dtype=dtype, device=lattice.token.device)
    return semi_markov_sample(*lattice, noise)


def entropy(lattice: SegmentLattice) -> Tensor:
    """Return the entropy H(s | x) of each sequence over its segmentations, in nats. Differentiable.

    It is computed as a sum of conditional entropies, without differences of large sums.

    Args:
        lattice: scores of B sequences.

    Returns:
        The entropy (B,), 0 for an empty sequence and where no segmentation is possible; NaN where a score is +inf or
        NaN.

    Raises:
        InputError: wrong shapes.

    Example:
        >>> import torch
        >>> from structperc.semi_markov import entropy
        >>> from structperc.structures import SegmentLattice
        >>> token = torch.zeros(1, 2, 2)  # 4 segmentations by single tokens, 2 by one segment
        >>> entropy(SegmentLattice(token, torch.zeros(1, 1, 2, 2), torch.zeros(2, 2), torch.tensor([2])))  # log 6
        tensor([1.7918])
    """
    return semi_markov_entropy(*validate_segment_lattice(lattice))
