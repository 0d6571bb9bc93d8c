"""Sweeps: configurations from a grid of values; the best on development data is trained on all data."""

import json
from collections.abc import Iterator, Sequence
from math import isfinite
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from structperc.errors import InputError, errors_at
from structperc.experiments.experiment import (
    LOG,
    ExperimentRow,
    Run,
    check_same,
    dry_run,
    grid_rows,
    identity,
    parse_grid,
    run_trial,
    run_trials,
    short_keys,
)
from structperc.progress import bar
from structperc.reports.figures import escape_dollars, open_frame, plain_log_ticks, series_style, write_figure
from structperc.reports.tables import percent, text_table, write_json, write_records
from structperc.training.report import results_table
from structperc.training.run_folders import lock_folder

SWEEP_RECORD, TABLE, FIGURE = "sweep.json", "sweep.csv", "sweep.png"
FINAL = "final"
SPLITS = ("dev", "test")
DECADE = 10


class Point(NamedTuple):
    """A row of a grid with its runs: one, or one per seed."""

    row: ExperimentRow
    runs: list[Run]

    @property
    def error(self) -> str | None:
        """The error of the first failed training; None without any."""
        return next((run.error for run in self.runs if run.error is not None), None)

    @property
    def scores(self) -> list[float]:
        """The scores of the successful trainings on development data, as shares in 0..1."""
        return [run.results["dev"]["score"] for run in self.runs if run.results is not None]

    @property
    def score(self) -> float:
        """The mean score on development data; NaN if all trainings failed."""
        return fmean(self.scores) if self.scores else float("nan")


def points_of(runs: Sequence[Run]) -> list[Point]:
    """Return the runs by row, in the order of the first of each."""
    points = {run.row.name: Point(run.row, []) for run in runs}
    for run in runs:
        points[run.row.name].runs.append(run)
    return list(points.values())


def sweep_lines(found: Sequence[Point]) -> Iterator[str]:
    """Yield a line per point: dev score and sentence accuracy in per cent, epochs and seconds, as means over seeds."""
    keys = short_keys(key for key, _ in found[0].row.values)
    several = max(len(p.runs) for p in found) > 1
    rows = [[*keys, "dev score", "sentences", "epochs", "seconds", "std" if several else ""]]
    for point in found:
        if point.error is None:
            results = [run.results for run in point.runs if run.results is not None]
            correct = fmean(each["dev"]["sentence_accuracy"] for each in results)
            effort = [f"{fmean(each[name] for each in results):.1f}" for name in ("epochs", "seconds")]
            spread = percent(stdev(point.scores)) if len(point.scores) > 1 else ""
            cells = [percent(point.score), percent(correct), *effort, spread]
        else:
            cells = [*[""] * 5, f"failed: {point.error}"]
        rows.append([*(value for _, value in point.row.values), *cells])
    return text_table(rows, "<" * len(keys) + ">>>>><")


def plot_sweep(found: Sequence[Point]) -> Figure:
    """Return a figure with mean scores as a line per combination of the other options, and single trainings as dots.

    Numbers are drawn to scale, on a logarithmic axis if they are positive and span a factor of 10 or more; other
    values side by side. Failed trainings are left out.
    """
    figure = Figure(figsize=(6, 4), layout="constrained")
    ax = figure.subplots()
    places = _draw_scale(ax, list(dict.fromkeys(p.row.values[0][1] for p in found)))
    for number, others in enumerate(dict.fromkeys(p.row.values[1:] for p in found)):
        points = [(places[p.row.values[0][1]], p) for p in found if p.row.values[1:] == others and p.scores]
        points.sort(key=lambda pair: pair[0])
        label = escape_dollars(", ".join(f"{key}={value}" for key, value in others))
        x, y = [place for place, _ in points], [100 * p.score for _, p in points]
        (line,) = ax.plot(x, y, label=label, **series_style(number))
        for place, point in points:
            if len(point.scores) > 1:
                y = [100 * score for score in point.scores]
                ax.plot([place] * len(y), y, ".", color=line.get_color())
    if ax.get_xscale() == "log":
        plain_log_ticks(ax.xaxis)
    ax.set(xlabel=escape_dollars(found[0].row.values[0][0]), ylabel="dev score (%)")
    open_frame(ax)
    if len(found[0].row.values) > 1:
        ax.legend(fontsize=8)
    return figure


def _draw_scale(ax: Axes, values: Sequence[str]) -> dict[str, float]:
    try:
        places = {value: float(value) for value in values}
    except ValueError:
        places = {}
    if not places or not all(map(isfinite, places.values())):
        ax.set_xticks(range(len(values)), [escape_dollars(value) for value in values])
        ax.tick_params("x", rotation=20)
        for label in ax.get_xticklabels():
            label.set(ha="right", rotation_mode="anchor")
        return {value: float(i) for i, value in enumerate(values)}
    if min(places.values()) > 0 and max(places.values()) >= DECADE * min(places.values()):
        ax.set_xscale("log")
    return places


def sweep(
    configs: Sequence[str],
    grids: Sequence[str],
    holdout: float = 0,
    seeds: Sequence[int] | None = None,
    root: str | None = None,
    options: Sequence[str] = (),
) -> Iterator[str]:
    """Run a sweep: train a configuration for each combination of values, and choose the best on development data.

    The configuration is trained once for each combination of the values in `grids` and each of the seeds
    (seed_everything and data.seed), in ROOT/KEY=VALUE, or ROOT/KEY=VALUE/seed=SEED. See `experiment` for trainings that
    are interrupted or fail.

    The point with the highest dev score, the mean over its seeds, is chosen; the earlier one of equal points, and only
    points without a failed training. With a holdout, development data are the last training sequences, or a share of
    them, and the chosen point is afterwards trained on all training data, in ROOT/final/KEY=VALUE, for which there are
    no development data: its last epoch is saved, and callbacks that monitor dev/score have no effect. Without a holdout
    the run of the chosen point is the result.

    sweep.json and sweep.csv in ROOT contain values, results and command of each training, sweep.png the scores.

    Args:
        configs: Configuration files, each merged over those before it.
        grids: Options with their values, "KEY=V1,V2".
        holdout: Number or share of training sequences to use as development data; 0: those of the configuration.
        seeds: Random seeds; default: that of the configuration.
        root: Folder of all runs; default: sweep-KEYS in the folder of the configuration's runs.
        options: Further arguments of `fit`, for all trainings.

    Yields:
        Lines about the progress, then the table and the chosen point.

    Raises:
        InputError: Before any training: a grid is malformed, `fit` does not accept an option or a value, the
            configuration has no development data, or the root has another sweep or one that is running. At the end: all
            points failed, or the training on all data.

    Example:
        >>> lines = sweep(["pkg:studies/embedded#crf"], ["model.prior.C=0.1,1,10"])  # starts when it is read
        >>> for line in lines:  # doctest: +SKIP
        ...     print(line)
    """
    plan = SweepRun([*configs], parse_grid(grids), holdout, [*dict.fromkeys(seeds or ())], [*options])
    default = plan.check() / f"sweep-{'-'.join(short_keys(plan.grid))}"
    folder = default if root is None else Path(root)
    with lock_folder(folder, "wait for it, or set --root"):
        yield from plan.run(folder)


class SweepRun(NamedTuple):
    """A sweep as its command line describes it."""

    configs: list[str]  # files
    grid: dict[str, list[str]]  # option -> values
    holdout: float  # 0: development data of the configuration
    seeds: list[int]  # empty: the seed of the configuration
    options: list[str]  # further arguments of fit, for all trainings

    @property
    def rows(self) -> list[ExperimentRow]:
        """A row for each combination of values."""
        return grid_rows(self.grid, self.configs, self.options, self.seeds)

    @property
    def holdout_options(self) -> list[str]:
        """The option of the holdout, for all trainings but the final one."""
        return [f"--data.holdout={self.holdout}"] if self.holdout else []

    def identity(self) -> dict[str, Any]:
        """Return the properties that all trainings share; values and seeds may be added to a sweep."""
        return identity(self.configs, options=self.options, holdout=self.holdout, keys=list(self.grid))

    def check(self) -> Path:
        """Return the root of the configuration's runs. Raises InputError for mistakes in any training."""
        program = None
        for row in bar(self.rows, "checking"):
            with errors_at(f"sweep: {row.name}"):
                made = dry_run([*row.arguments(row.trials[0][1]), *self.holdout_options])
            if program is None:
                program, data = made, made.datamodule
                data.corpus("train")
                if not data.has("dev"):
                    raise InputError("sweep: no dev split to choose by: name one under data, or set --holdout N")
        assert program is not None  # a grid has a point
        return program.root

    def run(self, root: Path) -> Iterator[str]:
        """Train all points; yield the progress, the table and the chosen point. Raises InputError as `sweep`."""
        if (root / SWEEP_RECORD).is_file():
            before = json.loads((root / SWEEP_RECORD).read_text(encoding="utf-8"))["sweep"]
            check_same(before, self.identity(), str(root), "set --root to another folder")
        steps = [row.trials for row in self.rows]
        done = yield from run_trials(
            steps, "points", root, SPLITS, self.holdout_options, lambda runs: self._write(root, runs)
        )
        points = points_of(done)
        write_figure(str(root / FIGURE), plot_sweep(points))
        yield from ("", *sweep_lines(points), "")
        best = best_of(points, root)
        yield f"best: {best.row.name}, dev score {100 * best.score:.2f}"
        final = best.runs
        if self.holdout:
            final = []
            for trial in best.row.trials:
                run, line = run_trial(trial, root / FINAL, SPLITS, ["--data.holdout=0"])
                final.append(run)
                yield f"[{FINAL}] {line}"
        self._write(root, done, best, final)
        for run in final:
            if run.results is None:
                raise InputError(f"sweep: the final training failed: {run.error} (see {LOG} under {root / FINAL})")
            if scores := {split: run.results[split] for split in run.results if split in SPLITS}:
                yield results_table(scores)
            yield f"model: {run.folder}/model"
        yield f"sweep: {root / SWEEP_RECORD}, {TABLE}, {FIGURE}"

    def _write(self, root: Path, done: Sequence[Run], best: Point | None = None, final: Sequence[Run] = ()) -> None:
        trials, last = (
            [{"values": dict(run.row.values), "seed": run.seed, **run.record()} for run in runs]
            for runs in (done, final)
        )
        chosen = None if best is None else {"values": dict(best.row.values), "dev_score": best.score}
        record = {"sweep": self.identity(), "grid": self.grid, "seeds": self.seeds}
        write_json(root / SWEEP_RECORD, {**record, "trials": trials, "best": chosen, "final": last})
        flat = []
        for run in done:
            results = run.results or {}
            scores = {f"{split}_{name}": x for split in SPLITS for name, x in results.get(split, {}).items()}
            about = {"seed": "" if run.seed is None else run.seed, "run": run.folder or "", "error": run.error or ""}
            effort = {name: results.get(name, "") for name in ("epochs", "seconds")}
            flat.append({**dict(run.row.values), **about, **effort, **scores})
        write_records(str(root / TABLE), flat)


def best_of(found: Sequence[Point], folder: Path) -> Point:
    """Return the point with the highest score, the first of equal ones. Raises InputError if all points failed."""
    whole = [point for point in found if point.error is None]
    if not whole:
        raise InputError(f"sweep: no point could be trained; {found[0].row.name}: {found[0].error} (see {folder})")
    return max(whole, key=lambda one: one.score)
