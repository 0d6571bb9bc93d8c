"""Sentences of a sequence that have nothing to do with one another, and each of them by itself."""

import torch
from torch import Tensor

from structperc.chain.lattices import expand_edges
from structperc.structures import Lattice, padded_places, real_tokens


def separate(lattice: Lattice, first: Tensor) -> Lattice:
    """Return the lattice with a score of 0 for each pair of labels into the first token of a sentence.

    first (B, T) bool says which tokens these are. What may begin and end a sentence is said by its unary scores.
    Differentiable.
    """
    return lattice._replace(edge=expand_edges(lattice).masked_fill(first[:, :, None, None], 0))


def sentences(lattice: Lattice, first: Tensor) -> tuple[Lattice, Tensor]:
    """Return the sentences (S, T', ...) of all sequences, one after the other, as sequences of their own, and where
    their tokens stand: places (S, T') int64 in the flattened (B, T), 0 in the padding.

    first (B, T) bool says where they begin; the first token of a sequence is one. Differentiable.
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
