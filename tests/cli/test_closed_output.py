"""Output into a pipe whose reader has gone, as `| head -1` leaves it: all files are written, without a complaint."""

import json
import os
import sys

import pytest

from structperc.cli.main import main
from structperc.cli.output import print_lines
from tests.conftest import QUICKSTART, SMALL


@pytest.fixture
def closed(monkeypatch):
    """Runs a command whose standard output is a closed pipe; -> its exit status."""

    def run(*arguments):
        reading, writing = os.pipe()
        os.close(reading)
        with monkeypatch.context() as patch, os.fdopen(writing, "w") as pipe:
            patch.setattr(sys, "stdout", pipe)
            return main([str(argument) for argument in arguments])

    return run


@pytest.fixture
def gold(trained):
    """A labelled file, and the names of its columns."""
    return [trained.folder / "predictions" / "dev.conll", "--columns", "word", "pos", "chunk", "evidence", "label", "_"]


def test_files_are_written(trained, gold, closed, run, tmp_path, capsys):
    model = trained.folder / "model"
    for name, arguments in {
        "scores.json": ["evaluate", model, *gold, "--json"],
        "lists.csv": ["candidates", model, *gold, "--n", 1, 2, "--csv"],
        "bins.csv": ["reliability", model, *gold, "--csv"],
        "weights.html": ["weights", model, "--html"],
        "weights.csv": ["weights", model, "--csv"],
    }.items():
        assert closed(*arguments, tmp_path / name) == 1
        assert "Error" not in capsys.readouterr().err
        run(*arguments, tmp_path / f"again-{name}")
        assert (tmp_path / name).read_bytes() == (tmp_path / f"again-{name}").read_bytes() != b""
    assert 0 < json.loads((tmp_path / "scores.json").read_text())["score"] <= 1


def test_a_training_is_complete(runs, closed):
    options = ["-c", QUICKSTART, *SMALL, "--trainer.max_epochs=1", f"--trainer.default_root_dir={runs.root}"]
    assert closed("fit", *options) == 1
    assert {"results.json", "model", "predictions"} <= {path.name for path in (runs.root / "1").iterdir()}


def test_short_output_ends_without_a_traceback(closed, capfd):
    """It is in the buffer of the stream until the end."""
    assert closed("--version") == 1
    assert capfd.readouterr().err == ""


def test_progress_on_closed_output(monkeypatch):
    done = []

    def work():
        for step in range(3):
            yield f"step {step}"
            done.append(step)

    reading, writing = os.pipe()
    os.close(reading)
    with monkeypatch.context() as patch, os.fdopen(writing, "w") as pipe:
        patch.setattr(sys, "stdout", pipe)
        with pytest.raises(BrokenPipeError):
            print_lines(work())
        os.dup2(os.open(os.devnull, os.O_WRONLY), writing)
    assert done == [0, 1, 2]
