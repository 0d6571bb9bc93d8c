"""Standard output that is a closed or full pipe, on a full disk, not UTF-8 or not buffered: all bytes, or an error."""

import errno
import io
import json
import os
import sys
import threading

import pytest

from structperc.cli import main as main_module
from structperc.cli.main import main
from structperc.cli.messages import print_lines
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
        "lists.csv": ["evaluate", model, *gold, "--candidates", 1, 2, "--csv"],
        "bins.csv": ["evaluate", model, *gold, "--reliability", "--csv"],
        "weights.html": ["explain", model, "--html"],
        "weights.csv": ["explain", model, "--csv"],
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


# -- all bytes -------------------------------------------------------------------------------------------------

WORDS = "Anna \N{SLICE OF PIZZA}\nin \u0141\u00f3d\u017a\n\n" * 30


class PartialFile(io.RawIOBase):
    """A file that takes a few bytes at a time, and none after `size` bytes."""

    def __init__(self, size=10**9):
        self.data, self.size = b"", size

    def writable(self):
        return True

    def write(self, data):
        if len(self.data) >= self.size:
            raise BrokenPipeError
        self.data += bytes(data[:7])
        return len(data[:7])


def printed(monkeypatch, file, *arguments, **options):
    """Exit status of a command that prints into a file without a buffer, as with PYTHONUNBUFFERED."""
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", io.TextIOWrapper(file, write_through=True, **options))
        return main([str(argument) for argument in arguments])


@pytest.mark.parametrize("encoding", ["utf-8", "ascii", "utf-16"])
def test_all_bytes_are_written_as_utf_8(model, file, monkeypatch, tmp_path, encoding):
    output = PartialFile()
    assert printed(monkeypatch, output, "tag", model, file(WORDS), encoding=encoding) == 0
    assert main(["tag", str(model), str(file(WORDS)), "-o", str(tmp_path / "out")]) == 0
    assert output.data == (tmp_path / "out").read_bytes()
    assert output.data.decode().count("\N{SLICE OF PIZZA}") == 30


def test_a_pipe_closed_in_the_middle(model, file, monkeypatch, capfd):
    output = PartialFile(100)
    assert printed(monkeypatch, output, "tag", model, file(WORDS), encoding="utf-8") == 1
    assert 0 < len(output.data) < 110
    assert "rror" not in capfd.readouterr().err


def test_a_pipe_that_does_not_block(monkeypatch):
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    data = []
    with os.fdopen(reading, "rb") as source, os.fdopen(writing, "wb", buffering=0) as pipe:
        reader = threading.Thread(target=lambda: data.append(source.read()))
        monkeypatch.setattr(main_module, "dispatch", lambda arguments: print("x" * 10**6))
        reader.start()
        assert printed(monkeypatch, pipe, "configs") == 0
        pipe.close()
        reader.join()
    assert data == [b"x" * 10**6 + b"\n"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
@pytest.mark.parametrize("buffering", [0, -1])
@pytest.mark.parametrize("command", ["tag", "--version"])
def test_full_disk(model, file, monkeypatch, capsys, command, buffering):
    gold = file("Anna B-PER\nleft O\n\n")
    files = {"tag": [model, gold], "evaluate": [model, gold, "--columns", "word", "label"]}.get(command, [])
    with open("/dev/full", "wb", buffering=buffering) as full:
        assert printed(monkeypatch, full, command, *files) == 2
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith("structperc: error: standard output: ")
    assert os.strerror(errno.ENOSPC) in last


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
def test_messages_on_a_full_disk_do_not_stop_a_command(model, file, monkeypatch, tmp_path):
    with open("/dev/full", "w") as full, monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", full)
        assert main(["tag", str(model), str(file(WORDS)), "-o", str(tmp_path / "out")]) == 0
        assert main(["tag", str(model), str(tmp_path / "none")]) == 2
        os.dup2(os.open(os.devnull, os.O_WRONLY), full.fileno())
    assert (tmp_path / "out").stat().st_size
