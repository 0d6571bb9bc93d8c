"""Any number of predictions for the same text against gold: a row of scores for each, McNemar's tests of all pairs."""

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

from structperc.metrics.f_measure import check_gamma
from structperc.metrics.significance import McNemar
from structperc.metrics.systems import Labels, System, judged


class Pair(NamedTuple):
    """McNemar's tests of two systems."""

    a: str
    b: str
    tokens: McNemar
    sentences: McNemar


class Comparisons(NamedTuple):
    """Systems in the order they were given. p-values are those of single pairs, not corrected for their number."""

    systems: list[System]
    gamma: float = 1.0  # of the F measure

    def pairs(self) -> list[Pair]:
        """Each system against all that come after it."""
        return [Pair(a.name, b.name, *a.against(b)) for a, b in combinations(self.systems, 2)]

    def columns(self) -> dict[str, list[float]]:
        """{name of the score: shares in 0..1, one per system}."""
        tokens, sentences = zip(*(system.accuracies for system in self.systems), strict=True)
        accuracies = {"tokens": list(tokens), "sentences": list(sentences)}
        segments = [system.segments for system in self.systems if system.segments is not None]
        if not segments:
            return accuracies
        return {
            f"F{self.gamma:g}": [scores.f(self.gamma) for scores in segments],
            "precision": [scores.precision for scores in segments],
            "recall": [scores.recall for scores in segments],
            **accuracies,
        }

    def table(self) -> str:
        """Scores in per cent (tokens and sentences: accuracy), then the tests."""
        width = max(len(system.name) for system in self.systems) + 2
        return "\n".join([*self._scores(width), "", *self._tests(width)])

    def _scores(self, width: int) -> Iterator[str]:
        columns = self.columns()
        yield f"{'':<{width}}" + "".join(f"{name:>12}" for name in columns)
        for system, row in zip(self.systems, zip(*columns.values(), strict=True), strict=True):
            yield f"{system.name:<{width}}" + "".join(f"{100 * share:>12.2f}" for share in row)

    def _tests(self, width: int) -> Iterator[str]:
        heads = "".join(f"{unit + ': A':>14}{'B':>8}{'p':>12}" for unit in ("tokens", "sentences"))
        yield "McNemar, only right:"
        yield f"{'A':<{width}}{'B':<{width}}{heads}"
        for pair in self.pairs():
            tests = "".join(f"{m.only_a:>14}{m.only_b:>8}{m.p:>12.3g}" for m in (pair.tokens, pair.sentences))
            yield f"{pair.a:<{width}}{pair.b:<{width}}{tests}"


def compare_all(
    gold: Labels, predictions: Sequence[Labels], names: Sequence[str], scheme: str = "IOB2", gamma: float = 1.0
) -> Comparisons:
    """Sentences of labels of the same text, gold and as several systems predicted them -> Comparisons.

    InputError as of `compare`.
    """
    check_gamma(gamma)
    return Comparisons(list(judged(gold, predictions, scheme, names)), gamma)
