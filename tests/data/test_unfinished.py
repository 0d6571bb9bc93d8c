"""What is not complete has one kind of name, and goes when its process has gone."""

import os
import subprocess
import sys

import pytest

from structperc.data import output as names
from structperc.data.output import atomic_folder, temporary_path, write_lines


@pytest.fixture(scope="module")
def gone():
    """The number of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def left_by(path, process):
    """What an unfinished file of another process is called."""
    return path.with_name(temporary_path(path).name.replace(f".{os.getpid()}.part", f".{process}.part"))


def test_what_killed_processes_left_is_swept_by_whoever_writes_there(tmp_path, gone):
    file, folder = (left_by(tmp_path / name, gone) for name in ("out.txt", "model"))
    file.write_text("half")
    (folder / "new").mkdir(parents=True)
    (folder / "new" / "model.json").write_text("half")
    write_lines(tmp_path / "other.txt", ["whole\n"])
    assert [p.name for p in tmp_path.iterdir()] == ["other.txt"]


def test_only_what_is_certainly_nobodys_is_swept(tmp_path, gone):
    here = left_by(tmp_path / "x", gone).name
    kept = [
        left_by(tmp_path / "x", os.getppid()).name,  # a process that lives
        temporary_path(tmp_path / "x").name,
        here.replace(names.HOST, names.HOST + "2"),  # of another host, where the process may live
        here.removeprefix("."),
        here.removesuffix(".part"),
        f".x.{gone}",
        f".x.{names.HOST}.{'9' * 30}.part",
    ]
    for name in kept:
        (tmp_path / name).write_text("")
    write_lines(tmp_path / "out.txt", [])
    assert {p.name for p in tmp_path.iterdir()} == {*kept, "out.txt"}


def test_a_folder_that_was_about_to_be_replaced_comes_back(tmp_path, gone):
    """Its process was killed between the two moves."""
    part = left_by(tmp_path / "model", gone)
    for name in ("new", names.OLD):
        (part / name).mkdir(parents=True)
        (part / name / "file").write_text(name)
    temporary_path(tmp_path / "model")
    assert [p.name for p in tmp_path.iterdir()] == ["model"]
    assert (tmp_path / "model" / "file").read_text() == names.OLD


def fill(tmp_path, text):
    with atomic_folder(tmp_path / "model") as fresh:
        (fresh / "file").write_text(text)
        if text == "wrong":
            raise OSError("no space")


def test_folders_are_replaced_whole_or_stay(tmp_path, monkeypatch):
    fill(tmp_path, "first")
    fill(tmp_path, "second")
    with pytest.raises(OSError, match="no space"):
        fill(tmp_path, "wrong")
    moves, replace = [], os.replace

    def fails(source, target):
        moves.append(source)
        if len(moves) == 2:
            raise OSError("cannot move")
        replace(source, target)

    monkeypatch.setattr(os, "replace", fails)
    with pytest.raises(OSError, match="cannot move"):
        fill(tmp_path, "third")
    assert [p.name for p in tmp_path.iterdir()] == ["model"]
    assert (tmp_path / "model" / "file").read_text() == "second"
