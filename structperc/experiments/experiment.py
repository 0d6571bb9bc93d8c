"""One training of many, in a process of its own, so that none can spoil another.

The loop that studies and sweeps share: rows are trained one by one, and after each run all that is known is written.
"""

import json
import os
import shlex
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from structperc.errors import InputError
from structperc.experiments.rows import Row
from structperc.training.run_folders import checkpoint, lock_folder, runs

LOG = "log.txt"


class TrialResult(NamedTuple):
    """A training that is done: the results of its run, or why there are none."""

    command: list[str]
    run: str | None  # folder of the run that has results
    results: dict[str, Any] | None
    error: str | None

    def about(self) -> dict[str, Any]:
        """Return all that is known about the training, as plain JSON types."""
        return {**self._asdict(), "command": shlex.join(["structperc", *self.command])}

    def line(self, name: str, splits: Sequence[str]) -> str:
        """Return one line: the name, then scores on the first of the splits that it has any on, or the complaint.

        Scores are in per cent.
        """
        if self.results is None:
            return f"{name}: failed: {self.error}"
        effort = f"{self.results['epochs']} epochs, {self.results['seconds']:.1f} s"
        split = next((split for split in splits if split in self.results), None)
        if split is None:
            return f"{name}: {effort}"
        score, right = (100 * self.results[split][which] for which in ("score", "sentence_accuracy"))
        return f"{name}: {split} score {score:.2f}, sentence accuracy {right:.2f}, {effort}"


def finished_run(folder: Path) -> Path | None:
    """Return the newest run in the folder of a trial that has results, or None."""
    return next((run for run in reversed(runs(folder)) if (run / "results.json").is_file()), None)


def train_or_load(command: list[str], folder: Path) -> TrialResult:
    """Return the training in a folder with its results; unless they are there, run fit or rerank to get them.

    An interrupted training goes on from its last epoch. What is printed is added to log.txt in the folder.
    """
    command = [*command, f"--trainer.default_root_dir={folder}"]
    run, error = finished_run(folder), None
    if run is None:
        error = fit(command, folder)
        run = finished_run(folder)
    if run is None:
        return TrialResult(command, None, None, error or f"{command[0]} left no results.json")
    results = json.loads((run / "results.json").read_text(encoding="utf-8"))
    return TrialResult(command, str(run), results, None)


def fit(command: list[str], folder: Path) -> str | None:
    """Run fit or rerank in a process that ends when this one does; return None, or its complaint if it failed."""
    folder.mkdir(parents=True, exist_ok=True)
    path = os.pathsep.join(filter(None, sys.path))
    environment = {**os.environ, "PYTHONPATH": path}
    with open(folder / LOG, "a+b") as log:
        start = log.seek(0, os.SEEK_END)
        whole = [sys.executable, "-m", "structperc.training.child_process", *command, *_resumed(folder), "--debug"]
        with subprocess.Popen(whole, stdin=subprocess.PIPE, stdout=log, stderr=log, env=environment) as process:
            code = process.wait()
        log.seek(start)
        text = log.read().decode("utf-8", "replace")
    return None if code == 0 else failure_line(text, code)


def failure_line(log: str, code: int) -> str:
    """Return the line of a log that says what went wrong: the program's own, or else the last one."""
    if code < 0:
        return f"ended by signal {-code}"
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    own = [line for line in lines if line.startswith("structperc: ")]
    return (own or lines or [f"exit status {code}"])[-1].removeprefix("structperc: error: ")


def _resumed(folder: Path) -> list[str]:
    try:
        checkpoint(folder, "last")
    except InputError:
        return []
    return ["--ckpt_path=last"]


class Run(NamedTuple):
    """A training of an experiment that is done: its row, its seed and its results."""

    row: Row
    seed: int | None  # None: that of the configuration
    training: TrialResult

    @property
    def name(self) -> str:
        """The name of the row and the seed, as people read it."""
        return self.row.name if self.seed is None else f"{self.row.name}, seed {self.seed}"


Trial = tuple[Row, int | None]  # a row and one of its seeds, before it is trained


class Experiment(ABC):
    """What distinguishes one experiment from another: its rows, and what becomes of their runs.

    Args:
        rows: what is trained; a row that starts from the models of another one comes after it.
        root: the folder of all runs.
        splits: the first of them that a run has scores on is named in the line about it.
        further: arguments of all trainings, after their own.
    """

    unit: str  # what lines about progress count, in the plural

    def __init__(self, rows: Sequence[Row], root: Path, splits: Sequence[str], further: Sequence[str] = ()) -> None:
        self.rows, self.root, self.splits, self.further = rows, root, splits, further

    @property
    @abstractmethod
    def steps(self) -> list[list[Trial]]:
        """The trainings in their order; those in one list are counted as one step when progress is shown."""

    @abstractmethod
    def prepare(self) -> None:
        """Note in the root what is trained there, where needed. Raises InputError if it holds runs of other rows."""

    @abstractmethod
    def keep(self, done: Sequence[Run]) -> None:
        """Write to files what is known after these runs."""

    @abstractmethod
    def close(self, done: Sequence[Run]) -> Iterator[str]:
        """Write the last files and yield lines about the outcome. Raises InputError if there is none."""


def run_experiment(experiment: Experiment) -> Iterator[str]:
    """Yield lines about the progress of an experiment, then about its outcome.

    Raises InputError as `prepare` and `close` do, and if another process runs in the same root.
    """
    done: list[Run] = []
    with lock_folder(experiment.root, "wait for it, or set --root"):
        experiment.prepare()
        steps = experiment.steps
        yield f"{len(steps)} {experiment.unit} in {experiment.root}"
        for number, step in enumerate(steps, 1):
            for trial in step:
                made, line = train_trial(trial, experiment.root, experiment.splits, experiment.further, done)
                done.append(made)
                experiment.keep(done)
                yield f"[{number}/{len(steps)}] {line}"
        yield from experiment.close(done)


def train_trial(
    trial: Trial, root: Path, splits: Sequence[str], further: Sequence[str] = (), done: Sequence[Run] = ()
) -> tuple[Run, str]:
    """Return the run of a trial, trained unless its results are there, and a line about it.

    `done` has the runs from whose models it may start; other arguments are those of `Experiment`.
    """
    row, seed = trial
    place = row.place(root, seed)
    kept = " (kept)" if finished_run(place) is not None else ""
    made = Run(row, seed, _training(row, seed, place, further, done))
    return made, made.training.line(made.name, splits) + kept


def _training(row: Row, seed: int | None, place: Path, further: Sequence[str], done: Sequence[Run]) -> TrialResult:
    command = [row.command, *row.arguments(seed), *further]
    sources = [run for run in done if run.row.name == row.init_from]
    if not sources:
        return train_or_load(command, place)
    source = next((run for run in sources if run.seed == seed), sources[0])
    if source.training.run is None:
        return TrialResult(command, None, None, f"{source.name}, which it starts from, failed")
    return train_or_load([*command, f"--model.init_from={Path(source.training.run) / 'model'}"], place)
