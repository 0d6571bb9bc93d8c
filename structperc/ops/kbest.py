"""The k best labellings of each sequence."""

import torch
from torch import Tensor

from structperc.ops.registration import declare


def _shapes(unary: Tensor, edge: Tensor, lengths: Tensor, k: int) -> tuple[Tensor, Tensor, Tensor]:
    B, T, _ = unary.shape
    return (
        lengths.new_empty(B, k, T, dtype=torch.int64),
        unary.new_empty(B, k),
        lengths.new_empty(B, k, dtype=torch.bool),
    )


_kbest = declare(
    "kbest", "kbest", "(Tensor unary, Tensor edge, Tensor lengths, int k) -> (Tensor, Tensor, Tensor)", _shapes
)


def kbest(unary: Tensor, edge: Tensor, lengths: Tensor, k: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return labels (B, k, T) int64, scores (B, k) and valid (B, k) bool of the k >= 1 best labellings, best first.

    unary is (B, T, L), edge (B or 1, T or 1, L, L), lengths (B,) int64. None is listed twice; equal ones stand in
    lexicographic order. Where there are fewer, and in the padding: labels 0, scores -inf, valid False. An empty
    sequence has one labelling, of score 0. Scores are those of `path_score`. Which labellings are among the k best is
    decided by their losses against the best one, in the precision of the lattice. Raises InfiniteScore, on a CPU, for a
    score of +inf.
    """
    return _kbest(unary, edge, lengths, k)
