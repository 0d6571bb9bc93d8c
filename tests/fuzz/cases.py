"""Cases by number: the same number is the same case on every machine."""

import re
import shutil
from collections.abc import Mapping, Sequence
from contextlib import chdir
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest

from structperc.cli.main import main
from structperc.experiments import experiment as trial
from tests.fuzz.bench import lay_out
from tests.fuzz.checkpoints import checkpoints
from tests.fuzz.columns import columns, conllu, predictions
from tests.fuzz.command_lines import command_lines
from tests.fuzz.configurations import configurations, studies
from tests.fuzz.damage import Attempt, Kind
from tests.fuzz.legal import SAME, reason
from tests.fuzz.models import models
from tests.fuzz.outcome import Judged, Outcome, changes, judge, snapshot
from tests.fuzz.resources import clusters, gazetteers, templates, vectors
from tests.fuzz.watch import Ran, guarded

KINDS: tuple[Kind, ...] = (
    columns,
    conllu,
    configurations,
    templates,
    gazetteers,
    clusters,
    vectors,
    predictions,
    studies,
    models,
    checkpoints,
    command_lines,
)
LEARNED = re.compile(r"/model/model\.safetensors$")


class Case(NamedTuple):
    """What was tried and what became of it."""

    number: int
    kind: str
    attempt: Attempt
    judged: Judged
    ran: Ran

    def __str__(self) -> str:
        command = " ".join(self.attempt.arguments)
        outcome, line = self.judged
        return f"case {self.number} ({self.kind}: {self.attempt.mutation}; {command[:200]}): {outcome.value}: {line}"


class Fuzzer:
    """Runs cases in a scratch folder, each on a fresh copy of right inputs, which lies where they were made."""

    def __init__(self, scratch: Path) -> None:
        self.folder, self.bench = scratch / "here", scratch / "bench"
        self.folder.mkdir()
        lay_out(self.folder)
        self.folder.rename(self.bench)
        self._right: dict[tuple[str, ...], object] = {}

    def __call__(self, number: int, more: Sequence[str] = ()) -> Case:
        """Run a case, the command with further arguments."""
        kind, attempt = self.attempt(number)
        before = snapshot(self.folder)
        ran = self._run([*attempt.arguments, *more])
        found = changes(before, snapshot(self.folder), attempt.written, refused=ran.status != 0)
        judged = judge(ran, found, reason(kind, attempt.mutation))
        if judged == (Outcome.LEGAL, SAME) and _result(ran, self.folder, before, attempt) != self._right_result(
            attempt
        ):
            judged = Judged(Outcome.SILENT, "accepted, but not read as what it means")
        return Case(number, kind, attempt, judged, ran)

    def attempt(self, number: int) -> tuple[str, Attempt]:
        """The kind of a case and what it does to a fresh copy."""
        kind = KINDS[number % len(KINDS)]
        self._clean()
        with chdir(self.folder):
            return kind.__name__, kind(Random(f"{kind.__name__} {number}"), self.folder)

    def right(self, arguments: Sequence[str]) -> Ran:
        """A command on right inputs."""
        self._clean()
        return self._run(list(arguments))

    def _right_result(self, attempt: Attempt) -> object:
        """What comes of a command on right inputs."""
        key = tuple(attempt.arguments)
        if key not in self._right:
            ran = self.right(key)
            self._right[key] = _result(ran, self.folder, snapshot(self.bench), attempt)
        return self._right[key]

    def _clean(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.copytree(self.bench, self.folder, symlinks=True)

    def _run(self, arguments: list[str]) -> Ran:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(trial, "fit", _trained_here)
            return guarded(lambda: main(arguments), self.folder)


def _result(ran: Ran, folder: Path, before: Mapping[str, str], attempt: Attempt) -> object:
    """The models that were made; if there are none, the words that were printed and written."""
    held = snapshot(folder)
    made = {path: held[path] for path in held if LEARNED.search(path) and path not in before}
    printed = [line.split() for line in ran.out.splitlines() if "second" not in line]
    written = [path.read_bytes().split() for path in map(folder.joinpath, attempt.written) if path.is_file()]
    return made or (printed, written)


def _trained_here(command: list[str], folder: Path) -> str | None:
    """As the trainings of studies and sweeps, but in this process."""
    try:
        status = main([*command, *trial.resume_options(folder)])
    except SystemExit as left:
        status = left.code
    return None if status == 0 else f"exit status {status}"
