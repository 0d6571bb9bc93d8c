"""A sweep: a study whose rows come from a grid. The best row on development data is chosen and trained on all data."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from structperc.errors import InputError
from structperc.experiments.draft import draft
from structperc.experiments.experiment import Experiment, Run, Trial, run_experiment, train_trial
from structperc.experiments.grid import grid_rows, parse_grid, short_keys
from structperc.experiments.row import Row, check_same, identity
from structperc.experiments.sweep_figure import plot_sweep
from structperc.experiments.sweep_table import Point, points_of, sweep_lines, write_table
from structperc.experiments.trial import LOG
from structperc.progress import bar
from structperc.reports.writing import write_figure
from structperc.training.report import results_table, write_json

RECORD, TABLE, FIGURE = "sweep.json", "sweep.csv", "sweep.png"
FINAL = "final"
SPLITS = ("dev", "test")


class Plan(NamedTuple):
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
    plan = Plan([*configs], parse_grid(grids), holdout, [*dict.fromkeys(seeds or ())], [*options])
    runs = _checked(plan)
    yield from run_experiment(
        BestOfGrid(plan, Path(root) if root is not None else runs / f"sweep-{'-'.join(short_keys(plan.grid))}")
    )


def _checked(plan: Plan) -> Path:
    """The root of the configuration's runs. Raises InputError for what fit would refuse, if that shows at once."""
    root = None
    for row in bar(plan.rows, "checking"):
        try:
            program = draft([*row.arguments(row.trials[0][1]), *plan.held])
        except InputError as error:
            raise InputError(f"sweep: {row.name}: {error}") from None
        if root is None:
            root, data = program.root, program.datamodule
            data.corpus("train")
            if not data.has("dev"):
                raise InputError("sweep: there is no dev split to choose by: name one under data, or set --holdout N")
    assert root is not None  # a grid has a point
    return root


class BestOfGrid(Experiment):
    """The experiment of a grid, whose outcome is the best row, trained on all data.

    Args:
        plan: what is trained.
        root: the folder of all runs.
    """

    unit = "points"

    def __init__(self, plan: Plan, root: Path) -> None:
        super().__init__(plan.rows, root, SPLITS, plan.held)
        self.plan = plan

    @property
    def steps(self) -> list[list[Trial]]:
        """The trainings of all points, a point being one step however many seeds it is trained with."""
        return [row.trials for row in self.rows]

    def claim(self) -> None:
        """Raise InputError for a root that holds another sweep.

        The sweep's own record is written after the first run.
        """
        path = self.root / RECORD
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
        yield f"sweep: {self.root / RECORD}, {TABLE}, {FIGURE}"

    def _keep(self, done: Sequence[Run], best: Point | None = None, final: Sequence[Run] = ()) -> None:
        record = {
            "sweep": self.plan.identity(),
            "grid": self.plan.grid,
            "seeds": self.plan.seeds,
            "trials": [_about(one) for one in done],
            "best": None if best is None else {"values": dict(best.row.values), "dev_score": best.score},
            "final": [_about(one) for one in final],
        }
        write_json(self.root / RECORD, record)
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
