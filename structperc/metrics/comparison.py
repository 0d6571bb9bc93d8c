"""Two predictions for the same text against gold: scores, differences and McNemar's tests."""

from typing import NamedTuple

from structperc.metrics.f_measure import check_gamma
from structperc.metrics.segments import SegmentScores
from structperc.metrics.significance import McNemar
from structperc.metrics.systems import Labels, judged


class Comparison(NamedTuple):
    """Systems A and B. Differences are B minus A."""

    names: tuple[str, str]
    segments: tuple[SegmentScores, SegmentScores] | None  # None when the labels are no segments
    tokens: McNemar
    sentences: McNemar
    gamma: float = 1.0  # of the F measure

    def rows(self) -> list[tuple[str, float, float]]:
        """(name of the score, of A, of B), shares in 0..1."""
        rows = [(f"{name} accuracy", m.accuracy_a, m.accuracy_b) for name, m in self._tests()]
        if self.segments is None:
            return rows
        (a, b), gamma, f = self.segments, self.gamma, f"F{self.gamma:g}"
        micro = [(f, a.f(gamma), b.f(gamma)), ("precision", a.precision, b.precision), ("recall", a.recall, b.recall)]
        seen = sorted({**a.seen, **b.seen})
        types = [(f"{f} {name}", a.types[name].f(gamma), b.types[name].f(gamma)) for name in seen]
        return [*micro, *types, *rows]

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
    gold: Labels,
    a: Labels,
    b: Labels,
    scheme: str = "IOB2",
    names: tuple[str, str] = ("A", "B"),
    gamma: float = 1.0,
) -> Comparison:
    """Sentences of labels of the same text, gold and as two systems predicted them -> Comparison.

    Scheme "none" leaves segments out. InputError for labels that are not of the scheme, for texts whose sentences
    differ in number or length, and for gamma <= 0.
    """
    check_gamma(gamma)
    first, second = judged(gold, (a, b), scheme, names)
    segments = None if first.segments is None or second.segments is None else (first.segments, second.segments)
    return Comparison(names, segments, *first.against(second), gamma)
