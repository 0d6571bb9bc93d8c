"""Trainings of every kind that are killed end, once they have gone on, as if nothing had happened."""

import os
import random
import signal
import subprocess
import time
from pathlib import Path

import pytest

from structperc.experiments import experiment
from tests.encoders.tiny_models import save_bert
from tests.fuzz.kills.drill import Drill, kills
from tests.fuzz.kills.kill import Kill, Write
from tests.fuzz.kills.kinds import series, trainings

TAGGERS = list(trainings(Path()))
QUICK = "BiLSTM"
pytestmark = pytest.mark.slow
OPENED = ("/.lock",)  # files without content


@pytest.fixture(scope="module")
def drills(zygote, tmp_path_factory):
    """Name of a kind -> its drill, each made once."""
    folder = tmp_path_factory.mktemp("kills")
    kinds, made = {**trainings(folder / "bert"), **series(folder)}, {}

    def drill(name):
        if name == "transformer" and name not in made:
            assert zygote(folder / "bert.log", save_bert, folder / "bert").status == 0
        if name not in made:
            made[name] = Drill(zygote, kinds[name], folder / name.replace(" ", "-"))
        return made[name]

    return drill


def at_random(drill, name):
    """Two moments, one after the other, in processor time."""
    draw = random.Random(name)
    return [draw.uniform(0.2, 1) * drill.seconds for _ in range(2)]


def check(drill, drilled):
    """Goes through all of them, then tells which ended otherwise."""
    found = {" and ".join(map(str, moments)): drill.differences(*moments) for moments in drilled}
    assert not {moments: different for moments, different in found.items() if different}


def test_a_killed_training_ends_in_the_same_bits(drills):
    """After the first of three epochs: the others have the random states of its checkpoint."""
    written = Write("rename", "runs/1/checkpoints/last.ckpt", 1)
    check(drills(QUICK), [[Kill("after", written)]])


@pytest.mark.long
def test_kill_after_finished_training(drills):
    """Between the two steps that put a new model in place of the old one."""
    moved = Write("rename", "runs/1/.model*/old", 1)
    check(drills(QUICK), [[None, Kill("after", moved)]])


@pytest.mark.long
def test_kill_in_a_study(drills):
    written = Write("rename", "study/margin/seed=1/1/checkpoints/last.ckpt", 1)
    check(drills("study"), [[Kill("after", written)]])


def start_and_die(folder):
    """Starts a training as studies do."""
    start = subprocess.Popen

    def started(*arguments, **options):
        (folder / "pid").write_text(str(start(*arguments, **options).pid))
        os.kill(os.getpid(), signal.SIGKILL)

    subprocess.Popen = started
    experiment.fit(trainings(folder)["perceptron"].arguments, folder)


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks for processes in /proc")
def test_training_ends_with_its_study(zygote, tmp_path):
    zygote(tmp_path / "printed", start_and_die, tmp_path)
    process, deadline = Path("/proc", (tmp_path / "pid").read_text(), "stat"), time.monotonic() + 120
    while (alive := process.exists() and " Z " not in process.read_text()) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not alive
    assert (tmp_path / experiment.LOG).read_text() == ""
    assert not (tmp_path / "runs").exists()


def test_files_of_a_run_are_complete(drills):
    drill = drills(QUICK)
    assert {write.name for writes in drill.targets.values() for write in writes if write.act == "open"} == {
        name for name in drill.targets if any(part in name for part in OPENED)
    }
    assert not [write for write in drill.journal if write.name.startswith("tmp/")]


@pytest.mark.fuzz
@pytest.mark.parametrize("name", TAGGERS)
def test_at_one_moment_of_each_write_and_at_any(drills, name):
    drill = drills(name)
    check(drill, [*([kill] for kill in kills(drill.targets, TAGGERS.index(name))), at_random(drill, name)])


@pytest.mark.fuzz
@pytest.mark.parametrize("name", ["study", "sweep"])
def test_series_of_trainings(drills, name):
    """At one moment of each write of their own records, and at any."""
    drill = drills(name)
    own = {file: writes for file, writes in drill.targets.items() if not any(map(str.isdigit, file.split("/")))}
    check(drill, [*([kill] for kill in kills(own, len(name))), at_random(drill, name)])
