"""All scores of a tagger in one collection, and the scores of the best candidate of each n-best list."""

from typing import Any

import torch
from torch import Tensor
from torchmetrics import MetricCollection

from structperc.data.labels import LabelSet
from structperc.metrics.accuracy import SentenceAccuracy, TokenAccuracy
from structperc.metrics.segments import SegmentF1, check_beta, segment_counts
from structperc.structures import Candidates


class Evaluation(MetricCollection):
    """All scores of a tagger: segment F1 (for labels with a tag scheme), token accuracy and sentence accuracy.

    Call update(preds (B, T), target (B, T), lengths (B,), sentences (B, T) or None).

    Args:
        labels: names and tag scheme of the labels.
        beta: weight of recall in the F measure of segments, see `f_measure`; 1 is that of conlleval.

    Raises:
        InputError: beta is not positive.
    """

    def __init__(self, labels: LabelSet, beta: float = 1.0) -> None:
        check_beta(beta)
        metrics = {"tokens": TokenAccuracy(), "sentences": SentenceAccuracy()}
        segments = {} if labels.scheme == "none" else {"segments": SegmentF1(labels)}
        super().__init__({**segments, **metrics}, compute_groups=False)
        self.beta = beta

    def compute(self) -> dict[str, float]:
        """Return the scores by name, in 0..1.

        Training selects models by `score`, which is F_beta of segments, or token accuracy for labels without segments.
        """
        tokens, sentences = float(self["tokens"].compute()), float(self["sentences"].compute())
        shares = {"token_accuracy": tokens, "sentence_accuracy": sentences}
        if "segments" not in self:
            return {"score": tokens, **shares}
        segments = self["segments"].compute()
        return {"score": segments.f(self.beta), "precision": segments.precision, "recall": segments.recall, **shares}

    def table(self) -> str:
        """Return the table of segments (if the labels have any), token accuracy and sentence accuracy."""
        if "segments" in self:
            first = self["segments"].compute().table(self.beta)
        else:
            first = f"token accuracy: {float(self['tokens'].compute()):.2%}"
        return f"{first}\nsentence accuracy: {float(self['sentences'].compute()):.2%}"


def oracle(
    candidates: Candidates, target: Tensor, lengths: Tensor, labels: LabelSet, sentences: Tensor | None = None
) -> Tensor:
    """Return the candidate of highest segment F1 of each sequence.

    Of candidates with equal F1 the one with the fewest segments is chosen (without a gold segment all have F1 = 0, and
    a candidate without segments is right), of these the first.

    Args:
        candidates: n-best lists, labels (B, K, T).
        target: gold label numbers (B, T) int64.
        lengths: (B,) int64; later tokens are padding.
        labels: names and tag scheme of the labels.
        sentences: sentence number (B, T) int64 of each token; by default each sequence is one sentence.

    Returns:
        Index (B,) int64 of a candidate.
    """
    counts = segment_counts(candidates.labels, target, lengths, labels, sentences)
    correct, found, wanted = (count.sum(-1) for count in (counts.correct, counts.found, counts.gold))
    f1 = (2 * correct).double() / (found + wanted).clamp(min=1)
    f1 = torch.where(candidates.valid, f1, -1.0)
    best = f1 == f1.amax(1, keepdim=True)
    return torch.where(best, found, target.shape[1] + 1).argmin(1)


class OracleF1(SegmentF1):
    """Segment F1 of the best candidate of each n-best list: an upper bound of re-ranking.

    compute() -> `SegmentScores`; counts are summed over the corpus, as in `SegmentF1`.

    Args:
        labels: names and tag scheme of the labels.
        kwargs: options of `torchmetrics.Metric`.

    Example:
        >>> import torch
        >>> from structperc.chain import kbest
        >>> from structperc.data import LabelSet
        >>> from structperc.metrics import OracleF1
        >>> from structperc.structures import Lattice
        >>> lattice = Lattice(torch.tensor([[[2.0, 1.0, 0.0]]]), torch.zeros(1, 1, 3, 3), torch.tensor([1]))
        >>> metric = OracleF1(LabelSet(("O", "B-LOC", "B-PER"), "IOB2"))
        >>> metric.update(kbest(lattice, k=2), torch.tensor([[1]]), lattice.lengths)  # B-LOC is the second best
        >>> metric.compute().f1
        1.0
    """

    sequences: Tensor

    def __init__(self, labels: LabelSet, **kwargs: Any) -> None:
        super().__init__(labels, **kwargs)
        # a MetricCollection merges metrics of equal states: one state must have a different name
        self.add_state("sequences", torch.zeros((), dtype=torch.int64), "sum")

    def update(  # type: ignore[override]
        self, candidates: Candidates, target: Tensor, lengths: Tensor, sentences: Tensor | None = None
    ) -> None:
        """Count the segments of the best candidate of each sequence; see `oracle` for the arguments."""
        choice = oracle(candidates, target, lengths, self.labels, sentences)
        rows = torch.arange(len(choice), device=choice.device)
        self.sequences = self.sequences + len(choice)
        super().update(candidates.labels[rows, choice], target, lengths, sentences)
