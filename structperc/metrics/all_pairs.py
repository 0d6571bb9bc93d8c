"""Any number of predictions for the same text against gold: a row of scores for each, McNemar's tests of all pairs."""

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

from structperc.metrics.f_measure import check_gamma
from structperc.metrics.significance import McNemar
from structperc.metrics.systems import Labels, System, judged
from structperc.reports.table import percent, text_table


class Pair(NamedTuple):
    """McNemar's tests of two systems, over tokens and over sentences."""

    a: str
    b: str
    tokens: McNemar
    sentences: McNemar


class Comparisons(NamedTuple):
    """Systems in the order they were given. p-values are those of single pairs, not corrected for their number."""

    systems: list[System]
    gamma: float = 1.0  # of the F measure

    def pairs(self) -> list[Pair]:
        """Return the comparisons of each system with all that come after it."""
        return [Pair(a.name, b.name, *a.against(b)) for a, b in combinations(self.systems, 2)]

    def columns(self) -> dict[str, list[float]]:
        """Return the scores of all systems by name, as shares in 0..1, one per system."""
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
        """Return a table of scores in per cent (tokens and sentences: accuracy), then the tests."""
        tests = ["McNemar, only right:", *self._tests()]
        return "\n".join([*self._scores(), "", *tests])

    def _scores(self) -> Iterator[str]:
        columns = self.columns()
        rows = [["", *columns]]
        for system, row in zip(self.systems, zip(*columns.values(), strict=True), strict=True):
            rows.append([system.name, *map(percent, row)])
        return text_table(rows, "<>", [0, 12, 10])

    def _tests(self) -> Iterator[str]:
        width = max(len(system.name) for system in self.systems) + 2
        rows = [["A", "B", *(head for unit in ("tokens", "sentences") for head in (f"{unit}: A", "B", "p"))]]
        for pair in self.pairs():
            tests = [[str(m.only_a), str(m.only_b), f"{m.p:.3g}"] for m in (pair.tokens, pair.sentences)]
            rows.append([pair.a, pair.b, *tests[0], *tests[1]])
        return text_table(rows, "<<>", [width, width, 14, 8, 12, 14, 8, 12], "")


def compare_all(
    gold: Labels, predictions: Sequence[Labels], names: Sequence[str], scheme: str = "IOB2", gamma: float = 1.0
) -> Comparisons:
    """Return the comparisons of several systems on one text, from sentences of labels, gold and predicted.

    Raises InputError as `compare` does.
    """
    check_gamma(gamma)
    return Comparisons(list(judged(gold, predictions, scheme, names)), gamma)
