"""What it costs to choose one candidate of a list where another one is right."""

from abc import ABC, abstractmethod

import torch
from torch import Tensor

from structperc.data.labels import LabelSet
from structperc.errors import InputError
from structperc.metrics.accuracy import SentenceBoundaries, sentence_boundaries
from structperc.metrics.segments import check_beta, opened_segments
from structperc.structures import Batch, real_tokens


class CandidateCost(ABC):
    """Base of costs between the candidates of a list: 0 for a candidate against itself, never negative."""

    @abstractmethod
    def __call__(self, batch: Batch, labellings: Tensor, labels: LabelSet) -> Tensor:
        """Return the costs (B, K, K) float64: entry [b, i, j] is that of choosing i where j is right.

        labellings: (B, K, T) int64, labels of the set `labels`; the padding may hold anything.
        """


class TokenCost(CandidateCost):
    """The number of wrong labels: Hamming's distance."""

    def __call__(self, batch: Batch, labellings: Tensor, labels: LabelSet) -> Tensor:
        """Return the numbers (B, K, K) float64 of tokens with other labels."""
        real = real_tokens(batch.lengths, labellings.shape[2]).unsqueeze(1)
        same = in_common(labellings.where(real, -1))
        return (batch.lengths.view(-1, 1, 1) - same).double()


class SegmentCost(CandidateCost):
    """1 - F of the segments of a sequence: 0 where both have the same ones, 1 where they share none.

    Segments are read as `metrics.segment_counts` does; two labellings without any have cost 0. The expected cost is
    that of each sequence by itself, not of the counts of a corpus, of which F is no mean.

    Args:
        beta: weight of recall against precision; 1 is F1.

    Raises:
        InputError: beta is not positive; in a call: labels without segments.
    """

    def __init__(self, beta: float = 1.0) -> None:
        check_beta(beta)
        self.beta = beta

    def __call__(self, batch: Batch, labellings: Tensor, labels: LabelSet) -> Tensor:
        """Return 1 - F (B, K, K) float64 between the segments of the labellings."""
        if labels.scheme == "none":
            raise InputError("SegmentCost: labels of scheme 'none' have no segments; use TokenCost")
        T = labellings.shape[2]
        boundaries = SentenceBoundaries(
            *(part.unsqueeze(1) for part in sentence_boundaries(batch.lengths, T, batch.sentences))
        )
        found = opened_segments(labellings.where(boundaries.real, 0), boundaries, labels)
        codes = torch.where(found.kind >= 0, found.kind * T + found.end, -1)
        number = (codes >= 0).sum(2).double()
        weights = number.unsqueeze(2) + self.beta**2 * number.unsqueeze(1)  # of chosen ones, of right ones
        return torch.where(weights > 0, 1 - (1 + self.beta**2) * in_common(codes) / weights, 0.0)


def in_common(codes: Tensor) -> Tensor:
    """Return how many places of each two candidates have the same code: codes (B, K, T) int64 -> (B, K, K) int64.

    A negative code is no code.
    """
    there = codes >= 0
    return torch.stack([((codes == other.unsqueeze(1)) & there).sum(2) for other in codes.unbind(1)], 2)
