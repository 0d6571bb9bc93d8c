"""The best labelling of each sequence (Viterbi 1967)."""

import torch
from torch import Tensor

from structperc.ops.registration import declare


def _shapes(unary: Tensor, edge: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    B, T, _ = unary.shape
    return unary.new_empty(B), lengths.new_empty(B, T, dtype=torch.int64)


_viterbi = declare("viterbi", "viterbi", "(Tensor unary, Tensor edge, Tensor lengths) -> (Tensor, Tensor)", _shapes)


def viterbi(unary: Tensor, edge: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """Return scores (B,) and labels (B, T) int64 of the best labelling of each sequence.

    unary is (B, T, L), edge (B or 1, T or 1, L, L), lengths (B,) int64. Among equal labellings the first in
    lexicographic order. A sequence without any legal labelling scores -inf, an empty one 0; their labels, and those in
    the padding, are 0. The score is the sum along the labels, in double precision where the device has it. Raises
    InfiniteScore, on a CPU, for a score of +inf.
    """
    return _viterbi(unary, edge, lengths)
