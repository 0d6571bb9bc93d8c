"""Kinds of errors of segments, by an optimal matching of gold and predicted ones, and the scores of SemEval-2013."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment

from structperc.data.tag_schemes import Span
from structperc.metrics.seqeval import LabelLists, check_same_lengths, label_sequences, read_segments

ERROR_KINDS = {  # kinds of pairs that are errors, and their names in tables
    "type": "wrong type",
    "boundary": "wrong boundary",
    "both": "wrong type and boundary",
    "missed": "missed",
    "spurious": "spurious",
}
_SLIGHTNESS = {"both": 1, "boundary": 2, "type": 3}


class SegmentPair(NamedTuple):
    """A gold segment and the predicted segment that is matched with it; one of them may be missing.

    Attributes:
        gold: the gold segment; None for a spurious predicted one.
        found: the predicted segment; None for a missed gold one.
    """

    gold: Span | None
    found: Span | None

    @property
    def kind(self) -> str:
        """The kind: correct, type, boundary, both (type and boundary are wrong), missed or spurious."""
        if self.gold is None or self.found is None:
            return "spurious" if self.gold is None else "missed"
        same_type, same_tokens = self.gold.type == self.found.type, self.gold[1:] == self.found[1:]
        if same_type:
            return "correct" if same_tokens else "boundary"
        return "type" if same_tokens else "both"

    @property
    def extent(self) -> tuple[int, int]:
        """The first token of both segments, and the token after the last one."""
        both = [span for span in self if span is not None]
        return min(span.start for span in both), max(span.end for span in both)


def match_segments(gold: Sequence[Span], found: Sequence[Span]) -> list[SegmentPair]:
    """Match gold and predicted segments of a sentence, each at most once, so that the errors are as slight as possible.

    Only segments that share a token are matched. Among all such matchings the one with the most correct pairs is
    chosen; of these the one with the most pairs that differ only in type; then with the most that differ only in
    boundaries; then with the most others; then with the largest number of shared tokens. The numbers of pairs of each
    kind therefore do not depend on the order of the segments. Segments may overlap. `gold`: gold segments, in any
    order. `found`: predicted segments, in any order. Returns the pairs by their first token; each segment is in one
    pair.
    """
    wanted, predicted = (Counter(Span(*span[:3]) for span in spans) for spans in (gold, found))
    correct = wanted & predicted
    pairs = [SegmentPair(span, span) for span in correct.elements()]
    for group in _overlapping((wanted - correct).elements(), (predicted - correct).elements()):
        pairs += _match_group(*group)
    return sorted(pairs, key=lambda pair: (*pair.extent, str(pair)))


def _overlapping(gold: Iterable[Span], predicted: Iterable[Span]) -> Iterator[tuple[list[Span], list[Span]]]:
    """Yield the gold and the predicted segments of each group that overlaps connect, in a fixed order."""
    both = [(span.start, span.end, span.type, side) for side, spans in enumerate((gold, predicted)) for span in spans]
    group: tuple[list[Span], list[Span]] = ([], [])
    group_end = 0
    for start, end, kind, side in sorted(both):
        if start >= group_end and any(group):
            yield group
            group = ([], [])
        group[side].append(Span(kind, start, end))
        group_end = max(group_end, end)
    if any(group):
        yield group


def _match_group(gold: list[Span], predicted: list[Span]) -> Iterator[SegmentPair]:
    """Yield the pairs of the best matching: a pair of a slighter kind weighs more than all pairs of the other kinds."""
    base = 1 + sum(span.end - span.start for span in gold)  # above the number of pairs, and of shared tokens
    weights = np.zeros((len(gold), len(predicted)))
    for i, wanted in enumerate(gold):
        for j, found in enumerate(predicted):
            shared = min(wanted.end, found.end) - max(wanted.start, found.start)
            if shared > 0:
                weights[i, j] = shared + base ** _SLIGHTNESS[SegmentPair(wanted, found).kind]
    chosen = zip(*(numbers.tolist() for numbers in linear_sum_assignment(weights, maximize=True)), strict=True)
    partner = {i: j for i, j in chosen if weights[i, j]}
    yield from (SegmentPair(wanted, predicted[partner[i]] if i in partner else None) for i, wanted in enumerate(gold))
    matched = set(partner.values())
    yield from (SegmentPair(None, found) for j, found in enumerate(predicted) if j not in matched)


def segment_pairs(y_true: LabelLists, y_pred: LabelLists, *, scheme: str | None = None) -> list[list[SegmentPair]]:
    """Match the segments of label names, see `match_segments`.

    Segments are read as by conlleval. Arguments and errors are those of `seqeval_scores`. Returns the pairs of each
    sentence.
    """
    gold, predicted = label_sequences(y_true, "y_true"), label_sequences(y_pred, "y_pred")
    check_same_lengths(gold, predicted, ("y_true", "y_pred"))
    return [
        match_segments(
            read_segments(own, scheme, None, f"y_true, sentence {n}"),
            read_segments(other, scheme, None, f"y_pred, sentence {n}"),
        )
        for n, (own, other) in enumerate(zip(gold, predicted, strict=True), 1)
    ]


class SemEvalScore(NamedTuple):
    """Counts of one schema of SemEval-2013 task 9 (Segura-Bedmar et al. 2013), and its scores.

    Attributes:
        correct: COR, pairs that are right in the schema.
        incorrect: INC, pairs that are wrong in it.
        partial: PAR, pairs that are half right; only in the schema `partial`.
        missed: MIS, gold segments without a predicted one.
        spurious: SPU, predicted segments without a gold one.
    """

    correct: int
    incorrect: int
    partial: int
    missed: int
    spurious: int

    @property
    def precision(self) -> float:
        """(COR + PAR / 2) / ACT, with ACT = COR + INC + PAR + SPU predicted segments; 0.0 without any."""
        return self._credit / max(self._paired + self.spurious, 1)

    @property
    def recall(self) -> float:
        """(COR + PAR / 2) / POS, with POS = COR + INC + PAR + MIS gold segments; 0.0 without any."""
        return self._credit / max(self._paired + self.missed, 1)

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall, 2 (COR + PAR / 2) / (ACT + POS)."""
        return 2 * self._credit / max(2 * self._paired + self.missed + self.spurious, 1)

    @property
    def _credit(self) -> float:
        return self.correct + self.partial / 2

    @property
    def _paired(self) -> int:
        return self.correct + self.incorrect + self.partial


class ErrorKinds(NamedTuple):
    """Numbers of pairs of each kind, see `SegmentPair.kind`.

    Attributes:
        correct: same type and boundaries.
        type: same boundaries, another type.
        boundary: same type, other boundaries with a shared token.
        both: another type and other boundaries.
        missed: gold segments without a predicted one.
        spurious: predicted segments without a gold one.
    """

    correct: int = 0
    type: int = 0
    boundary: int = 0
    both: int = 0
    missed: int = 0
    spurious: int = 0

    @classmethod
    def from_pairs(cls, pairs: Iterable[SegmentPair]) -> "ErrorKinds":
        """Return the numbers of pairs of each kind."""
        return cls(**Counter(pair.kind for pair in pairs))

    @property
    def errors(self) -> int:
        """The number of pairs that are not correct."""
        return sum(self) - self.correct

    def semeval(self) -> dict[str, SemEvalScore]:
        """Return the scores of the four schemas of SemEval-2013.

        `strict`: type and boundaries must be right; `exact`: boundaries; `partial`: half a point for a shared token,
        whatever the type; `type`: the type, of a segment that shares a token. All are computed from one matching.
        """
        alone = {"missed": self.missed, "spurious": self.spurious}
        right, kind, boundary, both = self[:4]
        return {
            "strict": SemEvalScore(right, kind + boundary + both, 0, **alone),
            "exact": SemEvalScore(right + kind, boundary + both, 0, **alone),
            "partial": SemEvalScore(right + kind, 0, boundary + both, **alone),
            "type": SemEvalScore(right + boundary, kind + both, 0, **alone),
        }


def semeval_scores(y_true: LabelLists, y_pred: LabelLists, *, scheme: str | None = None) -> dict[str, SemEvalScore]:
    """Return the scores of SemEval-2013 task 9 for label names: strict, exact, partial and type.

    Differs from nervaluate, whose counts depend on the order of overlapping segments: the matching is optimal, see
    `match_segments`. Arguments and errors are those of `segment_pairs`. Returns the score of each schema
    by its name.

    Example:
        >>> from structperc.metrics import semeval_scores
        >>> scores = semeval_scores([["B-PER", "I-PER", "O", "B-LOC"]], [["B-PER", "O", "O", "B-ORG"]])
        >>> {name: score.f1 for name, score in scores.items()}
        {'strict': 0.0, 'exact': 0.5, 'partial': 0.75, 'type': 0.5}
    """
    pairs = segment_pairs(y_true, y_pred, scheme=scheme)
    return ErrorKinds.from_pairs(chain.from_iterable(pairs)).semeval()
