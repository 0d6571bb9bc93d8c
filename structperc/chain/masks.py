"""Boolean masks of any form (holes, left padding, [CLS]) turned into lengths, and results put back in their places."""

from torch import Tensor

from structperc.structures import real_tokens


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
