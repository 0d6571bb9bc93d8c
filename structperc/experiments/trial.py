"""One training of many, in a process of its own, so that none can spoil another."""

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from structperc.errors import InputError
from structperc.training.runs import checkpoint, runs

LOG = "log.txt"


class Training(NamedTuple):
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


def trained(command: list[str], folder: Path) -> Training:
    """Return the training in a folder with its results; unless they are there, run fit or rerank to get them.

    An interrupted training goes on from its last epoch. What is printed is added to log.txt in the folder.
    """
    command = [*command, f"--trainer.default_root_dir={folder}"]
    run, error = finished_run(folder), None
    if run is None:
        error = fit(command, folder)
        run = finished_run(folder)
    if run is None:
        return Training(command, None, None, error or f"{command[0]} left no results.json")
    results = json.loads((run / "results.json").read_text(encoding="utf-8"))
    return Training(command, str(run), results, None)


def fit(command: list[str], folder: Path) -> str | None:
    """Run fit or rerank in a process that ends when this one does; return None, or its complaint if it failed."""
    folder.mkdir(parents=True, exist_ok=True)
    path = os.pathsep.join(filter(None, sys.path))
    environment = {**os.environ, "PYTHONPATH": path}
    with open(folder / LOG, "a+b") as log:
        start = log.seek(0, os.SEEK_END)
        whole = [sys.executable, "-m", "structperc.training.attended", *command, *_resumed(folder), "--debug"]
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
