"""All scores of a tagger in one collection."""

from torchmetrics import MetricCollection

from structperc.data.labels import LabelSet
from structperc.metrics.accuracy import SentenceAccuracy, TokenAccuracy
from structperc.metrics.segments import SegmentF1, check_beta


class Evaluation(MetricCollection):
    """Segment F1 where the labels have a tag scheme, token accuracy and sentence accuracy.

    Call update(preds (B, T), target (B, T), lengths (B,), sentences (B, T) or None).

    Args:
        labels: their names and tag scheme.
        beta: of the F measure of segments (Eq. 13 of Suzuki et al. 2006, see `f_measure`); 1 is that of conlleval.

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
        """Return the scores by name, shares in 0..1.

        `score`, by which models are chosen, is F_beta of segments, or token accuracy for labels without segments.
        """
        tokens, sentences = float(self["tokens"].compute()), float(self["sentences"].compute())
        shares = {"token_accuracy": tokens, "sentence_accuracy": sentences}
        if "segments" not in self:
            return {"score": tokens, **shares}
        segments = self["segments"].compute()
        return {"score": segments.f(self.beta), "precision": segments.precision, "recall": segments.recall, **shares}

    def table(self) -> str:
        """Return the table of segments with token accuracy, or token accuracy alone, then sentence accuracy."""
        if "segments" in self:
            first = self["segments"].compute().table(self.beta)
        else:
            first = f"token accuracy: {float(self['tokens'].compute()):.2%}"
        return f"{first}\nsentence accuracy: {float(self['sentences'].compute()):.2%}"
