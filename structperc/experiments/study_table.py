"""The table of a study: means over seeds as text, as Markdown and as CSV."""

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import fmean, median_high, stdev
from types import MappingProxyType
from typing import Any, NamedTuple

from structperc.experiments.experiment import Run
from structperc.experiments.rows import Row
from structperc.reports.tables import markdown_table, percent, wrapped_table, write_records

COSTS = ("parameters", "model_mb", "epochs", "seconds", "tokens_per_second", "peak_memory_mb", "peak_gpu_memory_mb")
TESTS = ("p_tokens", "p_sentences")  # of single runs
ROW_TESTS = ("p_seeds", "p_documents")
TYPE = "score/"  # before the name of a segment type

Numbers = dict[str, float]


class Line(NamedTuple):
    """A row of the table with its runs and their numbers."""

    row: Row
    runs: list[Run]
    numbers: list[Numbers]  # of the runs that have results
    tests: Mapping[str, float] = MappingProxyType(
        {}
    )  # of the row as a whole: its difference to the baseline, and p-values of it

    def values(self, key: str) -> list[float]:
        """Return the numbers of this name of all runs that have one."""
        return [numbers[key] for numbers in self.numbers if key in numbers]

    def mean(self, key: str) -> float | None:
        """Return the mean of a number over the runs, or for p-values of runs the median; None if no run has it.

        Of an even number of p-values the larger one in the middle is taken. Tests of the row are returned as they are.
        """
        if key in self.tests:
            return self.tests[key]
        values = self.values(key)
        return (median_high(values) if key in TESTS else fmean(values)) if values else None

    def spread(self, key: str) -> float | None:
        """Return the standard deviation of a sample; None for a single value, and for p-values."""
        values = self.values(key)
        return stdev(values) if len(values) > 1 and key not in TESTS else None


def numbers_of(run: Run, split: str, p: Numbers) -> Numbers:
    """Return scores (shares) of the split, costs and p-values of a run that has results, each by its name."""
    results: dict[str, Any] = run.results or {}
    types = results.get("types", {}).get(split, {})
    by_type = {f"{TYPE}{name}": scores["score"] for name, scores in types.items()}
    speed = {"tokens_per_second": results.get("tokens_per_second", {}).get(split)}
    costs = {key: {**results, **speed}.get(key) for key in COSTS}
    return {**results[split], **by_type, **{key: x for key, x in costs.items() if x is not None}, **p}


def lines_of(runs: Sequence[Run], split: str, tests: Sequence[Numbers], of_rows: Mapping[str, Numbers]) -> list[Line]:
    """Return the runs by row, in the order of the first of each; tests of runs and of rows are from `Significance`."""
    found = {run.row.name: Line(run.row, [], [], of_rows.get(run.row.name, {})) for run in runs}
    for run, p in zip(runs, tests, strict=True):
        found[run.row.name].runs.append(run)
        if run.results is not None:
            found[run.row.name].numbers.append(numbers_of(run, split, p))
    return list(found.values())


# -- cells ----------------------------------------------------------------------------------------------------


class Column(NamedTuple):
    """A column of the printed table: its heading, and the text of a line in it."""

    head: str
    cell: Callable[[Line], str]


def score_columns(lines: Sequence[Line], measure: str) -> list[Column]:
    """Return the columns for which some run has a number, but for scores by type."""
    known = {key for line in lines for numbers in (*line.numbers, line.tests) for key in numbers}
    shares = {"score": measure, "precision": "precision", "recall": "recall", "sentence_accuracy": "sentences"}
    heads = ("parameters", "model MB", "epochs", "seconds", "tokens/s", "MB", "GPU MB")
    forms = (_whole, _tenths, _short, _tenths, _whole, _whole, _whole)
    made = [(key, Column(head, _cell(key, percent))) for key, head in shares.items()]
    made += [("difference", Column("difference", _difference))]
    made += [(key, Column(key.replace("_", " "), _cell(key, _chance))) for key in (*ROW_TESTS, *TESTS)]
    made += [(key, Column(head, _cell(key, form))) for key, head, form in zip(COSTS, heads, forms, strict=True)]
    return [*(column for key, column in made if key in known), Column("runs", _runs)]


def type_columns(lines: Sequence[Line]) -> list[Column]:
    """Return the columns of scores by segment type; there are none where labels are no segments."""
    keys = sorted({key for line in lines for numbers in line.numbers for key in numbers if key.startswith(TYPE)})
    return [Column(key.removeprefix(TYPE), _cell(key, percent)) for key in keys]


def _cell(key: str, form: Callable[[float], str]) -> Callable[[Line], str]:
    def cell(line: Line) -> str:
        mean, spread = line.mean(key), line.spread(key)
        if mean is None:
            return ""
        constant = key in ("parameters", "model_mb", "epochs") and spread == 0
        return form(mean) if spread is None or constant else f"{form(mean)} ± {form(spread)}"

    return cell


def _difference(line: Line) -> str:
    """The difference to the baseline in per cent, and its 95 % interval over documents."""
    if "difference" not in line.tests:
        return ""
    mean, low, high = (100 * line.tests[f"difference{end}"] for end in ("", "_low", "_high"))
    return f"{mean:+.2f} ({low:+.2f} to {high:+.2f})"


def _whole(number: float) -> str:
    return f"{number:,.0f}"


def _short(number: float) -> str:
    return f"{number:.4g}"


def _tenths(number: float) -> str:
    return f"{number:.1f}"


def _chance(p: float) -> str:
    return f"{p:.2g}"


def _runs(line: Line) -> str:
    held, all_ = len(line.numbers), len(line.row.seeds)
    return str(all_) if held == all_ else f"{held} of {all_}"


# -- text and files -------------------------------------------------------------------------------------------


def study_lines(lines: Sequence[Line], columns: Sequence[Column], width: int | None = None) -> Iterator[str]:
    """Yield the table as text; columns beyond the width (by default the terminal's) follow in further blocks."""
    return wrapped_table(_cells(lines, columns), width or shutil.get_terminal_size((100, 24)).columns)


def markdown_lines(lines: Sequence[Line], columns: Sequence[Column]) -> Iterator[str]:
    """Yield the lines of the table in Markdown."""
    return markdown_table(_cells(lines, columns))


def _cells(lines: Sequence[Line], columns: Sequence[Column]) -> list[list[str]]:
    heading = ["", *(column.head for column in columns)]
    return [heading, *([line.row.name, *(column.cell(line) for column in columns)] for line in lines)]


def markdown(lines: Sequence[Line], measure: str, split: str, baseline: str) -> str:
    """Return both tables in Markdown, each with a line that says what it shows."""
    seeds = "mean ± standard deviation over seeds"
    tests = (
        f"Difference to {baseline} with its 95 % interval over documents (bootstrap), p over seeds (paired t-test) and "
        "over documents (paired bootstrap), and of McNemar's tests on tokens and on sentences, the median over seeds"
    )
    parts = [f"{measure} and other scores on the {split} split in per cent, {seeds}. {tests}.", ""]
    parts += [*markdown_lines(lines, score_columns(lines, measure))]
    if types := type_columns(lines):
        parts += ["", f"{measure} by type on the {split} split.", "", *markdown_lines(lines, types)]
    return "\n".join([*parts, ""])


def means(line: Line) -> dict[str, Any]:
    """Return every number of a row: its mean and, as NAME_sd, its standard deviation; for p-values the median alone.

    The tests of the row come first.
    """
    found: dict[str, Any] = dict(line.tests)
    for key in dict.fromkeys(key for numbers in line.numbers for key in numbers):
        found[key] = line.mean(key)
        if key not in TESTS:
            found[f"{key}_sd"] = line.spread(key)
    return found


def write_means(path: str, lines: Sequence[Line]) -> None:
    """Write one line per row of the study as CSV; shares are in 0..1."""
    write_records(path, [{"row": line.row.name, "runs": len(line.numbers), **means(line)} for line in lines])


def write_runs(path: str, lines: Sequence[Line]) -> None:
    """Write one line per run as CSV; shares are in 0..1."""
    flat = []
    for line in lines:
        numbers = iter(line.numbers)
        for run in line.runs:
            held = {} if run.results is None else next(numbers)
            about = {"row": line.row.name, "seed": run.seed, "run": run.folder or "", "error": run.error or ""}
            flat.append({**about, **held})
    write_records(path, flat)
