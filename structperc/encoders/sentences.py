"""Sequences of several sentences, each of which is encoded by itself."""

from collections.abc import Callable

from torch import Tensor

from structperc.structures import Batch, padded_places


def by_sentence(encode: Callable[[Tensor, Tensor], Tensor], vectors: Tensor, batch: Batch) -> Tensor:
    """Return what `encode` gives for the sentences of a batch, put where their tokens stand.

    Args:
        encode: (vectors (S, T', D), lengths (S,)) -> vectors (S, T', E), 0 in the padding.
        vectors: (B, T, D) of the tokens.
        batch: tells where sentences begin and end.

    Returns:
        vectors (B, T, E), 0 in the padding.
    """
    (B, T, D), device = vectors.shape, vectors.device
    starts = batch.first.to(device).flatten().nonzero().squeeze(1)
    lengths = batch.last.to(device).flatten().nonzero().squeeze(1) - starts + 1
    places, real = padded_places(starts, lengths)
    found = encode(vectors.reshape(B * T, D)[places] * real.unsqueeze(2), lengths)
    whole = found.new_zeros(B * T, found.shape[2])
    return whole.index_copy(0, places[real], found[real]).view(B, T, found.shape[2])
