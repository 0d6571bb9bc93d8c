"""Checks and conversions of lattices: shapes and precision, masks with holes, sentences of documents."""

from collections.abc import Callable

import torch
from torch import Tensor

from structperc.errors import InputError
from structperc.structures import Lattice, padded_places, real_tokens

HALF = (torch.float16, torch.bfloat16)


def validate_lattice(lattice: Lattice) -> Lattice:
    """Return a lattice of label pairs as operators need it.

    Half precision becomes float32, since sums over a sequence lose their digits in bfloat16. Expanded edge scores are
    narrowed, those into the first tokens of independent sentences become 0, and lengths are moved to the device of the
    scores. Only shapes and types are checked, so that devices need not be synchronised. Returns the lattice in float32
    or float64, with lengths int64, without `starts`. Raises InputError: a wrong shape, lengths that are not integers,
    or scores of segments.
    """
    check_chain(lattice)
    unary, edge, starts = lattice.unary, lattice.edge, lattice.starts
    shape, edges = unary.shape, edge.shape
    if len(shape) != 3 or not shape[2]:
        raise _misshapen("unary", unary, "(B, T, L) with at least one label")
    B, T, L = shape
    if len(edges) != 4 or edges[2] != L or edges[3] != L or edges[0] not in (1, B) or edges[1] not in (1, T):
        raise _misshapen("edge", edge, f"({B} or 1, {T} or 1, {L}, {L})")
    unary, edge = full_precision(unary), full_precision(_narrow(edge))
    if unary.dtype != edge.dtype:
        dtype = torch.promote_types(unary.dtype, edge.dtype)
        unary, edge = unary.to(dtype), edge.to(dtype)
    if starts is not None:
        check_starts(lattice)
        edge = edge.expand(B, T, L, L).masked_fill(starts[:, :, None, None], 0)
    return Lattice(unary, edge, validate_lengths(lattice.lengths, unary))


def operands(lattice: Lattice) -> tuple[Tensor, Tensor, Tensor]:
    """Return unary scores, edge scores and lengths of `validate_lattice`, the first arguments of operators."""
    lattice = validate_lattice(lattice)
    return lattice.unary, lattice.edge, lattice.lengths


def check_starts(lattice: Lattice) -> None:
    """Raise InputError for first tokens of sentences of a wrong shape."""
    shape = lattice.unary.shape[:2]
    if lattice.starts is not None and lattice.starts.shape != shape:
        raise _misshapen("starts", lattice.starts, str(tuple(shape)))


def validate_lengths(lengths: Tensor, scores: Tensor) -> Tensor:
    """Return lengths as operators need them: int64 on the device of the scores.

    `lengths`: (B,) numbers of tokens. `scores`: (B, T, ...). Raises InputError: a wrong shape, or lengths that are not
    integers.
    """
    B, T = scores.shape[:2]
    if lengths.shape != (B,):
        raise _misshapen("lengths", lengths, f"({B},)")
    if lengths.dtype != torch.int64 or lengths.device != scores.device:
        if lengths.is_floating_point():
            raise InputError(f"lengths: expected integers, got {lengths.dtype}")
        lengths = lengths.to(scores.device, torch.int64, non_blocking=True)
    if not scores.is_cpu:
        lengths = lengths.clamp(0, T)  # a kernel must not read beyond; on a CPU operators check them
    return lengths


def check_chain(lattice: Lattice) -> None:
    """Raise InputError for a lattice with scores of segments."""
    if lattice.segments is not None:
        raise InputError(
            "scores of segments are not supported by functions of label pairs, such as edge_marginals; use a scorer "
            "without segments"
        )


def _misshapen(name: str, x: Tensor, expected: str) -> InputError:
    return InputError(f"{name}: expected shape {expected}, got {tuple(x.shape)}")


def narrow_edges(lattice: Lattice) -> Lattice:
    """Remove expanded dimensions of the edge scores, so that their gradient is small, too.

    A leaf that requires a gradient keeps its shape while gradients are enabled. Returns the lattice with edge scores (B
    or 1, T or 1, L, L).
    """
    return lattice._replace(edge=_narrow(lattice.edge))


def _narrow(edge: Tensor) -> Tensor:
    if edge.requires_grad and edge.is_leaf and torch.is_grad_enabled():
        return edge
    for d in (0, 1):
        if edge.shape[d] > 1 and edge.stride(d) == 0:
            edge = edge.narrow(d, 0, 1)
    return edge


def expand_edges(lattice: Lattice) -> Tensor:
    """Return edge scores (B, T, L, L) as an expanded view."""
    return lattice.edge.expand(*lattice.unary.shape, -1)


def full_precision(x: Tensor) -> Tensor:
    """Convert half precision to float32; other types are not changed."""
    return x.float() if x.dtype in HALF else x


def map_scores(function: Callable[[Tensor], Tensor], lattice: Lattice) -> Lattice:
    """Apply a function to the scores of labels, of label pairs and of segments."""
    segments = lattice.segments
    if segments is not None:
        segments = segments._replace(scores=function(segments.scores))
    return lattice._replace(unary=function(lattice.unary), edge=function(lattice.edge), segments=segments)


def to_double(lattice: Lattice) -> Lattice:
    """Convert a lattice to double precision, where the device has it."""
    if lattice.unary.device.type == "mps":
        return lattice
    return map_scores(Tensor.double, lattice)


def token_mask(lattice: Lattice) -> Tensor:
    """Return a mask (B, T) bool, True at tokens and False in the padding."""
    return real_tokens(lattice.lengths.to(lattice.unary.device), lattice.unary.shape[1])


def is_stationary(edge: Tensor) -> bool:
    """Return True if all sequences and tokens share one transition matrix."""
    return edge.numel() > 0 and all(edge.stride(d) == 0 or edge.shape[d] == 1 for d in (0, 1))


def compact(values: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Move the tokens that a mask marks to the left of each row, so that lengths can replace the mask.

    Use this before a search if a mask has holes, such as special tokens and further subwords, or if the padding is on
    the left. `scatter` is the inverse. `values`: scores, labels or other values of the positions, (B, T, ...). `mask`:
    (B, T) bool, True at tokens. Returns the values of the tokens (B, T', ...), 0 in the padding, where T' is the
    largest number of tokens in a row, and the lengths (B,) int64.

    Example:
        >>> import torch
        >>> from structperc.chain import compact
        >>> mask = torch.tensor([[False, True, False, True]])
        >>> compact(torch.tensor([[5, 6, 7, 8]]), mask)
        (tensor([[6, 8]]), tensor([2]))
    """
    lengths = mask.sum(1)
    real = real_tokens(lengths, int(lengths.max()) if len(lengths) else 0)
    compacted = values.new_zeros(*real.shape, *values.shape[2:])
    compacted[real] = values[mask]
    return compacted, lengths


def scatter(values: Tensor, mask: Tensor, fill: float = 0) -> Tensor:
    """Move values that `compact` returned back to the positions of their tokens.

    Returns the values (B, T, ...).

    Args:
        values: (B, T', ...), one value for each token of a row.
        mask: (B, T) bool, the mask that `compact` was called with.
        fill: value of all positions where the mask is False.
    """
    scattered = values.new_full((*mask.shape, *values.shape[2:]), fill)
    scattered[mask] = values[real_tokens(mask.sum(1), values.shape[1])]
    return scattered


def split_sentences(lattice: Lattice) -> tuple[Lattice, Tensor]:
    """Turn each sentence of a document into a sequence of its own.

    `lattice`: scores of B documents, with `starts`. Returns the lattice (S, T', ...) of the S sentences, which
    gradients pass through, and the indices (S, T') int64 of their tokens in the flattened (B, T), 0 in the padding.

    Example:
        >>> import torch
        >>> from structperc.chain.lattices import split_sentences
        >>> from structperc.structures import Lattice
        >>> starts = torch.tensor([[True, False, True]])
        >>> document = Lattice(torch.zeros(1, 3, 2), torch.ones(1, 1, 2, 2), torch.tensor([3]), starts)
        >>> sentences, indices = split_sentences(document)
        >>> sentences.lengths, indices
        (tensor([2, 1]), tensor([[0, 1],
                [2, 0]]))
    """
    (B, T), real = lattice.unary.shape[:2], token_mask(lattice)
    starts = torch.arange(T, device=real.device).expand(B, T) == 0
    starts = starts if lattice.starts is None else starts | lattice.starts
    tokens = real.flatten().nonzero().squeeze(1)
    begin = starts[real].nonzero().squeeze(1)
    lengths = torch.cat([begin, begin.new_tensor([len(tokens)])]).diff()
    places, inside = padded_places(begin, lengths)
    places = tokens[places] * inside if len(tokens) else places

    def split(scores: Tensor) -> Tensor:
        return scores.expand(B, T, *scores.shape[2:]).reshape(B * T, *scores.shape[2:])[places]

    edge, segments = lattice.edge, lattice.segments
    edge = edge if edge.shape[:2] == (1, 1) else split(edge)
    if segments is not None and segments.scores.shape[:2] != (1, 1):
        segments = segments._replace(scores=split(segments.scores))
    return Lattice(split(lattice.unary), edge, lengths, segments=segments), places
