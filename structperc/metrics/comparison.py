"""Two predictions for the same text against gold: scores, differences and McNemar's tests."""

from typing import NamedTuple

from structperc.metrics.f_measure import check_gamma
from structperc.metrics.segments import SegmentScores
from structperc.metrics.significance import McNemar
from structperc.metrics.systems import Labels, judged
from structperc.reports.table import percent, text_table


class Comparison(NamedTuple):
    """The scores of systems A and B and tests of their difference, which is B minus A."""

    names: tuple[str, str]
    segments: tuple[SegmentScores, SegmentScores] | None  # None when the labels are no segments
    tokens: McNemar
    sentences: McNemar
    gamma: float = 1.0  # of the F measure

    def rows(self) -> list[tuple[str, float, float]]:
        """Return the scores as (name, score of A, score of B), shares in 0..1."""
        rows = [(f"{name} accuracy", m.accuracy_a, m.accuracy_b) for name, m in self._tests()]
        if self.segments is None:
            return rows
        (a, b), gamma, f = self.segments, self.gamma, f"F{self.gamma:g}"
        micro = [(f, a.f(gamma), b.f(gamma)), ("precision", a.precision, b.precision), ("recall", a.recall, b.recall)]
        seen = sorted({**a.seen, **b.seen})
        types = [(f"{f} {name}", a.types[name].f(gamma), b.types[name].f(gamma)) for name in seen]
        return [*micro, *types, *rows]

    def table(self) -> str:
        """Return a table of scores and differences in per cent, then the tests."""
        a, b = self.names
        width = max(10, len(a), len(b)) + 2
        scores = [["", a, b, "difference"]]
        scores += [[name, percent(x), percent(y), f"{100 * (y - x):+.2f}"] for name, x, y in self.rows()]
        tests = [["McNemar, only right:", a, b, "p"]]
        tests += [[f"{name}s", str(m.only_a), str(m.only_b), f"{m.p:.3g}"] for name, m in self._tests()]
        least = [20, width, width, 12]
        return "\n".join([*text_table(scores, "<>", least, ""), "", *text_table(tests, "<>", least, "")])

    def _tests(self) -> list[tuple[str, McNemar]]:
        return [("token", self.tokens), ("sentence", self.sentences)]


def compare(
    gold: Labels,
    a: Labels,
    b: Labels,
    scheme: str = "IOB2",
    names: tuple[str, str] = ("A", "B"),
    gamma: float = 1.0,
) -> Comparison:
    """Return the comparison of two systems on one text, from sentences of labels, gold and predicted by either.

    Scheme "none" leaves segments out. Raises InputError for labels that are not of the scheme, for texts whose
    sentences differ in number or length, and for gamma <= 0.
    """
    check_gamma(gamma)
    first, second = judged(gold, (a, b), scheme, names)
    segments = None if first.segments is None or second.segments is None else (first.segments, second.segments)
    return Comparison(names, segments, *first.against(second), gamma)
