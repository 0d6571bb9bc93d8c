"""The checks that every search makes first: shapes that fit, one precision, edges as small as they are.

Boolean masks of any form (holes, left padding, [CLS]) turned into lengths, and results put back in their places.
"""

import torch
from torch import Tensor

from structperc.errors import InputError
from structperc.structures import Lattice, real_tokens

HALF = (torch.float16, torch.bfloat16)


def validate_lattice(lattice: Lattice) -> Lattice:
    """Return the lattice as operators read it: float32 or float64, expanded edges narrowed, lengths on its device.

    Half precision is upcast to float32: sums over a sequence lose the score in bfloat16. Raises InputError, which
    names the tensor, its shape and what was expected. Only shapes are looked at, so that no device is waited for.
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
        raise InputError(f"lengths: numbers of tokens are integers, got {lengths.dtype}")
    unary, edge = full_precision(unary), full_precision(narrow_edges(lattice).edge)
    if unary.dtype != edge.dtype:
        dtype = torch.promote_types(unary.dtype, edge.dtype)
        unary, edge = unary.to(dtype), edge.to(dtype)
    lengths = lengths.to(unary.device, torch.int64, non_blocking=True)
    if lengths.device.type != "cpu":
        lengths = lengths.clamp(0, T)  # a kernel must not read beyond; on a CPU they are looked at
    return Lattice(unary, edge, lengths)


def _misshapen(name: str, x: Tensor, expected: str) -> InputError:
    return InputError(f"{name}: the shape is {tuple(x.shape)}, expected {expected}")


def narrow_edges(lattice: Lattice) -> Lattice:
    """Return the lattice with expanded views of edge scores as small as they are: so large is their gradient, too.

    A leaf that asks for a gradient stays as large as it is, where gradients are kept: each of its entries has one.
    """
    edge = lattice.edge
    if edge.is_leaf and edge.requires_grad and torch.is_grad_enabled():
        return lattice
    for d in (0, 1):
        if edge.shape[d] > 1 and edge.stride(d) == 0:
            edge = edge.narrow(d, 0, 1)
    return lattice._replace(edge=edge)


def expand_edges(lattice: Lattice) -> Tensor:
    """Return edge scores (B, T, L, L), an expanded view where they are the same for many."""
    return lattice.edge.expand(*lattice.unary.shape, -1)


def full_precision(x: Tensor) -> Tensor:
    """Return x, or half precision as float32."""
    return x.float() if x.dtype in HALF else x


def to_double(lattice: Lattice) -> Lattice:
    """Return the lattice in double precision, where the device has it."""
    if lattice.unary.device.type == "mps":
        return lattice
    return lattice._replace(unary=lattice.unary.double(), edge=lattice.edge.double())


def token_mask(lattice: Lattice) -> Tensor:
    """Return (B, T) bool, True at real tokens."""
    return real_tokens(lattice.lengths.to(lattice.unary.device), lattice.unary.shape[1])


def is_stationary(edge: Tensor) -> bool:
    """Return whether one transition matrix serves all sequences and tokens."""
    return edge.numel() > 0 and all(edge.stride(d) == 0 or edge.shape[d] == 1 for d in (0, 1))


def compact(values: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Move the masked tokens of each row to its left: values (B, T, ...), mask (B, T) bool
    -> values (B, T', ...) with 0 in the padding, lengths (B,); T' is the largest length.

    A row without any masked token gets length 0. Gradients flow back to the masked tokens only.
    """
    lengths = mask.sum(1)
    real = real_tokens(lengths, int(lengths.max()) if len(lengths) else 0)
    compacted = values.new_zeros(*real.shape, *values.shape[2:])
    compacted[real] = values[mask]
    return compacted, lengths


def scatter(values: Tensor, mask: Tensor, fill: float = 0) -> Tensor:
    """Put values (B, T', ...) back where `compact` took them: (B, T, ...), with `fill` where the mask is False."""
    scattered = values.new_full((*mask.shape, *values.shape[2:]), fill)
    scattered[mask] = values[real_tokens(mask.sum(1), values.shape[1])]
    return scattered
