"""Ctrl-C and SIGTERM: exit status, what is left, and the line that says how to go on."""

import shlex
import signal

import pytest

from structperc.cli.main import main
from structperc.experiments import experiment as trial
from structperc.training.report import Stopwatch
from structperc.training.run_folders import resuming
from tests.checkpoints import assert_same, checkpoint

STUDY = """
seeds: [1]
rows:
  one: {configs: [pkg:quickstart], with: {trainer: {max_epochs: 1}}}
"""


@pytest.fixture
def stopped(capsys):
    """Runs a command that gets a signal; -> the command with which it says that one goes on."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # also in the background

    def stopped(*arguments):
        capsys.readouterr()
        assert main([*arguments]) == 1
        line = capsys.readouterr().err.splitlines()[-1]
        start = "structperc: interrupted; resume with: structperc "
        assert line.startswith(start)
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
        return shlex.split(line.removeprefix(start))

    yield stopped
    signal.signal(signal.SIGINT, before)


def in_epoch(number, patch, signum):
    """Has the signal come while an epoch, from 0, is trained."""

    def batch_end(self, trainer, *_):
        if trainer.current_epoch == number:
            signal.raise_signal(signum)

    patch.setattr(Stopwatch, "on_train_batch_end", batch_end)


def test_resumed_by_the_printed_command(runs, stopped, monkeypatch):
    arguments = runs.arguments("fit", "--trainer.max_epochs=3")
    for run, signum in ((1, signal.SIGINT), (2, signal.SIGTERM)):
        with monkeypatch.context() as patch:
            in_epoch(0, patch, signum)
            assert stopped(*arguments) == arguments  # no epoch is over
            in_epoch(1, patch, signum)
            command = stopped(*arguments)
        assert command == [*arguments, "--ckpt_path", "last"]
        assert checkpoint(runs.root / str(2 * run))["epoch"] == 0
        assert not (runs.root / str(2 * run) / "model").exists()
        assert main(command) == 0
    one, two = checkpoint(runs.root / "2"), checkpoint(runs.root / "4")
    assert one["epoch"] == 2
    assert_same(one["state_dict"], two["state_dict"])


def test_second_interruption(runs, stopped, monkeypatch):
    assert runs("fit", "--trainer.max_epochs=1") == 0
    arguments = runs.arguments("fit", "--trainer.max_epochs=3")
    in_epoch(1, monkeypatch, signal.SIGTERM)
    path = runs.root / "1" / "checkpoints" / "best.ckpt"
    assert stopped(*arguments, f"--ckpt_path={path}") == [*arguments, "--ckpt_path", "last"]


def test_last_run_is_not_the_newest(tmp_path):
    for run in ("1", "2"):
        (tmp_path / run / "checkpoints").mkdir(parents=True)
        (tmp_path / run / "checkpoints" / "last.ckpt").write_text("")
    first, second = (tmp_path / run / "checkpoints" / "last.ckpt" for run in ("1", "2"))
    command = ["fit", "--ckpt_path", "best", "-c", "a b.yaml", "--ckpt_path=x"]
    assert resuming(command, first, tmp_path) == ["fit", "-c", "a b.yaml", "--ckpt_path", str(first)]
    assert resuming(command, second, tmp_path) == ["fit", "-c", "a b.yaml", "--ckpt_path", "last"]


def test_series_resumed_by_the_same_command(runs, stopped, monkeypatch, tmp_path):
    monkeypatch.setattr(trial, "fit", lambda command, folder: signal.raise_signal(signal.SIGTERM))
    (tmp_path / "study.yaml").write_text(STUDY)
    study = ["study", str(tmp_path / "study.yaml"), "--root", str(tmp_path / "study")]
    assert stopped(*study) == study
    _, *options = runs.arguments("fit")
    sweep = ["study", *options, "--grid", "model.search.k=1,2", "--root", str(tmp_path / "sweep")]
    assert stopped(*sweep) == sweep


def test_interrupted_first_models(runs, stopped, monkeypatch):
    config = "pkg:studies/embedded#reranking1"
    _, _, _, *options = runs.arguments("fit")
    candidates = f"--model.jackknife.cache={runs.root}-lists"
    arguments = ["rerank", "-c", config, *options, candidates, "--model.jackknife.epochs=1"]
    monkeypatch.setattr("structperc.reranking.jackknife.seed_all", lambda *_: signal.raise_signal(signal.SIGTERM))
    command = stopped(*arguments)
    assert command == ["rerank", "fit", *arguments[1:]]
    assert not runs.root.exists()
