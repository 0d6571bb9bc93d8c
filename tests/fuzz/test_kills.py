"""Trainings of every kind that are killed end, once they have gone on, as if nothing had happened."""

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from itertools import count
from pathlib import Path

import pytest

from structperc.cli.main import main
from structperc.experiments import experiment
from tests.encoders.tiny_models import save_bert
from tests.fuzz.trainings import differences, left, series, trainings

TAGGERS = list(trainings(Path()))
QUICK = "BiLSTM"
LAST = "runs/1/checkpoints/last.ckpt"
pytestmark = pytest.mark.slow


def renames(place, journal, number):
    """An audit hook: notes what comes to be by renaming below a folder, and kills its process after so many of them."""
    seen = count(1)

    def hook(event, arguments):
        if due and event in ("open", "os.rename", "os.mkdir"):
            os.kill(os.getpid(), signal.SIGKILL)
        if event == "os.rename" and str(target := Path(arguments[1]).absolute()).startswith(str(place)):
            os.write(journal, f"{target.relative_to(place)}\n".encode())
            due.extend([True] * (next(seen) == number))

    due = []
    return hook


def train(arguments, place, journal, moment):
    """The program in a folder, with one for temporary files. In a fork alone.

    A moment is a number of renames, seconds of processor time, or None.
    """
    (place / "tmp").mkdir(parents=True, exist_ok=True)
    os.chdir(place)
    tempfile.tempdir = str(place / "tmp")
    experiment.fit = fit_here
    if isinstance(moment, float):
        signal.setitimer(signal.ITIMER_PROF, moment)  # its signal kills the process at once
    number = moment if isinstance(moment, int) else 0
    sys.addaudithook(renames(place, os.open(journal, os.O_WRONLY | os.O_CREAT | os.O_APPEND), number))
    return main(arguments)


def fit_here(command, folder):
    """As studies and sweeps train, but in their own process, so that a kill in a training is theirs."""
    status = main([*command, *experiment.resume_options(folder)])
    return None if status == 0 else f"exit status {status}"


class Drill:
    """Trains once without a kill, to see what is written and what comes of it."""

    def __init__(self, fork_server, kind, folder):
        self.fork_server, self.kind, self.folder, self.numbers = fork_server, kind, folder, count()
        folder.mkdir()
        place = folder / "0"
        next(self.numbers)
        self.seconds = self.run(place).seconds
        self.whole, self.renamed = left(place), place.with_suffix(".journal").read_text().splitlines()

    def differences(self, moments):
        """Where a training ends otherwise that was killed at these moments, and went on each time."""
        place = self.folder / str(next(self.numbers))
        for moment in moments:
            self.run(place, moment)
        self.run(place)
        return differences(self.whole, left(place))

    def run(self, place, moment=None):
        """The next part of the training in this folder."""
        journal, log = place.with_suffix(".journal"), place.with_suffix(".log")
        ended = self.fork_server(log, train, self.kind.next(place), place, journal, moment)
        killed = -signal.SIGKILL, -signal.SIGPROF
        possible = (0,) if moment is None else killed if isinstance(moment, int) else (0, *killed)
        assert ended.status in possible, log.read_text()
        return ended


@pytest.fixture(scope="module")
def drills(fork_server, tmp_path_factory):
    """Name of a kind -> its drill, each made once."""
    folder = tmp_path_factory.mktemp("kills")
    kinds, made = {**trainings(folder / "bert"), **series(folder)}, {}

    def drill(name):
        if name == "transformer" and name not in made:
            assert fork_server(folder / "bert.log", save_bert, folder / "bert").status == 0
        if name not in made:
            made[name] = Drill(fork_server, kinds[name], folder / name.replace(" ", "-"))
        return made[name]

    return drill


def test_a_killed_training_ends_in_the_same_bits(drills):
    """After the first of three epochs: the others have the random states of its checkpoint."""
    drill = drills(QUICK)
    assert not drill.differences([drill.renamed.index(LAST) + 1])


def start_and_die(folder):
    """Starts a training as studies do."""
    start = subprocess.Popen

    def started(*arguments, **options):
        (folder / "pid").write_text(str(start(*arguments, **options).pid))
        os.kill(os.getpid(), signal.SIGKILL)

    subprocess.Popen = started
    experiment.fit(trainings(folder)["perceptron"].arguments, folder)


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks for processes in /proc")
def test_training_ends_with_its_study(fork_server, tmp_path):
    fork_server(tmp_path / "printed", start_and_die, tmp_path)
    process, deadline = Path("/proc", (tmp_path / "pid").read_text(), "stat"), time.monotonic() + 120
    while (alive := process.exists() and " Z " not in process.read_text()) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not alive
    assert (tmp_path / experiment.LOG).read_text() == ""
    assert not (tmp_path / "runs").exists()


def test_files_of_a_run_are_complete(drills):
    """Each comes to be by a rename, but for logs and locks, and nothing is left of temporary files."""
    drill = drills(QUICK)
    written = {name for name in drill.whole if "/" in name and not name.endswith(("scores", ".lock"))}
    assert {Path(name).name for name in written} <= {
        *(Path(name).name for name in drill.renamed), "model.json", "model.safetensors", "README.md"
    }  # fmt: skip
    assert not [name for name in drill.whole if name.startswith("tmp/")]


@pytest.mark.fuzz
@pytest.mark.parametrize("name", [*TAGGERS, "study", "sweep"])
def test_after_each_rename_and_at_any_moment(drills, name):
    drill, draw = drills(name), random.Random(name)
    at_random = [draw.uniform(0.2, 1) * drill.seconds for _ in range(2)]
    moments = [*([number] for number in range(1, len(drill.renamed))), at_random]
    found = {str(one): drill.differences(one) for one in moments}
    assert not {one: different for one, different in found.items() if different}
