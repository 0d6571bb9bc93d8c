"""The results of a sweep as text and as a table of all trainings.

The figure of a sweep: its scores on development data over the values of its first option.

A sweep: a study whose rows come from a grid. The best row on development data is chosen and trained on all data.
"""

import json
from collections.abc import Iterator, Sequence
from math import isfinite
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from structperc.errors import InputError
from structperc.experiments.dry_run import dry_run
from structperc.experiments.experiment import LOG, Experiment, Run, Trial, run_experiment, train_trial
from structperc.experiments.rows import Row, check_same, grid_rows, identity, parse_grid, short_keys
from structperc.progress import bar
from structperc.reports.figures import escape_dollars, open_frame, plain_log_ticks, series_style, write_figure
from structperc.reports.tables import percent, text_table, write_records
from structperc.training.report import results_table, write_json


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
    several = max(len(one.runs) for one in found) > 1
    rows = [[*keys, "dev score", "sentences", "epochs", "seconds", "std" if several else ""]]
    rows += [[*(value for _, value in one.row.values), *_cells(one)] for one in found]
    return text_table(rows, "<" * len(keys) + ">>>>><")


def _cells(one: Point) -> list[str]:
    if one.error is not None:
        return [*[""] * 5, f"failed: {one.error}"]
    right = fmean(results["dev"]["sentence_accuracy"] for results in one.results)
    effort = [f"{fmean(results[name] for results in one.results):.1f}" for name in ("epochs", "seconds")]
    return [percent(one.score), percent(right), *effort, percent(stdev(one.scores)) if len(one.scores) > 1 else ""]


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


DECADE = 10


def plot_sweep(found: Sequence[Point]) -> Figure:
    """Return a figure with mean scores as a line per combination of the other options, and single trainings as dots.

    Numbers are drawn to scale, on a logarithmic axis when they are positive and span a factor of 10 or more; other
    values stand side by side. Trainings that failed are left out.
    """
    figure = Figure(figsize=(6, 4), layout="constrained")
    ax = figure.subplots()
    values = list(dict.fromkeys(one.row.values[0][1] for one in found))
    places, numbers = _places(values)
    for number, others in enumerate(dict.fromkeys(one.row.values[1:] for one in found)):
        line = [one for one in found if one.row.values[1:] == others and one.scores]
        line.sort(key=lambda one: places[one.row.values[0][1]])
        _line(ax, line, places, ", ".join(f"{key}={value}" for key, value in others), number)
    _axis(ax, places, numbers)
    ax.set(xlabel=escape_dollars(found[0].row.values[0][0]), ylabel="dev score (%)")
    open_frame(ax)
    if len(found[0].row.values) > 1:
        ax.legend(fontsize=8)
    return figure


def _line(ax: Axes, found: Sequence[Point], places: dict[str, float], label: str, number: int) -> None:
    x = [places[one.row.values[0][1]] for one in found]
    (drawn,) = ax.plot(x, [100 * one.score for one in found], label=escape_dollars(label), **series_style(number))
    for place, one in zip(x, found, strict=True):
        if len(one.scores) > 1:
            ax.plot([place] * len(one.scores), [100 * score for score in one.scores], ".", color=drawn.get_color())


def _places(values: Sequence[str]) -> tuple[dict[str, float], bool]:
    """Value -> place on the axis: the number it is, or its position; whether all are finite numbers."""
    try:
        numbers = {value: float(value) for value in values}
    except ValueError:
        numbers = {}
    if numbers and all(map(isfinite, numbers.values())):
        return numbers, True
    return {value: float(i) for i, value in enumerate(values)}, False


def _axis(ax: Axes, places: dict[str, float], numbers: bool) -> None:
    low, high = min(places.values()), max(places.values())
    if not numbers:
        ax.set_xticks(list(places.values()), [escape_dollars(value) for value in places])
        ax.tick_params("x", rotation=20)
        for label in ax.get_xticklabels():
            label.set(ha="right", rotation_mode="anchor")
    elif low > 0 and high >= DECADE * low:
        ax.set_xscale("log")
        plain_log_ticks(ax.xaxis)


SWEEP_RECORD, TABLE, FIGURE = "sweep.json", "sweep.csv", "sweep.png"
FINAL = "final"
SPLITS = ("dev", "test")


class SweepPlan(NamedTuple):
    """A sweep as its command line describes it."""

    configs: list[str]  # files
    grid: dict[str, list[str]]  # option -> values
    holdout: float  # 0: development data are those of the configuration
    seeds: list[int]  # none: that of the configuration
    options: list[str]  # more arguments of fit, for all trainings

    @property
    def rows(self) -> list[Row]:
        """A row for each combination of values."""
        return grid_rows(self.grid, self.configs, self.options, self.seeds)

    @property
    def held(self) -> list[str]:
        """The option that holds data out, for the trainings among which is chosen."""
        return [f"--data.holdout={self.holdout}"] if self.holdout else []

    def identity(self) -> dict[str, Any]:
        """Return what all trainings of a sweep share; further values and seeds may be added to one."""
        return identity(self.configs, options=self.options, holdout=self.holdout, keys=list(self.grid))


def sweep(
    configs: Sequence[str],
    grids: Sequence[str],
    holdout: float = 0,
    seeds: Sequence[int] | None = None,
    root: str | None = None,
    options: Sequence[str] = (),
) -> Iterator[str]:
    """Yield lines about the progress of a sweep, then its table and what was chosen.

    The configuration is trained once for each combination of values in `grids` ("KEY=V1,V2") and each of the seeds
    (seed_everything and data.seed), in ROOT/KEY=VALUE, or ROOT/KEY=VALUE/seed=SEED. How trainings are kept, go on and
    fail: see `experiment`.

    The point of the highest dev score, the mean over its seeds, is chosen; of equal ones the earlier, and none with
    a training that failed. With a holdout, development data are the last so many training sequences, or a share of
    them, and the chosen point is afterwards trained on all training data, in ROOT/final/KEY=VALUE. There are no
    development data then: its last epoch counts, and callbacks that watch dev/score have nothing to watch. Without a
    holdout the chosen point's own run is taken.

    sweep.json and sweep.csv in ROOT have every training's values, results and command, sweep.png shows the scores.

    Raises InputError, before anything is trained, for grids of another form, options or values that fit does not take,
    a configuration without development data, and a root that holds another sweep or in which one runs; in the end when
    every point failed, or the training on all data.
    """
    plan = SweepPlan([*configs], parse_grid(grids), holdout, [*dict.fromkeys(seeds or ())], [*options])
    runs = _checked(plan)
    yield from run_experiment(
        SweepExperiment(plan, Path(root) if root is not None else runs / f"sweep-{'-'.join(short_keys(plan.grid))}")
    )


def _checked(plan: SweepPlan) -> Path:
    """The root of the configuration's runs. Raises InputError for what fit would refuse, if that shows at once."""
    root = None
    for row in bar(plan.rows, "checking"):
        try:
            program = dry_run([*row.arguments(row.trials[0][1]), *plan.held])
        except InputError as error:
            raise InputError(f"sweep: {row.name}: {error}") from None
        if root is None:
            root, data = program.root, program.datamodule
            data.corpus("train")
            if not data.has("dev"):
                raise InputError("sweep: there is no dev split to choose by: name one under data, or set --holdout N")
    assert root is not None  # a grid has a point
    return root


class SweepExperiment(Experiment):
    """The experiment of a grid, whose outcome is the best row, trained on all data.

    Args:
        plan: what is trained.
        root: the folder of all runs.
    """

    unit = "points"

    def __init__(self, plan: SweepPlan, root: Path) -> None:
        super().__init__(plan.rows, root, SPLITS, plan.held)
        self.plan = plan

    @property
    def steps(self) -> list[list[Trial]]:
        """The trainings of all points, a point being one step however many seeds it is trained with."""
        return [row.trials for row in self.rows]

    def prepare(self) -> None:
        """Raise InputError for a root that holds another sweep.

        The sweep's own record is written after the first run.
        """
        path = self.root / SWEEP_RECORD
        if path.is_file():
            before = json.loads(path.read_text(encoding="utf-8"))["sweep"]
            check_same(before, self.plan.identity(), f"{self.root} holds a sweep", "set --root to another folder")

    def keep(self, done: Sequence[Run]) -> None:
        """Write the table and the record of the runs so far."""
        self._keep(done)

    def close(self, done: Sequence[Run]) -> Iterator[str]:
        """Write the figure and train the best point on all data.

        Yield the table, the best point, its scores and models.

        Raises InputError if every point has a failure, and if the last training failed.
        """
        found = points_of(done)
        write_figure(str(self.root / FIGURE), plot_sweep(found))
        yield from ("", *sweep_lines(found), "")
        best = best_of(found, self.root)
        yield f"best: {best.row.name}, dev score {100 * best.score:.2f}"
        final = best.runs
        if self.plan.holdout:
            final = []
            for trial in best.row.trials:
                made, line = train_trial(trial, self.root / FINAL, SPLITS, ["--data.holdout=0"])
                final.append(made)
                yield f"[{FINAL}] {line}"
        self._keep(done, best, final)
        yield from _final_lines(final, self.root)
        yield f"sweep: {self.root / SWEEP_RECORD}, {TABLE}, {FIGURE}"

    def _keep(self, done: Sequence[Run], best: Point | None = None, final: Sequence[Run] = ()) -> None:
        record = {
            "sweep": self.plan.identity(),
            "grid": self.plan.grid,
            "seeds": self.plan.seeds,
            "trials": [_about(one) for one in done],
            "best": None if best is None else {"values": dict(best.row.values), "dev_score": best.score},
            "final": [_about(one) for one in final],
        }
        write_json(self.root / SWEEP_RECORD, record)
        write_table(str(self.root / TABLE), done)


def _about(made: Run) -> dict[str, Any]:
    """A run as plain JSON types."""
    return {"values": dict(made.row.values), "seed": made.seed, **made.training.about()}


def best_of(found: Sequence[Point], folder: Path) -> Point:
    """Return the point of the highest score, of equal ones the first.

    Raises InputError if every point has a failure.
    """
    whole = [one for one in found if one.error is None]
    if not whole:
        raise InputError(f"sweep: no point could be trained; {found[0].row.name}: {found[0].error} (see {folder})")
    return max(whole, key=lambda one: one.score)


def _final_lines(final: Sequence[Run], folder: Path) -> Iterator[str]:
    """Scores and models of the chosen point."""
    for made in final:
        results = made.training.results
        if results is None:
            raise InputError(
                f"sweep: the final training failed: {made.training.error} (see {LOG} under {folder / FINAL})"
            )
        scores = {split: results[split] for split in results if split in SPLITS}
        if scores:
            yield results_table(scores)
        yield f"model: {made.training.run}/model"
