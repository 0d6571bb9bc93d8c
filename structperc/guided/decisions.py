"""What inference says about the sentences of a mini-batch."""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from structperc.guided.templates import UNKNOWN


class Decisions(NamedTuple):
    """The best hypothesis about each sentence, and how it came about.

    The order is that in which tokens were taken from the queue, each for the action of the hypothesis that led at
    the time, with the label `first`. With a beam of more than one state another hypothesis may win in the end:
    labels, windows and U are those of its actions.
    """

    labels: Tensor  # (B, T) int64, 0 in the padding
    order: Tensor  # (B, T) int64, the step in which a token was decided, from 0; -1 in the padding
    first: Tensor  # (B, T) int64, label that led in that step; 0 in the padding
    windows: Tensor  # (B, T, 4) int64, labels at the offsets -2, -1, 1, 2 that were known to the action; else UNKNOWN
    U: Tensor  # (B, T) score of the action; 0 in the padding
    scores: Tensor  # (B,) float64, V of the hypothesis, the sum of U

    @classmethod
    def open(cls, B: int, T: int, dtype: torch.dtype) -> "Decisions":
        """Return what is said when nothing is decided yet."""
        whole: dict[str, Any] = {"dtype": torch.int64}
        return cls(
            torch.zeros(B, T, **whole),
            torch.full((B, T), -1, **whole),
            torch.zeros(B, T, **whole),
            torch.full((B, T, 4), UNKNOWN, **whole),
            torch.zeros(B, T, dtype=dtype),
            torch.zeros(B, dtype=torch.float64),
        )
