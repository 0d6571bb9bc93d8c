"""The results of a sweep as text and as a table of all trainings."""

from collections.abc import Iterator, Sequence
from statistics import fmean, stdev
from typing import Any, NamedTuple

from structperc.experiments.experiment import Run
from structperc.experiments.grid import short_keys
from structperc.experiments.row import Row
from structperc.reports.table import Rest, percent, text_table
from structperc.reports.writing import write_records


class Point(NamedTuple):
    """A row of a grid with all its runs: one, or one per seed."""

    row: Row
    runs: list[Run]

    @property
    def error(self) -> str | None:
        """The complaint of the first training that failed, or None if none did."""
        return next((run.training.error for run in self.runs if run.training.error is not None), None)

    @property
    def results(self) -> list[dict[str, Any]]:
        """The results of the trainings that did not fail."""
        return [run.training.results for run in self.runs if run.training.results is not None]

    @property
    def scores(self) -> list[float]:
        """The scores on development data of the trainings that did not fail, as shares in 0..1."""
        return [results["dev"]["score"] for results in self.results]

    @property
    def score(self) -> float:
        """The mean score on development data; NaN if all trainings failed."""
        return fmean(self.scores) if self.scores else float("nan")


def points_of(runs: Sequence[Run]) -> list[Point]:
    """Return the runs by row, in the order of the first of each."""
    found = {run.row.name: Point(run.row, []) for run in runs}
    for run in runs:
        found[run.row.name].runs.append(run)
    return list(found.values())


def sweep_lines(found: Sequence[Point]) -> Iterator[str]:
    """Yield a line per point: dev score and sentence accuracy in per cent, epochs and seconds, as means over seeds."""
    keys = short_keys(key for key, _ in found[0].row.values)
    spread = ["std"] if max(len(one.runs) for one in found) > 1 else []
    rows = [[*keys, "dev score", "sentences", "epochs", "seconds", *spread]]
    rows += [[*(value for _, value in one.row.values), *_numbers(one)] for one in found]
    return text_table(rows, "<" * len(keys) + ">", [*(0 for _ in keys), 12, 10])


def _numbers(one: Point) -> list[str]:
    if one.error is not None:
        return [Rest(f" failed: {one.error}")]
    right = fmean(results["dev"]["sentence_accuracy"] for results in one.results)
    effort = [f"{fmean(results[name] for results in one.results):.1f}" for name in ("epochs", "seconds")]
    return [percent(one.score), percent(right), *effort, *([percent(stdev(one.scores))] if len(one.scores) > 1 else [])]


def write_table(path: str, runs: Sequence[Run]) -> None:
    """Write all trainings as CSV: values, seed, epochs, seconds, every score of dev and test, run and complaint."""
    write_records(path, [_flat(run) for run in runs])


def _flat(run: Run) -> dict[str, object]:
    results = run.training.results or {}
    scores = {f"{split}_{name}": x for split in ("dev", "test") for name, x in results.get(split, {}).items()}
    sums = {name: results.get(name, "") for name in ("epochs", "seconds")}
    about = {
        "seed": "" if run.seed is None else run.seed,
        "run": run.training.run or "",
        "error": run.training.error or "",
    }
    return {**dict(run.row.values), **about, **sums, **scores}
