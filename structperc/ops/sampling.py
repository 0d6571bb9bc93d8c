"""Labellings drawn from the distribution of a lattice: filtering backwards, sampling forwards."""

from torch import Tensor

from structperc.ops.declare import declare


def _shapes(unary: Tensor, edge: Tensor, lengths: Tensor, noise: Tensor) -> Tensor:
    return lengths.new_empty(noise.shape, dtype=lengths.dtype)


sample = declare("sampling", "sample", "(Tensor unary, Tensor edge, Tensor lengths, Tensor noise) -> Tensor", _shapes)
"""unary (B, T, L), edge (B or 1, T or 1, L, L), lengths (B,) int64, noise (B, n, T) float64 uniform in [0, 1) ->
labels (B, n, T) int64, each drawn from p(y | x): at each token the first label whose cumulative probability, given the
label before, exceeds the noise. 0 in the padding and without a legal labelling.
"""
