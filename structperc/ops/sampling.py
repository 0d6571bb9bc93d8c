"""Labellings drawn from the distribution of a lattice: filtering backwards, sampling forwards."""

from torch import Tensor

from structperc.ops.registration import declare


def _shapes(unary: Tensor, edge: Tensor, lengths: Tensor, noise: Tensor) -> Tensor:
    return lengths.new_empty(noise.shape, dtype=lengths.dtype)


_sample = declare("sampling", "sample", "(Tensor unary, Tensor edge, Tensor lengths, Tensor noise) -> Tensor", _shapes)


def sample(unary: Tensor, edge: Tensor, lengths: Tensor, noise: Tensor) -> Tensor:
    """Return labels (B, n, T) int64, each labelling drawn from p(y | x); 0 in the padding and where none is legal.

    unary is (B, T, L), edge (B or 1, T or 1, L, L), lengths (B,) int64, noise (B, n, T) float64 uniform in [0, 1). At
    each token it is the first label whose cumulative probability, given the label before, exceeds the noise.
    """
    return _sample(unary, edge, lengths, noise)
