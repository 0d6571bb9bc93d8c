"""Sweeps: configurations from a grid of values; the best on development data is trained on all data."""

import json
from collections.abc import Iterator, Sequence
from math import isfinite
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from structperc.errors import InputError
from structperc.experiments.experiment import LOG, Run, dry_run, run_trial, run_trials
from structperc.experiments.rows import ExperimentRow, check_same, grid_rows, identity, parse_grid, short_keys
from structperc.progress import bar
from structperc.reports.figures import escape_dollars, open_frame, plain_log_ticks, series_style, write_figure
from structperc.reports.tables import percent, text_table, write_records
from structperc.training.report import results_table, write_json
from structperc.training.run_folders import lock_folder

SWEEP_RECORD, TABLE, FIGURE = "sweep.json", "sweep.csv", "sweep.png"
FINAL = "final"
SPLITS = ("dev", "test")
DECADE = 10


class Point(NamedTuple):
    """A row of a grid with all its runs: one, or one per seed."""

    row: ExperimentRow
    runs: list[Run]

    @property
    def error(self) -> str | None:
        """The error of the first failed training; None without any."""
        return next((run.error for run in self.runs if run.error is not None), None)

    @property
    def results(self) -> list[dict[str, Any]]:
        """The results of the successful trainings."""
        return [run.results for run in self.runs if run.results is not None]

    @property
    def scores(self) -> list[float]:
        """The scores of the successful trainings on development data, as shares in 0..1."""
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


def _flat(run: Run) -> dict[str, object]:
    results = run.results or {}
    scores = {f"{split}_{name}": x for split in SPLITS for name, x in results.get(split, {}).items()}
    effort = {name: results.get(name, "") for name in ("epochs", "seconds")}
    seed = "" if run.seed is None else run.seed
    return {**dict(run.row.values), "seed": seed, "run": run.folder or "", "error": run.error or "", **effort, **scores}


def plot_sweep(found: Sequence[Point]) -> Figure:
    """Return a figure with mean scores as a line per combination of the other options, and single trainings as dots.

    Numbers are drawn to scale, on a logarithmic axis if they are positive and span a factor of 10 or more; other
    values side by side. Failed trainings are left out.
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
    """Return the place of each value on the axis, and True if the values are numbers, which are their places."""
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


class SweepPlan(NamedTuple):
    """A sweep as its command line describes it."""

    configs: list[str]  # files
    grid: dict[str, list[str]]  # option -> values
    holdout: float  # 0: development data are those of the configuration
    seeds: list[int]  # none: that of the configuration
    options: list[str]  # more arguments of fit, for all trainings

    @property
    def rows(self) -> list[ExperimentRow]:
        """A row for each combination of values."""
        return grid_rows(self.grid, self.configs, self.options, self.seeds)

    @property
    def holdout_options(self) -> list[str]:
        """The option that holds data out, for all trainings but the final one."""
        return [f"--data.holdout={self.holdout}"] if self.holdout else []

    def identity(self) -> dict[str, Any]:
        """Return the properties that all trainings share; values and seeds may be added to a sweep."""
        return identity(self.configs, options=self.options, holdout=self.holdout, keys=list(self.grid))


def sweep(
    configs: Sequence[str],
    grids: Sequence[str],
    holdout: float = 0,
    seeds: Sequence[int] | None = None,
    root: str | None = None,
    options: Sequence[str] = (),
) -> Iterator[str]:
    """Yield lines about the progress of a sweep, then its table and the chosen point.

    The configuration is trained once for each combination of values in `grids` ("KEY=V1,V2") and each of the seeds
    (seed_everything and data.seed), in ROOT/KEY=VALUE, or ROOT/KEY=VALUE/seed=SEED. See `experiment` for trainings
    that are interrupted or fail.

    The point with the highest dev score, the mean over its seeds, is chosen; the earlier one of equal points, and only
    points without a failed training. With a holdout, development data are the last training sequences, or a share of
    them, and the chosen point is afterwards trained on all training data, in ROOT/final/KEY=VALUE, for which there are
    no development data: its last epoch is saved, and callbacks that monitor dev/score have no effect. Without a
    holdout the run of the chosen point is the result.

    sweep.json and sweep.csv in ROOT contain values, results and command of each training, sweep.png the scores.

    Raises InputError, before any training, for grids of another form, options or values that fit does not accept, a
    configuration without development data, and a root with another sweep or one that is running; at the end if all
    points failed, or the training on all data.
    """
    plan = SweepPlan([*configs], parse_grid(grids), holdout, [*dict.fromkeys(seeds or ())], [*options])
    default = _check_trainings(plan) / f"sweep-{'-'.join(short_keys(plan.grid))}"
    folder = default if root is None else Path(root)
    with lock_folder(folder, "wait for it, or set --root"):
        yield from _run(plan, folder)


def _check_trainings(plan: SweepPlan) -> Path:
    """Return the root of the configuration's runs. Raises InputError for mistakes in the trainings of the sweep."""
    root = None
    for row in bar(plan.rows, "checking"):
        try:
            program = dry_run([*row.arguments(row.trials[0][1]), *plan.holdout_options])
        except InputError as error:
            raise InputError(f"sweep: {row.name}: {error}") from None
        if root is None:
            root, data = program.root, program.datamodule
            data.corpus("train")
            if not data.has("dev"):
                raise InputError("sweep: no dev split to choose by: name one under data, or set --holdout N")
    assert root is not None  # a grid has a point
    return root


def _run(plan: SweepPlan, root: Path) -> Iterator[str]:
    if (root / SWEEP_RECORD).is_file():
        before = json.loads((root / SWEEP_RECORD).read_text(encoding="utf-8"))["sweep"]
        check_same(before, plan.identity(), f"{root} contains a sweep", "set --root to another folder")
    steps = [row.trials for row in plan.rows]

    def keep(done: list[Run]) -> None:
        _write(plan, root, done)

    done = yield from run_trials(steps, "points", root, SPLITS, plan.holdout_options, keep)
    found = points_of(done)
    write_figure(str(root / FIGURE), plot_sweep(found))
    yield from ("", *sweep_lines(found), "")
    best = best_of(found, root)
    yield f"best: {best.row.name}, dev score {100 * best.score:.2f}"
    final = best.runs
    if plan.holdout:
        final = []
        for trial in best.row.trials:
            run, line = run_trial(trial, root / FINAL, SPLITS, ["--data.holdout=0"])
            final.append(run)
            yield f"[{FINAL}] {line}"
    _write(plan, root, done, best, final)
    yield from _final_lines(final, root)
    yield f"sweep: {root / SWEEP_RECORD}, {TABLE}, {FIGURE}"


def _write(
    plan: SweepPlan, root: Path, done: Sequence[Run], best: Point | None = None, final: Sequence[Run] = ()
) -> None:
    """Write the table and the record of the runs so far."""
    trials, last = (
        [{"values": dict(run.row.values), "seed": run.seed, **run.record()} for run in runs] for runs in (done, final)
    )
    record = {
        "sweep": plan.identity(),
        "grid": plan.grid,
        "seeds": plan.seeds,
        "trials": trials,
        "best": None if best is None else {"values": dict(best.row.values), "dev_score": best.score},
        "final": last,
    }
    write_json(root / SWEEP_RECORD, record)
    write_records(str(root / TABLE), [_flat(run) for run in done])


def best_of(found: Sequence[Point], folder: Path) -> Point:
    """Return the point with the highest score, the first of equal ones. Raises InputError if all points failed."""
    whole = [one for one in found if one.error is None]
    if not whole:
        raise InputError(f"sweep: no point could be trained; {found[0].row.name}: {found[0].error} (see {folder})")
    return max(whole, key=lambda one: one.score)


def _final_lines(final: Sequence[Run], folder: Path) -> Iterator[str]:
    """Yield scores and models of the chosen point."""
    for run in final:
        if run.results is None:
            raise InputError(f"sweep: the final training failed: {run.error} (see {LOG} under {folder / FINAL})")
        scores = {split: run.results[split] for split in run.results if split in SPLITS}
        if scores:
            yield results_table(scores)
        yield f"model: {run.folder}/model"
