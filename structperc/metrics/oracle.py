"""Oracle F1 of n-best lists: the F1 of a re-ranker that always makes the best choice."""

from typing import Any

import torch
from torch import Tensor

from structperc.data.labels import LabelSet
from structperc.metrics.segments import SegmentF1, segment_counts
from structperc.structures import Candidates


def oracle(
    candidates: Candidates, target: Tensor, lengths: Tensor, labels: LabelSet, sentences: Tensor | None = None
) -> Tensor:
    """Return the candidate of highest segment F1, (B,) int64, among candidates (B, K, T) against gold, target (B, T).

    Ties go to the one with the fewest segments (without a gold segment all have F1 = 0, and an empty candidate is
    perfect), then to the better ranked one. `sentences` (B, T) or None is as in `segment_counts`.
    """
    counts = segment_counts(candidates.labels, target, lengths, labels, sentences)
    correct, found, wanted = (count.sum(-1) for count in (counts.correct, counts.found, counts.gold))
    f1 = (2 * correct).double() / (found + wanted).clamp(min=1)
    f1 = torch.where(candidates.valid, f1, -1.0)
    best = f1 == f1.amax(1, keepdim=True)
    return torch.where(best, found, target.shape[1] + 1).argmin(1)


class OracleF1(SegmentF1):
    """Segment F1 of the best candidate of each sequence, its counts summed over the corpus.

    compute() -> SegmentScores, as for `SegmentF1`.
    """

    sequences: Tensor

    def __init__(self, labels: LabelSet, **kwargs: Any) -> None:
        super().__init__(labels, **kwargs)
        # A MetricCollection merges metrics of equal states: one state must have a name of its own.
        self.add_state("sequences", torch.zeros((), dtype=torch.int64), "sum")

    def update(  # type: ignore[override]
        self, candidates: Candidates, target: Tensor, lengths: Tensor, sentences: Tensor | None = None
    ) -> None:
        """Count the segments of the best of candidates (B, K, T) against gold, target (B, T); see `oracle`."""
        choice = oracle(candidates, target, lengths, self.labels, sentences)
        rows = torch.arange(len(choice), device=choice.device)
        self.sequences = self.sequences + len(choice)
        super().update(candidates.labels[rows, choice], target, lengths, sentences)
