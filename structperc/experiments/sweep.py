"""The same training for several values of some options; the best is chosen on development data."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from structperc.data.yaml_file import read_yaml
from structperc.errors import InputError
from structperc.experiments.draft import draft
from structperc.experiments.grid import Point, parse_grid, points, short_keys
from structperc.experiments.sweep_figure import plot_sweep
from structperc.experiments.sweep_table import Outcome, outcomes, table_lines, trial_line, write_table
from structperc.experiments.trial import LOG, Trial, finished_run, train_trial
from structperc.progress import bar
from structperc.reports.writing import write_figure
from structperc.training.claims import alone_in
from structperc.training.report import results_table, write_json

RECORD, TABLE, FIGURE = "sweep.json", "sweep.csv", "sweep.png"
FINAL = "final"


class Plan(NamedTuple):
    """What is trained."""

    configs: list[str]  # files
    grid: dict[str, list[str]]  # option -> values
    holdout: int  # 0: development data are those of the configuration
    seeds: list[int]  # none: that of the configuration
    options: list[str]  # more arguments of fit, for all trainings

    def trials(self, folder: Path) -> list[tuple[int | None, Path]]:
        """(seed, folder) of each training of the point that has this folder."""
        return [(seed, folder / f"seed={seed}") for seed in self.seeds] or [(None, folder)]

    def arguments(self, point: Point, seed: int | None, holdout: int | None) -> list[str]:
        """Arguments of fit but for the folder; holdout None: as the configuration says."""
        seeded = [] if seed is None else [f"--seed_everything={seed}", f"--data.seed={seed}"]
        held = [] if holdout is None else [f"--data.holdout={holdout}"]
        return [*(f"--config={file}" for file in self.configs), *self.options, *point.options, *seeded, *held]

    @property
    def held(self) -> int | None:
        """The holdout of the trainings among which is chosen."""
        return self.holdout or None

    def identity(self) -> dict[str, Any]:
        """What all trainings of a sweep share; further values and seeds may be added to one."""
        configs = [read_yaml(file) for file in self.configs]
        about = {"configs": configs, "options": self.options, "holdout": self.holdout, "keys": list(self.grid)}
        return json.loads(json.dumps(about, default=str))


def sweep(
    configs: Sequence[str],
    grids: Sequence[str],
    holdout: int = 0,
    seeds: Sequence[int] | None = None,
    root: str | None = None,
    options: Sequence[str] = (),
) -> Iterator[str]:
    """Lines about the progress of a sweep, then its table and what was chosen.

    The configuration is trained once for each combination of values in `grids` ("KEY=V1,V2") and each of the seeds
    (seed_everything and data.seed), in ROOT/KEY=VALUE, or ROOT/KEY=VALUE/seed=SEED. Trainings whose results are
    there are not repeated, interrupted ones go on. One that fails is reported and the sweep goes on.

    The point of the highest dev score, the mean over its seeds, is chosen; of equal ones the earlier, and none with
    a training that failed. With a holdout, development data are the last so many training sequences, and the chosen
    point is afterwards trained on all training data, in ROOT/final/KEY=VALUE. There are no development data then:
    its last epoch counts, and callbacks that watch dev/score have nothing to watch. Without a holdout the chosen
    point's own run is taken.

    sweep.json and sweep.csv in ROOT have every training's values, results and command, sweep.png shows the scores.

    InputError, before anything is trained, for grids of another form, options or values that fit does not take,
    a configuration without development data, and a root that holds another sweep or in which one runs; in the end when
    every point failed, or the training on all data.
    """
    plan = Plan([*configs], parse_grid(grids), holdout, [*dict.fromkeys(seeds or ())], [*options])
    grid = points(plan.grid)
    runs = _checked(plan, grid)
    folder = Path(root) if root is not None else runs / f"sweep-{'-'.join(short_keys(plan.grid))}"
    with alone_in(folder, "wait for it, or set --root"):
        _check_same(folder, plan)
        yield from _sweep(plan, grid, folder)


def _sweep(plan: Plan, grid: Sequence[Point], folder: Path) -> Iterator[str]:
    """The lines of `sweep`."""
    yield f"{len(grid)} points in {folder}"
    done: list[Trial] = []
    for number, point in enumerate(grid, 1):
        for trial, line in _train(plan, point, folder / point.folder, plan.held):
            done.append(trial)
            _keep(folder, plan, done)
            yield f"[{number}/{len(grid)}] {line}"
    found = outcomes(done)
    write_figure(str(folder / FIGURE), plot_sweep(found))
    yield from ("", *table_lines(found), "")
    best = best_of(found, folder)
    yield f"best: {best.point.name}, dev score {100 * best.score:.2f}"
    final = best.trials
    if plan.holdout:
        final = []
        for trial, line in _train(plan, best.point, folder / FINAL / best.point.folder, 0):
            final.append(trial)
            yield f"[{FINAL}] {line}"
    _keep(folder, plan, done, best, final)
    yield from _final_lines(final, folder)
    yield f"sweep: {folder / RECORD}, {TABLE}, {FIGURE}"


def best_of(found: Sequence[Outcome], folder: Path) -> Outcome:
    """The point of the highest score, of equal ones the first. InputError when none is without a failure."""
    whole = [one for one in found if one.error is None]
    if not whole:
        raise InputError(f"sweep: no point could be trained; {found[0].point.name}: {found[0].error} (see {folder})")
    return max(whole, key=lambda one: one.score)


# -- before training ------------------------------------------------------------------------------------------


def _checked(plan: Plan, grid: Sequence[Point]) -> Path:
    """The root of the configuration's runs. InputError for what fit would refuse, as far as that shows at once."""
    seed = plan.seeds[0] if plan.seeds else None
    for point in bar(grid, "checking"):
        try:
            program = draft(plan.arguments(point, seed, plan.held))
        except InputError as error:
            raise InputError(f"sweep: {point.name}: {error}") from None
        if point == grid[0]:
            root, data = program.root, program.datamodule
            data.corpus("train")
            if not data.has("dev"):
                raise InputError("sweep: there is no dev split to choose by: name one under data, or set --holdout N")
    return root


def _check_same(folder: Path, plan: Plan) -> None:
    path = folder / RECORD
    if not path.is_file():
        return
    before, now = json.loads(path.read_text(encoding="utf-8"))["sweep"], plan.identity()
    if different := [name for name in now if now[name] != before.get(name)]:
        raise InputError(f"{folder} holds a sweep with other {' and '.join(different)}: set --root to another folder")


# -- training -------------------------------------------------------------------------------------------------


def _train(plan: Plan, point: Point, folder: Path, holdout: int | None) -> Iterator[tuple[Trial, str]]:
    """The trainings of a point, each with a line about it."""
    for seed, place in plan.trials(folder):
        kept = finished_run(place) is not None
        trial = train_trial(point, seed, plan.arguments(point, seed, holdout), place)
        yield trial, trial_line(trial) + (" (kept)" if kept else "")


def _keep(
    folder: Path, plan: Plan, done: list[Trial], best: Outcome | None = None, final: Sequence[Trial] = ()
) -> None:
    """Write what is known so far."""
    record = {
        "sweep": plan.identity(),
        "grid": plan.grid,
        "seeds": plan.seeds,
        "trials": [trial.about() for trial in done],
        "best": None if best is None else {"values": dict(best.point.values), "dev_score": best.score},
        "final": [trial.about() for trial in final],
    }
    write_json(folder / RECORD, record)
    write_table(str(folder / TABLE), done)


def _final_lines(trials: Sequence[Trial], folder: Path) -> Iterator[str]:
    """Scores and models of the chosen point."""
    for trial in trials:
        if trial.results is None:
            raise InputError(f"sweep: the final training failed: {trial.error} (see {LOG} under {folder / FINAL})")
        results: dict[str, Any] = trial.results
        scores = {split: results[split] for split in results if split in ("dev", "test")}
        if scores:
            yield results_table(scores)
        yield f"model: {trial.run}/model"
