"""Results of a study: a table of means over seeds as text, Markdown and CSV, and figures of scores over costs."""

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import fmean, median_high, stdev
from textwrap import wrap
from types import MappingProxyType
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from structperc.experiments.experiment import ExperimentRow, Run
from structperc.reports.figures import escape_dollars, open_frame, plain_log_ticks, series_style
from structperc.reports.tables import markdown_table, short_cells, wrapped_table, write_records

SIZE = "train_sequences"
COSTS = ("parameters", "model_mb", "epochs", "seconds", "tokens_per_second", "peak_memory_mb", "peak_gpu_memory_mb")
TESTS = ("p_tokens", "p_sentences")  # tests of single runs
ROW_TESTS = ("p_seeds", "p_documents", "p_documents_holm")
TYPE = "score/"  # before the name of a segment type
WIDTH = 100  # characters of a line of a table
LONGEST = 40  # characters of a cell, such as the name of a row; longer ones are shortened, with a note

Numbers = dict[str, float]


class RowResults(NamedTuple):
    """A row of a study with its runs and their numbers."""

    row: ExperimentRow
    runs: list[Run]
    numbers: list[Numbers]  # results of the successful runs
    # Difference to the baseline, and p-values over seeds and documents:
    tests: Mapping[str, float] = MappingProxyType({})

    def values(self, key: str) -> list[float]:
        """Return a number of all runs that have it."""
        return [numbers[key] for numbers in self.numbers if key in numbers]

    def mean(self, key: str) -> float | None:
        """Return the mean of a number over the runs, for p-values the upper median; None if no run has it.

        Tests of the row are returned unchanged.
        """
        if key in self.tests:
            return self.tests[key]
        values = self.values(key)
        return (median_high(values) if key in TESTS else fmean(values)) if values else None

    def spread(self, key: str) -> float | None:
        """Return the standard deviation over the runs; None for a single value, and for p-values."""
        values = self.values(key)
        return stdev(values) if len(values) > 1 and key not in TESTS else None


def numbers_of(run: Run, texts: Sequence[str], p: Numbers) -> Numbers:
    """Return the scores on the texts (shares), costs and p-values of a run with results, by name.

    The first text is a split, whose scores have short names; those of further files begin with the name of the file.
    """
    results: dict[str, Any] = run.results or {}
    split, *files = texts
    types = results.get("types", {}).get(split, {})
    by_type = {f"{TYPE}{name}": scores["score"] for name, scores in types.items()}
    further = {f"{file}/{name}": x for file in files for name, x in results.get(file, {}).items()}
    speed = {"tokens_per_second": results.get("tokens_per_second", {}).get(split)}
    costs = {key: {**results, **speed}.get(key) for key in (SIZE, *COSTS)}
    measured = {key: x for key, x in costs.items() if x is not None}
    return {**results.get(split, {}), **by_type, **further, **measured, **p}


def results_by_row(
    runs: Sequence[Run], texts: Sequence[str], tests: Sequence[Numbers], of_rows: Mapping[str, Mapping[str, Numbers]]
) -> list[RowResults]:
    """Return the results of each row, in the order of their first runs; the tests come from `Significance`.

    `of_rows` are the tests of rows by text, {text: {row: tests}}; see `numbers_of` for the texts.
    """
    by_name: dict[str, RowResults] = {}
    for run, p in zip(runs, tests, strict=True):
        name = run.row.name
        if name not in by_name:
            of_texts = {text: of_rows.get(text, {}).get(name, {}) for text in texts}
            merged = {f"{start}{key}": x for text, start in _starts(texts) for key, x in of_texts[text].items()}
            by_name[name] = RowResults(run.row, [], [], merged)
        by_name[name].runs.append(run)
        if run.results is not None:
            by_name[name].numbers.append(numbers_of(run, texts, p))
    return list(by_name.values())


def _starts(texts: Sequence[str]) -> list[tuple[str, str]]:
    """Return each text and the beginning of the names of its numbers."""
    return [(text, f"{text}/" if i else "") for i, text in enumerate(texts)]


class TableColumn(NamedTuple):
    """A column of the printed table: its heading, and the text of its cells."""

    head: str
    cell: Callable[[RowResults], str]


def score_columns(lines: Sequence[RowResults], measure: str) -> list[TableColumn]:
    """Return the columns for which some run has a number, except scores by type."""
    keys = {key for line in lines for numbers in (*line.numbers, line.tests) for key in numbers}
    shares = {"score": measure, "precision": "precision", "recall": "recall", "sentence_accuracy": "sentences"}
    heads = ("parameters", "model MB", "epochs", "seconds", "tokens/s", "MB", "GPU MB")
    forms = (",.0f", ".1f", ".4g", ".1f", ",.0f", ",.0f", ",.0f")
    made = [(SIZE, TableColumn("sequences", _cell(SIZE, ",.0f")))] if any(line.row.curve for line in lines) else []
    made += [(key, TableColumn(head, _cell(key, factor=100))) for key, head in shares.items()]
    made += [("score_low", TableColumn("95 %", _interval("")))]
    made += [("difference", TableColumn("difference", _difference("")))]
    tests = {key: key.replace("_", " ") for key in (*ROW_TESTS, *TESTS)} | {"p_documents_holm": "p Holm"}
    made += [(key, TableColumn(head, _cell(key, ".2g"))) for key, head in tests.items()]
    made += [(key, TableColumn(head, _cell(key, form))) for key, head, form in zip(COSTS, heads, forms, strict=True)]
    return [*(column for key, column in made if key in keys), TableColumn("runs", _runs)]


def type_columns(lines: Sequence[RowResults]) -> list[TableColumn]:
    """Return the columns of scores by segment type; none for labels without segments."""
    keys = sorted({key for line in lines for numbers in line.numbers for key in numbers if key.startswith(TYPE)})
    return [TableColumn(key.removeprefix(TYPE), _cell(key, factor=100)) for key in keys]


def text_columns(lines: Sequence[RowResults], measure: str, texts: Sequence[str]) -> list[TableColumn]:
    """Return the columns of scores on each text with intervals and tests; none unless there are further files."""
    if len(texts) < 2:
        return []
    columns = []
    for text, start in _starts(texts):
        columns += [
            TableColumn(f"{text} {measure}", _cell(f"{start}score", factor=100)),
            TableColumn("95 %", _interval(start)),
            TableColumn("difference", _difference(start)),
            TableColumn("p documents", _cell(f"{start}p_documents", ".2g")),
            TableColumn("p Holm", _cell(f"{start}p_documents_holm", ".2g")),
        ]
    return columns


def _cell(key: str, form: str = ".2f", factor: float = 1) -> Callable[[RowResults], str]:
    def cell(line: RowResults) -> str:
        mean, spread = line.mean(key), line.spread(key)
        if mean is None:
            return ""
        constant = key in (SIZE, "parameters", "model_mb", "epochs") and spread == 0
        text = f"{factor * mean:{form}}"
        return text if spread is None or constant else f"{text} ± {factor * spread:{form}}"

    return cell


def _difference(start: str) -> Callable[[RowResults], str]:
    def cell(line: RowResults) -> str:
        if f"{start}difference" not in line.tests:
            return ""
        mean, low, high = (100 * line.tests[f"{start}difference{end}"] for end in ("", "_low", "_high"))
        return f"{mean:+.2f} ({low:+.2f} to {high:+.2f})"

    return cell


def _interval(start: str) -> Callable[[RowResults], str]:
    def cell(line: RowResults) -> str:
        low, high = (line.tests.get(f"{start}score_{end}") for end in ("low", "high"))
        return "" if low is None or high is None else f"{100 * low:.2f} to {100 * high:.2f}"

    return cell


def _runs(line: RowResults) -> str:
    done, planned = len(line.numbers), len(line.row.seeds)
    return str(planned) if done == planned else f"{done} of {planned}"


def study_lines(lines: Sequence[RowResults], columns: Sequence[TableColumn], width: int | None = None) -> Iterator[str]:
    """Yield the table as text, in blocks of columns that fit the width, then notes with the names that are shortened.

    The width is by default that of the terminal, at most `WIDTH`.
    """
    width = width or min(WIDTH, shutil.get_terminal_size((WIDTH, 24)).columns)
    cells, notes = short_cells(_cells(lines, columns), LONGEST)
    yield from wrapped_table(cells, width)
    for note in notes:
        yield from wrap(note, width, subsequent_indent="    ")


def _cells(lines: Sequence[RowResults], columns: Sequence[TableColumn]) -> list[list[str]]:
    heading = ["", *(column.head for column in columns)]
    return [heading, *([line.row.name, *(column.cell(line) for column in columns)] for line in lines)]


def markdown(lines: Sequence[RowResults], measure: str, texts: Sequence[str], baseline: str) -> str:
    """Return the tables in Markdown, each with a caption; see `markdown_table` for columns that do not fit.

    `texts`: the split, then further files.
    """
    seeds, split = "mean ± standard deviation over seeds", texts[0]
    compared = f"{baseline}{' of the same size' if any(line.row.curve for line in lines) else ''}"
    tests = (
        f"95 % intervals are over documents (bootstrap). Difference to {compared} with its interval, p over seeds "
        "(paired t-test) and over documents (paired bootstrap), also corrected for the number of rows (Holm), and "
        "of McNemar's tests on tokens and on sentences, the median over seeds"
    )
    parts = [f"{measure} and other scores on the {split} split in per cent, {seeds}. {tests}.", ""]
    parts += _markdown_lines(lines, score_columns(lines, measure))
    if types := type_columns(lines):
        parts += ["", f"{measure} by type on the {split} split.", "", *_markdown_lines(lines, types)]
    if columns := text_columns(lines, measure, texts):
        parts += ["", f"{measure} on {', '.join(texts)}.", "", *_markdown_lines(lines, columns)]
    return "\n".join([*parts, ""])


def _markdown_lines(lines: Sequence[RowResults], columns: Sequence[TableColumn]) -> Iterator[str]:
    cells, notes = short_cells(_cells(lines, columns), LONGEST)
    yield from markdown_table(cells, WIDTH)
    for note in notes:
        yield from ("", *wrap(note, WIDTH))


def means(line: RowResults) -> dict[str, Any]:
    """Return the tests of a row, then the mean of each number and its standard deviation as NAME_sd.

    P-values of runs have a median only.
    """
    values: dict[str, Any] = dict(line.tests)
    for key in dict.fromkeys(key for numbers in line.numbers for key in numbers):
        values[key] = line.mean(key)
        if key not in TESTS:
            values[f"{key}_sd"] = line.spread(key)
    return values


def write_means(path: str, lines: Sequence[RowResults]) -> None:
    """Write one line per row of the study as CSV; shares are in 0..1."""
    write_records(path, [{"row": line.row.name, "runs": len(line.numbers), **means(line)} for line in lines])


def write_runs(path: str, lines: Sequence[RowResults]) -> None:
    """Write one line per run as CSV; shares are in 0..1."""
    flat = []
    for line in lines:
        numbers = iter(line.numbers)
        for run in line.runs:
            scores = {} if run.results is None else next(numbers)
            about = {"row": line.row.name, "seed": run.seed, "run": run.folder or "", "error": run.error or ""}
            flat.append({**about, **scores})
    write_records(path, flat)


COST_LABELS = {  # number of a run: label of its axis
    "seconds": "training (seconds)",
    "tokens_per_second": "tagging (tokens/s)",
    "model_mb": "model (MB)",
    "peak_memory_mb": "memory (MB)",
}
LEGEND_COLUMNS = 4


def plot_study(lines: Sequence[RowResults], measure: str, split: str) -> Figure:
    """Return a figure of mean score (per cent) over mean training seconds, with a point and a legend entry per row.

    Learning curves have a line and a legend entry each, over the number of training sequences. The x axis is
    logarithmic, and bars are standard deviations over seeds. Rows without results are left out.
    """
    shown = [line for line in lines if line.numbers]
    learners = list(dict.fromkeys(line.row.learner for line in shown))
    x, label = "seconds", COST_LABELS["seconds"]
    if any(line.row.curve for line in shown):
        x, label = SIZE, "training sequences"
    figure = Figure(figsize=(8, 4.5 + _legend_height(len(learners))), layout="constrained")
    ax = figure.subplots()
    for number, learner in enumerate(learners):
        _series(ax, [line for line in shown if line.row.learner == learner], x, number)
    _finish(ax)
    ax.set(xlabel=label, ylabel=f"{split} {measure} (%)")
    _legend(figure, ax, learners)
    return figure


def plot_comparison(studies: Mapping[str, tuple[str, str, Sequence[RowResults]]]) -> Figure:
    """Return a figure with a row of panels for each study, one for each cost, and a legend of the rows.

    Args:
        studies: Measure, split and rows of each study, by its name. Rows of the same name have the same mark in all
            panels; a row without results, or without that cost, is not drawn.
    """
    names = list(dict.fromkeys(line.row.learner for _, _, lines in studies.values() for line in lines))
    height = 2.8 * len(studies) + _legend_height(len(names))
    figure = Figure(figsize=(3.2 * len(COST_LABELS), height), layout="constrained")
    grid = figure.subplots(len(studies), len(COST_LABELS), squeeze=False, sharex="col", sharey="row")
    for panels, (study, (measure, split, lines)) in zip(grid, studies.items(), strict=True):
        for ax, cost in zip(panels, COST_LABELS, strict=True):
            for line in lines:
                if line.mean(cost) and line.mean("score") is not None:
                    _series(ax, [line], cost, names.index(line.row.learner))
            _finish(ax)
            ax.grid(alpha=0.3)
        panels[0].set_ylabel(f"{escape_dollars(study)}\n{split} {measure} (%)")
    for ax, text in zip(grid[-1], COST_LABELS.values(), strict=True):
        ax.set_xlabel(text)
    _legend(figure, grid[0, 0], names)
    return figure


def _series(ax: Axes, lines: Sequence[RowResults], cost: str, number: int) -> None:
    """Draw the mean scores of rows over their mean costs, with bars for standard deviations, and join them."""
    x, y, x_spread, y_spread = (
        [factor * (number_of(line, key) or 0.0) for line in sorted(lines, key=lambda line: line.mean(cost) or 0.0)]
        for number_of in (RowResults.mean, RowResults.spread)
        for key, factor in ((cost, 1), ("score", 100))
    )
    xerr, yerr = (spread if any(spread) else None for spread in (x_spread, y_spread))
    ax.errorbar(x, y, xerr=xerr, yerr=yerr, capsize=2, **series_style(number))


def _finish(ax: Axes) -> None:
    ax.set_xscale("log")
    ax.margins(0.12)
    open_frame(ax)


def _legend(figure: Figure, ax: Axes, names: Sequence[str]) -> None:
    """Draw the legend below all panels, then label the axes, whose limits are final by then."""
    marks = [
        ax.plot([], [], **{**series_style(i), "linestyle": "none"}, label=escape_dollars(name))[0]
        for i, name in enumerate(names)
    ]
    figure.legend(handles=marks, loc="outside lower center", ncols=LEGEND_COLUMNS, fontsize=8, frameon=False)
    figure.draw_without_rendering()
    for axes in figure.axes:
        plain_log_ticks(axes.xaxis, 9 if len(figure.axes) == 1 else 4)


def _legend_height(names: int) -> float:
    return 0.22 * (names // LEGEND_COLUMNS + 1)
