"""The scores of lists of candidates as text, and as rows of a CSV file."""

from collections.abc import Iterator

from structperc.inspection.nbest import LengthScores, NBestScores, Seconds
from structperc.reports.table import percent, text_table

N = "n'"
HEADER = ("n", "f1", "precision", "recall", "oracle_f1", "gold_in_list", "gold_place", "chosen_place")


def list_lines(lists: NBestScores) -> Iterator[str]:
    """Yield one line for each n', in per cent, and one with the seconds."""
    names = ("F1", "precision", "recall", "oracle F1", "gold in list")
    rows = [[N, *names, "gold's place", "place"], *map(_cells, lists.rows)]
    yield from text_table(rows, ">", [8, 12])
    yield _seconds_line(lists.seconds, lists.rows[-1].n)


def csv_rows(lists: NBestScores) -> Iterator[tuple[float, ...]]:
    """Yield a row of the CSV file for each n'; see HEADER for its columns."""
    return ((row.n, *_shares(row), row.gold_place, row.chosen_place) for row in lists.rows)


def _shares(row: LengthScores) -> tuple[float, ...]:
    return row.chosen.f1, row.chosen.precision, row.chosen.recall, row.oracle.f1, row.held


def _cells(row: LengthScores) -> list[str]:
    return [str(row.n), *map(percent, _shares(row)), f"{row.gold_place:.1f}", f"{row.chosen_place:.1f}"]


def _seconds_line(seconds: Seconds, n: int) -> str:
    search, scores = (100 * part / seconds.total for part in seconds[:2])
    return (
        f"seconds for {n} candidates: search {seconds.search:.2f} ({search:.0f} %), "
        f"non-local scores {seconds.nonlocal_scores:.2f} ({scores:.0f} %), in all {seconds.total:.2f}"
    )
