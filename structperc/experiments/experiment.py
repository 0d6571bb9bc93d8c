"""Trainings of an experiment, each in its own process, and the loop over them that studies and sweeps share.

Trainings with results are not repeated, interrupted ones go on from their last epoch. One that fails is reported and
the experiment goes on; the next time it is tried again.
"""

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from structperc.errors import InputError
from structperc.experiments.rows import Row
from structperc.training.run_folders import checkpoint, runs

LOG = "log.txt"
Trial = tuple[Row, int | None]  # a row and one of its seeds, before training


class Run(NamedTuple):
    """A finished training of an experiment: its results, or the reason why there are none."""

    row: Row
    seed: int | None  # None: that of the configuration
    command: list[str]
    folder: str | None  # of the run that has results
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
        """Return one line: the name, then scores in per cent on the first split that has any, or the error."""
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
        steps: the trainings in their order; those of one step count as one when progress is shown.
        unit: plural noun for the steps.
        root: the folder of all runs.
        splits: lines show the scores of the first of them that a run has.
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

    `done` has the runs from whose models it may start; other arguments are those of `run_trials`.
    """
    row, seed = trial
    folder = row.place(root, seed)
    kept = " (kept)" if finished_run(folder) is not None else ""
    command = [row.command, *row.arguments(seed), *options]
    if sources := [run for run in done if run.row.name == row.init_from]:
        source = next((run for run in sources if run.seed == seed), sources[0])
        if source.folder is None:
            run = Run(row, seed, command, None, None, f"{source.name}, which it starts from, failed")
            return run, run.line(splits)
        command.append(f"--model.init_from={Path(source.folder) / 'model'}")
    run = Run(row, seed, *_train_or_load(command, folder))
    return run, run.line(splits) + kept


def finished_run(folder: Path) -> Path | None:
    """Return the newest run in the folder of a trial that has results, or None."""
    return next((run for run in reversed(runs(folder)) if (run / "results.json").is_file()), None)


def _train_or_load(command: list[str], folder: Path) -> tuple[list[str], str | None, dict[str, Any] | None, str | None]:
    """-> command, run folder, results and error of the training in a folder, which runs unless its results exist."""
    command = [*command, f"--trainer.default_root_dir={folder}"]
    run, error = finished_run(folder), None
    if run is None:
        error = fit(command, folder)
        run = finished_run(folder)
    if run is None:
        return command, None, None, error or f"{command[0]} left no results.json"
    return command, str(run), json.loads((run / "results.json").read_text(encoding="utf-8")), None


def fit(command: list[str], folder: Path) -> str | None:
    """Run fit or rerank in a process that ends when this one does; return None, or the error message if it failed.

    An interrupted training goes on from its last epoch. The output is appended to log.txt in the folder.
    """
    folder.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with open(folder / LOG, "a+b") as log:
        start = log.seek(0, os.SEEK_END)
        whole = [sys.executable, "-m", "structperc.training.child_process", *command, *_resumed(folder), "--debug"]
        with subprocess.Popen(whole, stdin=subprocess.PIPE, stdout=log, stderr=log, env=environment) as process:
            code = process.wait()
        log.seek(start)
        text = log.read().decode("utf-8", "replace")
    return None if code == 0 else failure_line(text, code)


def failure_line(log: str, code: int) -> str:
    """Return the line of a log that names the failure: the program's own message, or else the last line."""
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
