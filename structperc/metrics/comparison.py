"""Two predictions for the same text against gold: scores, differences and McNemar's tests."""

from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

import torch
from torch import Tensor

from structperc.data.labels import LabelSet
from structperc.errors import InputError
from structperc.metrics.segments import SegmentF1, SegmentScores
from structperc.metrics.sentences import right_sentences, sentence_borders
from structperc.metrics.significance import McNemar, mcnemar

Labels = Sequence[Sequence[str]]  # sentences of label names


class Comparison(NamedTuple):
    """Systems A and B. Differences are B minus A."""

    names: tuple[str, str]
    segments: tuple[SegmentScores, SegmentScores] | None  # None when the labels are no segments
    tokens: McNemar
    sentences: McNemar

    def rows(self) -> list[tuple[str, float, float]]:
        """(name of the score, of A, of B), shares in 0..1."""
        rows = [(f"{name} accuracy", m.accuracy_a, m.accuracy_b) for name, m in self._tests()]
        if self.segments is None:
            return rows
        a, b = self.segments
        micro = [("F1", a.f1, b.f1), ("precision", a.precision, b.precision), ("recall", a.recall, b.recall)]
        seen = sorted({**a.seen, **b.seen})
        return [*micro, *((f"F1 {name}", a.types[name].f1, b.types[name].f1) for name in seen), *rows]

    def table(self) -> str:
        """Scores and differences in per cent, then the tests."""
        a, b = self.names
        width = max(10, len(a), len(b)) + 2
        lines = [f"{'':<20}{a:>{width}}{b:>{width}}{'difference':>12}"]
        for name, x, y in self.rows():
            lines.append(f"{name:<20}{100 * x:>{width}.2f}{100 * y:>{width}.2f}{100 * (y - x):>+12.2f}")
        lines += ["", f"{'McNemar, only right:':<20}{a:>{width}}{b:>{width}}{'p':>12}"]
        for name, test in self._tests():
            lines.append(f"{name + 's':<20}{test.only_a:>{width}}{test.only_b:>{width}}{test.p:>12.3g}")
        return "\n".join(lines)

    def _tests(self) -> list[tuple[str, McNemar]]:
        return [("token", self.tokens), ("sentence", self.sentences)]


def compare(
    gold: Labels, a: Labels, b: Labels, scheme: str = "IOB2", names: tuple[str, str] = ("A", "B")
) -> Comparison:
    """Sentences of labels of the same text, gold and as two systems predicted them -> Comparison.

    Scheme "none" leaves segments out. InputError for labels that are not of the scheme, and for texts whose
    sentences differ in number or length.
    """
    for name, predicted in zip(names, (a, b), strict=True):
        _check_same(gold, predicted, name)
    if not any(gold):
        raise InputError("gold holds no label; give a file of labelled sentences")
    labels = LabelSet(tuple(sorted({*chain(*gold), *chain(*a), *chain(*b)})), scheme)
    # one sequence, the whole text: `sentences` tells its sentences apart and nothing is padded
    wanted, *systems = (torch.from_numpy(labels.encode([*chain(*text)]))[None] for text in (gold, a, b))
    lengths = torch.tensor([wanted.shape[1]])
    sentences = torch.arange(len(gold)).repeat_interleave(torch.tensor([len(s) for s in gold]))[None]
    borders = sentence_borders(lengths, wanted.shape[1], sentences)
    right = [predicted == wanted for predicted in systems]
    right_a, right_b = (right_sentences(r, borders) for r in right)
    segments = None
    if scheme != "none":
        score_a, score_b = (_segments(p, wanted, lengths, sentences, labels) for p in systems)
        segments = (score_a, score_b)
    return Comparison(names, segments, mcnemar(right[0][0], right[1][0]), mcnemar(right_a, right_b))


def _segments(predicted: Tensor, gold: Tensor, lengths: Tensor, sentences: Tensor, labels: LabelSet) -> SegmentScores:
    metric = SegmentF1(labels)
    metric.update(predicted, gold, lengths, sentences)
    return metric.compute()


def _check_same(gold: Labels, predicted: Labels, name: str) -> None:
    wanted, given = [len(s) for s in gold], [len(s) for s in predicted]
    advice = "give predictions for the same text"
    if len(given) != len(wanted):
        raise InputError(f"{name} has {len(given)} sentences, gold {len(wanted)}; {advice}")
    for number, (n, m) in enumerate(zip(given, wanted, strict=True), 1):
        if n != m:
            raise InputError(f"{name}: sentence {number} has {n} labels, gold {m}; {advice}")
