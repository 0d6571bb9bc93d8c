"""All scores of labels of a corpus."""

from typing import NamedTuple

import numpy as np
import torch

from structperc.data.corpus import Corpus
from structperc.data.labels import LabelSet
from structperc.metrics.counts import sentence_counts, token_counts
from structperc.metrics.f_measure import SegmentScore, SegmentScores, segment_scores
from structperc.predictor import Prediction
from structperc.predictor.base import labelled_spans


class CorpusScores(NamedTuple):
    """Scores of labels: F of segments, accuracy of tokens and of whole sentences, in 0..1."""

    segments: SegmentScores | None  # None for labels without segments
    token_accuracy: float
    sentence_accuracy: float
    beta: float = 1.0  # weight of recall in the F of segments

    def by_name(self) -> dict[str, float]:
        """Return the scores by name.

        Training selects models by `score`, which is F_beta of segments, or token accuracy for labels without segments.
        """
        shares = {"token_accuracy": self.token_accuracy, "sentence_accuracy": self.sentence_accuracy}
        if (found := self.segments) is None:
            return {"score": self.token_accuracy, **shares}
        return {"score": found.f(self.beta), "precision": found.precision, "recall": found.recall, **shares}

    def by_type(self) -> dict[str, dict[str, float]]:
        """Return score, precision and recall (shares) and the number of gold segments for each segment type.

        Types without a gold or a predicted segment are missing.
        """
        types = {} if self.segments is None else self.segments.nonempty_types
        return {
            name: {"score": one.f(self.beta), "precision": one.precision, "recall": one.recall, "gold": one.gold}
            for name, one in types.items()
        }

    def table(self) -> str:
        """Return the table of segments (if the labels have any), token accuracy and sentence accuracy."""
        if self.segments is None:
            first = f"token accuracy: {self.token_accuracy:.2%}"
        else:
            first = self.segments.table(self.beta)
        return f"{first}\nsentence accuracy: {self.sentence_accuracy:.2%}"


def score_prediction(labels: LabelSet, corpus: Corpus, prediction: Prediction) -> CorpusScores:
    """Return the scores of a prediction for a corpus with gold labels.

    Segments are those that the prediction lists, which may overlap, or those of its labels. Gold segments that were
    dropped when the corpus was read count as missed.

    Args:
        labels: Label set with all gold and predicted labels.
        corpus: Corpus of N tokens with a column `label`.
        prediction: Predicted labels of its tokens.

    Example:
        >>> corpus = Corpus.from_sentences([{"word": ["Anna", "left"], "label": ["B-PER", "O"]}])
        >>> labels = LabelSet(("O", "B-PER"), "IOB2")
        >>> score_prediction(labels, corpus, Prediction(["O", "O"], None, None)).by_name()["token_accuracy"]
        0.5
    """
    gold = corpus.columns["label"]
    preds, target = (torch.from_numpy(labels.encode(names))[None] for names in (prediction.labels, gold))
    sentences = torch.from_numpy(np.repeat(np.arange(len(corpus.sentences) - 1), np.diff(corpus.sentences)))[None]
    lengths = torch.tensor([corpus.tokens])
    counts = token_counts(preds, target, lengths), sentence_counts(preds, target, lengths, sentences)
    shares = [int(right) / max(int(total), 1) for right, total in counts]
    if labels.scheme == "none":
        return CorpusScores(None, *shares)
    found = segment_scores(preds, target, lengths, labels, sentences)
    if prediction.spans is not None:
        found = found._replace(types=_overlapping(labels, corpus, prediction))
    missed = [one.type for one in corpus.dropped]
    types = {name: one._replace(gold=one.gold + missed.count(name)) for name, one in found.types.items()}
    return CorpusScores(found._replace(types=types), *shares)


def _overlapping(labels: LabelSet, corpus: Corpus, prediction: Prediction) -> dict[str, SegmentScore]:
    """Return the counts by type of segments that a prediction lists."""
    assert prediction.spans is not None
    gold = Prediction(list(corpus.columns["label"]), None, None)
    found, right = ({one[:3] for one in own} for own in (prediction.spans, labelled_spans(corpus, gold, labels.scheme)))
    groups = (found & right, found, right)
    return {
        name: SegmentScore(*(sum(kind == name for kind, *_ in own) for own in groups)) for name in labels.type_names
    }
