"""Precision, recall and F of segments by the rule of the conlleval script (Tjong Kim Sang & Buchholz 2000)."""

from collections.abc import Sequence
from math import inf
from typing import Literal, NamedTuple, Self

import torch
from torch import Tensor

from structperc.data.labels import LabelSet
from structperc.errors import InputError
from structperc.metrics.counts import segment_counts, token_counts


def f_measure(*, correct: int, found: int, gold: int, beta: float = 1.0) -> float:
    """Return F_beta from counts of segments. Suzuki, McDermott & Isozaki 2006, Eq. 13 (beta is gamma there).

    F_beta = (beta^2 + 1) TP / (beta^2 FN + FP + (beta^2 + 1) TP). With TP = correct, FN = gold - correct and FP = found
    - correct the denominator is beta^2 gold + found. -> F_beta in 0..1; 0.0 without gold and predicted segments.

    Args:
        beta: weight of recall relative to precision; 1 is the measure of conlleval.

    Raises:
        InputError: beta is not positive, or infinite.
    """
    check_beta(beta)
    weighted = beta * beta * gold + found
    return (beta * beta + 1) * correct / weighted if weighted else 0.0


def check_beta(beta: float) -> None:
    """Raise InputError unless 0 < beta < infinity."""
    if not 0 < beta < inf:
        raise InputError(f"beta must be > 0 and finite, got {beta}; 1 is the F measure of conlleval")


Average = Literal["micro", "macro", "weighted"]  # over segment types


class SegmentScore(NamedTuple):
    """Counts of segments and their scores; a score without a denominator is 0.0.

    Attributes:
        correct: number of predicted segments with the type, first and last token of a gold segment.
        found: number of predicted segments.
        gold: number of gold segments.
    """

    correct: int
    found: int
    gold: int

    @property
    def precision(self) -> float:
        """The share of correct segments among the predicted ones."""
        return self.correct / max(self.found, 1)

    @property
    def recall(self) -> float:
        """The share of correctly predicted segments among the gold ones."""
        return self.correct / max(self.gold, 1)

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall: 2 correct / (found + gold)."""
        return 2 * self.correct / max(self.found + self.gold, 1)

    def f(self, beta: float = 1.0) -> float:
        """Return F_beta, see `f_measure`.

        Raises:
            InputError: beta is not positive, or infinite.
        """
        return f_measure(**self._asdict(), beta=beta)


class SegmentScores(NamedTuple):
    """Scores of segments over a corpus, per type and in total; types without segments are not in the table.

    Attributes:
        types: counts of each type.
        n_improper: number of predicted labels that the tag scheme does not allow at their position.
        tokens: number of tokens.
        correct_tokens: number of tokens whose label is correct.
    """

    types: dict[str, SegmentScore]
    n_improper: int
    tokens: int
    correct_tokens: int

    @classmethod
    def from_counts(cls, types: Sequence[str], segments: Tensor, improper: int, tokens: int, correct: int) -> Self:
        """Return the scores of counts (3, types) int64 of correct, predicted and gold segments."""
        scores = [SegmentScore(*counts) for counts in segments.t().tolist()]
        return cls(dict(zip(types, scores, strict=True)), int(improper), int(tokens), int(correct))

    @property
    def total(self) -> SegmentScore:
        """The sums of counts over all types, so that scores are micro averages."""
        scores = self.types.values()
        return SegmentScore(sum(s.correct for s in scores), sum(s.found for s in scores), sum(s.gold for s in scores))

    @property
    def f1(self) -> float:
        """The F1 of all segments, in 0..1."""
        return self.total.f1

    def f(self, beta: float = 1.0) -> float:
        """Return the F_beta of all segments, in 0..1; see `f_measure`."""
        return self.total.f(beta)

    @property
    def precision(self) -> float:
        """The precision of all segments, in 0..1."""
        return self.total.precision

    @property
    def recall(self) -> float:
        """The recall of all segments, in 0..1."""
        return self.total.recall

    @property
    def macro_f1(self) -> float:
        """The mean F1 of the `nonempty_types`, in 0..1; 0.0 without any."""
        return sum(score.f1 for score in self.nonempty_types.values()) / max(len(self.nonempty_types), 1)

    @property
    def nonempty_types(self) -> dict[str, SegmentScore]:
        """The types with at least one gold or predicted segment, and their counts."""
        return {name: score for name, score in self.types.items() if score.found or score.gold}

    def table(self, beta: float = 1.0) -> str:
        """Return the lines that conlleval prints, with F_beta as FB{beta}, and the number of improper labels."""
        correct, found, gold = self.total
        accuracy = 100 * self.correct_tokens / max(self.tokens, 1)
        lines = [
            f"processed {self.tokens} tokens with {gold} phrases; found: {found} phrases; correct: {correct}.",
            f"accuracy: {accuracy:6.2f}%; {_line(self.total, beta)}",
            *(f"{name:>17}: {_line(score, beta)}  {score.found}" for name, score in self.nonempty_types.items()),
            f"improper labels: {self.n_improper}",
        ]
        return "\n".join(lines)


def _line(score: SegmentScore, beta: float) -> str:
    precision, recall, f = (100 * share for share in (score.precision, score.recall, score.f(beta)))
    return f"precision: {precision:6.2f}%; recall: {recall:6.2f}%; FB{beta:g}: {f:6.2f}"


def segment_scores(
    preds: Tensor, target: Tensor, lengths: Tensor, labels: LabelSet, sentences: Tensor | None = None
) -> SegmentScores:
    """Return the scores of label sequences; the arguments are those of `segment_counts`, for one label per token.

    Example:
        >>> labels = LabelSet(("O", "B-LOC", "B-PER"), "IOB2")
        >>> found = segment_scores(torch.tensor([[1, 0, 0]]), torch.tensor([[1, 0, 2]]), torch.tensor([3]), labels)
        >>> found.precision, found.recall, found.types["LOC"].f1
        (1.0, 0.5, 1.0)
    """
    *counts, improper = segment_counts(preds, target, lengths, labels, sentences)
    correct, tokens = token_counts(preds, target, lengths)
    segments = torch.stack([count.sum(0) for count in counts])
    return SegmentScores.from_counts(labels.type_names, segments, int(improper.sum()), int(tokens), int(correct))
