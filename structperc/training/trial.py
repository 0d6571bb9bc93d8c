"""One training of a sweep, in a process of its own, so that none can spoil another."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

from structperc.errors import InputError
from structperc.training.grid import Point
from structperc.training.runs import checkpoint, runs

LOG = "log.txt"


class Trial(NamedTuple):
    """A training that is done: results of its run, or why there are none."""

    point: Point
    seed: int | None
    command: list[str]
    run: str | None  # folder of the run that has results
    results: dict[str, Any] | None
    error: str | None

    def about(self) -> dict[str, Any]:
        """Everything, as plain JSON types."""
        return {
            "values": dict(self.point.values),
            "seed": self.seed,
            "command": shlex.join(["structperc", *self.command]),
            "run": self.run,
            "results": self.results,
            "error": self.error,
        }


def finished_run(folder: Path) -> Path | None:
    """The newest run in the folder of a trial that has results."""
    return next((run for run in reversed(runs(folder)) if (run / "results.json").is_file()), None)


def train_trial(point: Point, seed: int | None, arguments: list[str], folder: Path) -> Trial:
    """The results in the folder of a trial; unless they are there, fit is run with these arguments to get them.

    An interrupted training goes on from its last epoch. What fit prints is added to log.txt in the folder.
    """
    command = ["fit", *arguments, f"--trainer.default_root_dir={folder}"]
    run, error = finished_run(folder), None
    if run is None:
        error = fit(command, folder)
        run = finished_run(folder)
    if run is None:
        return Trial(point, seed, command, None, None, error or "fit left no results.json")
    results = json.loads((run / "results.json").read_text(encoding="utf-8"))
    return Trial(point, seed, command, str(run), results, None)


def fit(command: list[str], folder: Path) -> str | None:
    """Runs fit in a process of its own; -> None, or its complaint when it failed."""
    folder.mkdir(parents=True, exist_ok=True)
    path = os.pathsep.join(filter(None, sys.path))
    environment = {**os.environ, "PYTHONPATH": path, "TQDM_MINITERS": "1000000"}  # a log needs no moving bars
    with open(folder / LOG, "a+b") as log:
        start = log.seek(0, os.SEEK_END)
        whole = [sys.executable, "-m", "structperc", *command, *_resumed(folder)]
        done = subprocess.run(whole, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment, check=False)
        log.seek(start)
        text = log.read().decode("utf-8", "replace")
    return None if done.returncode == 0 else complaint(text, done.returncode)


def complaint(log: str, code: int) -> str:
    """The line of a log that says what went wrong: the program's own, or else the last one."""
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
