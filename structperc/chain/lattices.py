"""Checks and conversions of lattices: shapes and precision, masks with holes, sentences of documents."""

import torch
from torch import Tensor

from structperc.errors import InputError
from structperc.structures import Lattice, padded_places, real_tokens

HALF = (torch.float16, torch.bfloat16)


def validate_lattice(lattice: Lattice) -> Lattice:
    """Return the lattice as operators need it: float32 or float64, expanded edges narrowed, lengths on its device.

    Half precision becomes float32, since sums over a sequence lose their digits in bfloat16. Only shapes are checked,
    so that devices need not be synchronised.

    Raises:
        InputError: a shape or the type of the lengths is wrong.
    """
    unary, edge, lengths = lattice
    if unary.dim() != 3 or not unary.shape[2]:
        raise _misshapen("unary", unary, "(B, T, L) with at least one label")
    B, T, L = unary.shape
    if edge.dim() != 4 or edge.shape[2:] != (L, L) or edge.shape[0] not in (1, B) or edge.shape[1] not in (1, T):
        raise _misshapen("edge", edge, f"({B} or 1, {T} or 1, {L}, {L})")
    if lengths.shape != (B,):
        raise _misshapen("lengths", lengths, f"({B},)")
    if lengths.is_floating_point():
        raise InputError(f"lengths: expected integers, got {lengths.dtype}")
    unary, edge = full_precision(unary), full_precision(narrow_edges(lattice).edge)
    if unary.dtype != edge.dtype:
        dtype = torch.promote_types(unary.dtype, edge.dtype)
        unary, edge = unary.to(dtype), edge.to(dtype)
    lengths = lengths.to(unary.device, torch.int64, non_blocking=True)
    if lengths.device.type != "cpu":
        lengths = lengths.clamp(0, T)  # a kernel must not read beyond; on a CPU operators check them
    return Lattice(unary, edge, lengths)


def _misshapen(name: str, x: Tensor, expected: str) -> InputError:
    return InputError(f"{name}: expected shape {expected}, got {tuple(x.shape)}")


def narrow_edges(lattice: Lattice) -> Lattice:
    """Return the lattice without expanded dimensions of the edge scores, so that their gradient is small, too.

    A leaf that requires a gradient keeps its shape while gradients are enabled.
    """
    edge = lattice.edge
    if edge.is_leaf and edge.requires_grad and torch.is_grad_enabled():
        return lattice
    for d in (0, 1):
        if edge.shape[d] > 1 and edge.stride(d) == 0:
            edge = edge.narrow(d, 0, 1)
    return lattice._replace(edge=edge)


def expand_edges(lattice: Lattice) -> Tensor:
    """Return edge scores (B, T, L, L) as an expanded view."""
    return lattice.edge.expand(*lattice.unary.shape, -1)


def full_precision(x: Tensor) -> Tensor:
    """Convert half precision to float32."""
    return x.float() if x.dtype in HALF else x


def to_double(lattice: Lattice) -> Lattice:
    """Convert a lattice to double precision, where the device has it."""
    if lattice.unary.device.type == "mps":
        return lattice
    return lattice._replace(unary=lattice.unary.double(), edge=lattice.edge.double())


def token_mask(lattice: Lattice) -> Tensor:
    """Return the mask (B, T) of real tokens."""
    return real_tokens(lattice.lengths.to(lattice.unary.device), lattice.unary.shape[1])


def is_stationary(edge: Tensor) -> bool:
    """Return True if all sequences and tokens share one transition matrix."""
    return edge.numel() > 0 and all(edge.stride(d) == 0 or edge.shape[d] == 1 for d in (0, 1))


def compact(values: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Turn a mask of any form (holes, left padding, [CLS]) into lengths: move masked tokens to the left of each row.

    Args:
        values: (B, T, ...).
        mask: (B, T) bool.

    Returns:
        values (B, T', ...) with 0 in the padding, and lengths (B,), 0 for rows without masked tokens.
    """
    lengths = mask.sum(1)
    real = real_tokens(lengths, int(lengths.max()) if len(lengths) else 0)
    compacted = values.new_zeros(*real.shape, *values.shape[2:])
    compacted[real] = values[mask]
    return compacted, lengths


def scatter(values: Tensor, mask: Tensor, fill: float = 0) -> Tensor:
    """Put values (B, T', ...) of `compact` back in their places (B, T, ...), with `fill` where the mask is False."""
    scattered = values.new_full((*mask.shape, *values.shape[2:]), fill)
    scattered[mask] = values[real_tokens(mask.sum(1), values.shape[1])]
    return scattered


def separate_sentences(lattice: Lattice, first: Tensor) -> Lattice:
    """Set the edge scores into the first tokens of sentences, marked by `first` (B, T) bool, to 0.

    The unary scores have -inf for labels that may not begin or end a sentence. Differentiable.
    """
    return lattice._replace(edge=expand_edges(lattice).masked_fill(first[:, :, None, None], 0))


def split_sentences(lattice: Lattice, first: Tensor) -> tuple[Lattice, Tensor]:
    """Return each sentence as a sequence, and the places of its tokens.

    Args:
        lattice: of B sequences.
        first: (B, T) bool, the first tokens of sentences, that of each sequence included.

    Returns:
        A lattice (S, T', ...), differentiable, and indices (S, T') int64 into the flattened (B, T), 0 in the padding.
    """
    (B, T, L), device = lattice.unary.shape, lattice.unary.device
    real = real_tokens(lattice.lengths.to(device), T)
    tokens = real.flatten().nonzero().squeeze(1)
    begin = first[real].nonzero().squeeze(1)
    lengths = torch.cat([begin, begin.new_tensor([len(tokens)])]).diff()
    places, inside = padded_places(begin, lengths)
    places = tokens[places] * inside if len(tokens) else places
    edge = lattice.edge
    if edge.shape[:2] != (1, 1):
        edge = expand_edges(lattice).reshape(B * T, L, L)[places]
    return Lattice(lattice.unary.reshape(B * T, L)[places], edge, lengths), places
