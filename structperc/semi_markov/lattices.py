"""Checks of lattices of segments, and longest segments of each type."""

from collections.abc import Sequence

import torch
from torch import Tensor

from structperc.chain.lattices import full_precision, validate_lengths
from structperc.errors import InputError
from structperc.structures import SegmentLattice


def validate_segment_lattice(lattice: SegmentLattice) -> SegmentLattice:
    """Return a lattice as operators need it; half precision becomes float32.

    Only shapes and types are checked, so that devices need not be synchronised.

    Args:
        lattice: scores of B sequences.

    Returns:
        The lattice in float32 or float64, with lengths int64 on the device of the scores.

    Raises:
        InputError: a wrong shape, or lengths that are not integers.

    Example:
        >>> import torch
        >>> from structperc.semi_markov.lattices import validate_segment_lattice
        >>> from structperc.structures import SegmentLattice
        >>> lattice = SegmentLattice(
        ...     torch.zeros(1, 3, 2).half(), torch.zeros(1, 1, 2, 2), torch.zeros(2, 2), torch.tensor([3])
        ... )
        >>> validate_segment_lattice(lattice).token.dtype
        torch.float32
    """
    token, segment, pair, lengths = lattice
    if token.dim() != 3 or not token.shape[2]:
        raise InputError(f"token: expected shape (B, T, C) with at least one type, got {tuple(token.shape)}")
    B, T, C = token.shape
    sizes = segment.shape
    if len(sizes) != 4 or sizes[0] not in (1, B) or sizes[1] not in (1, T) or not sizes[2] or sizes[3] != C:
        expected = f"({B} or 1, {T} or 1, D, {C}) with D >= 1"
        raise InputError(f"segment: expected shape {expected}, got {tuple(sizes)}")
    if pair.shape != (C, C):
        raise InputError(f"pair: expected shape ({C}, {C}), got {tuple(pair.shape)}")
    token, segment, pair = full_precision(token), full_precision(segment), full_precision(pair)
    dtype = torch.promote_types(torch.promote_types(token.dtype, segment.dtype), pair.dtype)
    lengths = validate_lengths(lengths, token)
    return SegmentLattice(token.to(dtype), segment.to(dtype), pair.to(dtype), lengths)


def limit_lengths(lattice: SegmentLattice, longest: Sequence[int] | Tensor) -> SegmentLattice:
    """Make segments impossible that are too long for their type.

    Args:
        lattice: scores of B sequences.
        longest: the largest number of tokens of a segment of each of the C types; 1 for tokens outside entities.

    Returns:
        The lattice with segment scores of -inf. Differentiable.

    Raises:
        InputError: wrong shapes, or another number of types.

    Example:
        >>> import torch
        >>> from structperc.semi_markov import limit_lengths
        >>> from structperc.structures import SegmentLattice
        >>> lattice = SegmentLattice(
        ...     torch.zeros(1, 3, 2), torch.zeros(1, 1, 3, 2), torch.zeros(2, 2), torch.tensor([3])
        ... )
        >>> limit_lengths(lattice, [1, 2]).segment[0, 0]  # (D, C)
        tensor([[0., 0.],
                [-inf, 0.],
                [-inf, -inf]])
    """
    lattice = validate_segment_lattice(lattice)
    D, C = lattice.segment.shape[2:]
    most = torch.as_tensor(longest, device=lattice.segment.device)
    if most.shape != (C,):
        raise InputError(f"longest: expected {C} numbers of tokens, one of each type, got {tuple(most.shape)}")
    sizes = torch.arange(1, D + 1, device=most.device)
    return lattice._replace(segment=lattice.segment.where(sizes.unsqueeze(1) <= most, -torch.inf))
