"""Rows of studies and sweeps, which are configurations trained once per seed, each training in its own process.

Trainings with results are not repeated, and interrupted ones resume from their last epoch. Failed ones are reported,
and repeated the next time.
"""

import json
import logging
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Generator, Iterable, Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import torch
from pytorch_lightning.utilities.seed import isolate_rng

from structperc.errors import InputError
from structperc.packaged_configs import folder_name
from structperc.training.lightning_messages import LOGGERS, at_level, input_errors
from structperc.training.overlays import read_configuration
from structperc.training.program import Program
from structperc.training.reranking import RerankingProgram
from structperc.training.run_folders import checkpoint, next_run, runs

LOG = "log.txt"


class ExperimentRow(NamedTuple):
    """A configuration with options, trained once per seed; or the predictions of another system."""

    name: str
    command: str  # fit or rerank; empty for predictions
    configs: list[str]  # files, or rows of studies
    options: list[str]  # further arguments; the last value of an option counts
    seeds: list[int]  # empty: one training, with the seeds of the configuration
    init_from: str | None = None  # name of the row whose models its trainings start from
    values: tuple[tuple[str, str], ...] = ()  # (option, value) of a point of a grid, also among the options
    curve: str = ""  # name of the learning curve that the row is a point of
    predictions: tuple[tuple[str, str], ...] = ()  # (name of a text, file) of another system
    costs: str | None = None  # JSON file of that system's costs

    @property
    def learner(self) -> str:
        """The name of the row without a size of training data."""
        return self.curve or self.name

    @property
    def folder(self) -> str:
        """The folder name of the row."""
        return folder_name(self.name)

    @property
    def trials(self) -> list[tuple["ExperimentRow", int | None]]:
        """The row with each of its seeds, or with None if it has no seeds."""
        return [(self, seed) for seed in self.seeds] or [(self, None)]

    def place(self, root: Path, seed: int | None) -> Path:
        """Return the folder of the training with this seed, under the root of an experiment."""
        return root / self.folder if seed is None else root / self.folder / f"seed={seed}"

    def arguments(self, seed: int | None) -> list[str]:
        """Return the arguments of fit or rerank for this seed, without the folder of the run."""
        seeded = [] if seed is None else [f"--seed_everything={seed}", f"--data.seed={seed}"]
        return [*(f"--config={file}" for file in self.configs), *self.options, *seeded]


def identity(configs: Sequence[str], **about: Any) -> dict[str, Any]:
    """Return the contents of configurations and further properties of trainings, as plain JSON types."""
    return json.loads(json.dumps({"configs": [read_configuration(file) for file in configs], **about}, default=str))


def check_same(before: dict[str, Any], now: dict[str, Any], folder: str, advice: str) -> None:
    """Raise InputError, which names the differences, if a folder was created with a different `identity`."""
    if different := [name for name in now if now[name] != before.get(name)]:
        raise InputError(f"{folder} was created with different {' and '.join(different)}; {advice}")


def parse_grid(grids: Sequence[str]) -> dict[str, list[str]]:
    """Return {KEY: values} of ["KEY=V1,V2", ...] in the order given, without duplicates; see `split_values`.

    Raises InputError for a text of another form, a missing or empty value, and a key given twice.
    """
    by_key: dict[str, list[str]] = {}
    for grid in grids:
        key, equals, text = grid.partition("=")
        key = key.removeprefix("--")
        if not equals or not key:
            raise InputError(f"--grid {grid}: write an option and its values as KEY=V1,V2")
        values = split_values(text)
        if not all(values):
            raise InputError(f"--grid {grid}: a value is empty; write KEY=V1,V2")
        if key in by_key:
            raise InputError(f"--grid contains {key} twice; list all its values in one --grid")
        by_key[key] = list(dict.fromkeys(values))
    return by_key


def split_values(text: str) -> list[str]:
    """Return the parts of a text, split at its commas except those in brackets."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter in "[{(") - (letter in ")}]")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]


def grid_rows(
    grid: dict[str, list[str]],
    configs: Sequence[str] = (),
    options: Sequence[str] = (),
    seeds: Sequence[int] = (),
) -> list[ExperimentRow]:
    """Return a row "KEY=VALUE,KEY=VALUE" for each combination of values; the last option varies fastest.

    All rows have the same configurations, seeds and options; these options stand before those of the grid.
    """
    rows = []
    for values in product(*grid.values()):
        settings = [f"{key}={value}" for key, value in zip(grid, values, strict=True)]
        arguments = [*options, *(f"--{setting}" for setting in settings)]
        pairs = tuple(zip(grid, values, strict=True))
        rows.append(ExperimentRow(",".join(settings), "fit", [*configs], arguments, [*seeds], values=pairs))
    return rows


def short_keys(keys: Iterable[str]) -> list[str]:
    """Return the last parts of dotted options, or the whole options if two have the same last part."""
    whole = list(keys)
    last = [key.rpartition(".")[2] for key in whole]
    return last if len(set(last)) == len(last) else whole


Trial = tuple[ExperimentRow, int | None]  # a row and one of its seeds, before training


def dry_run(arguments: Sequence[str], command: str = "fit") -> Program:
    """Return the program of `structperc fit` (or rerank) with these arguments, with its model, data and trainer.

    Nothing is trained or written. Raises InputError for mistakes in options and configurations.
    """
    kind = RerankingProgram if command == "rerank" else Program
    with isolate_rng(include_cuda=torch.cuda.is_initialized()), at_level(logging.WARNING, LOGGERS), input_errors():
        program = kind(["fit", *arguments])
        program.build(next_run(program.root))
        return program


class Run(NamedTuple):
    """A finished training of an experiment: its results, or its error."""

    row: ExperimentRow
    seed: int | None  # None: that of the configuration
    command: list[str]
    folder: str | None  # folder of the run with results
    results: dict[str, Any] | None
    error: str | None

    @property
    def name(self) -> str:
        """The name of the row and the seed, for messages."""
        return self.row.name if self.seed is None else f"{self.row.name}, seed {self.seed}"

    def record(self) -> dict[str, Any]:
        """Return command, folder, results and error as plain JSON types."""
        command = shlex.join(["structperc", *self.command])
        return {"command": command, "run": self.folder, "results": self.results, "error": self.error}

    def line(self, splits: Sequence[str]) -> str:
        """Return one line: the name, then the error, or scores in per cent on the first split that has any."""
        if self.results is None:
            return f"{self.name}: failed: {self.error}"
        effort = f"{self.results['epochs']} epochs, {self.results['seconds']:.1f} s"
        split = next((split for split in splits if split in self.results), None)
        if split is None:
            return f"{self.name}: {effort}"
        score, right = (100 * self.results[split][which] for which in ("score", "sentence_accuracy"))
        return f"{self.name}: {split} score {score:.2f}, sentence accuracy {right:.2f}, {effort}"


def run_trials(
    steps: Sequence[Sequence[Trial]],
    unit: str,
    root: Path,
    splits: Sequence[str],
    options: Sequence[str],
    keep: Callable[[list[Run]], None],
) -> Generator[str, None, list[Run]]:
    """Yield a line about the progress after each training, and return all runs.

    Args:
        steps: the trainings in their order; progress is counted in steps.
        unit: plural noun for the steps.
        root: the folder of all runs.
        splits: lines show the scores of the first of these splits that a run has.
        options: further arguments of all trainings.
        keep: called after each training with the runs so far, to write them to files.
    """
    done: list[Run] = []
    yield f"{len(steps)} {unit} in {root}"
    for number, step in enumerate(steps, 1):
        for trial in step:
            run, line = run_trial(trial, root, splits, options, done)
            done.append(run)
            keep(done)
            yield f"[{number}/{len(steps)}] {line}"
    return done


def run_trial(
    trial: Trial, root: Path, splits: Sequence[str], options: Sequence[str] = (), done: Sequence[Run] = ()
) -> tuple[Run, str]:
    """Return the run of a trial, trained unless its results exist, and a line about it.

    Models to start from are taken from `done`; other arguments are those of `run_trials`.
    """
    row, seed = trial
    folder = row.place(root, seed)
    kept = " (kept)" if finished_run(folder) is not None else ""
    command = [row.command, *row.arguments(seed), *options]
    if sources := [run for run in done if run.row.name == row.init_from]:
        source = next((run for run in sources if run.seed == seed), sources[0])
        if source.folder is None:
            run = Run(row, seed, command, None, None, f"the run it is initialised from ({source.name}) failed")
            return run, run.line(splits)
        command.append(f"--model.init_from={Path(source.folder) / 'model'}")
    command.append(f"--trainer.default_root_dir={folder}")
    finished, error = finished_run(folder), None
    if finished is None:
        error = fit(command, folder)
        finished = finished_run(folder)
    if finished is None:
        run = Run(row, seed, command, None, None, error or f"{row.command} wrote no results.json")
    else:
        results = json.loads((finished / "results.json").read_text(encoding="utf-8"))
        run = Run(row, seed, command, str(finished), results, None)
    return run, run.line(splits) + kept


def finished_run(folder: Path) -> Path | None:
    """Return the newest run in the folder of a trial that has results, or None."""
    return next((run for run in reversed(runs(folder)) if (run / "results.json").is_file()), None)


def fit(command: list[str], folder: Path) -> str | None:
    """Run fit or rerank in a process that ends when this one does; return None, or the error message if it failed.

    An interrupted training resumes from its last epoch. The output is appended to log.txt in the folder.
    """
    folder.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with open(folder / LOG, "a+b") as log:
        start = log.seek(0, os.SEEK_END)
        whole = [
            sys.executable,
            "-m",
            "structperc.training.child_process",
            *command,
            *resume_options(folder),
            "--debug",
        ]
        with subprocess.Popen(whole, stdin=subprocess.PIPE, stdout=log, stderr=log, env=environment) as process:
            code = process.wait()
        log.seek(start)
        text = log.read().decode("utf-8", "replace")
    return None if code == 0 else failure_line(text, code)


def resume_options(folder: Path) -> list[str]:
    """Return the options that resume the interrupted training of a folder; [] without one."""
    try:
        checkpoint(folder, "last")
    except InputError:
        return []
    return ["--ckpt_path=last"]


def failure_line(log: str, code: int) -> str:
    """Return the line of a log that names the failure: the program's own message, otherwise the last line."""
    if code < 0:
        return f"ended by signal {-code}"
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    messages = [line for line in lines if line.startswith("structperc: ")]
    return (messages or lines or [f"exit status {code}"])[-1].removeprefix("structperc: error: ")
