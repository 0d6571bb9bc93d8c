"""Outputs: complete or what was there before, and one line that says why not."""

import errno
import os
import stat
import subprocess
import sys
import threading

import pytest

from structperc.data import output
from structperc.data.output import atomic_folder, check_output_path, open_atomic, temporary_path, write_lines
from structperc.errors import InputError
from tests.errors import error_message

LINES = ["Anna PER\n", "schlief ä\n"]
TEXT = "".join(LINES)


def test_replaced_file_keeps_permissions(tmp_path):
    file = tmp_path / "a.txt"
    write_lines(file, LINES)
    assert file.read_text(encoding="utf-8") == TEXT
    file.chmod(0o640)
    before = file.stat().st_ino
    write_lines(str(file), ["other\n"])
    assert file.read_text() == "other\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert file.stat().st_ino != before  # nobody saw it half written
    assert os.listdir(tmp_path) == ["a.txt"]


@pytest.mark.parametrize("there", [True, False], ids=["to a file", "to nothing"])
def test_target_of_a_link(tmp_path, there):
    (tmp_path / "far").mkdir()
    target, link = tmp_path / "far" / "a.txt", tmp_path / "link"
    if there:
        target.write_text("old")
    link.symlink_to("far/a.txt")
    write_lines(link, LINES)
    assert link.is_symlink()
    assert target.read_text(encoding="utf-8") == TEXT
    assert os.listdir(tmp_path / "far") == ["a.txt"]


def test_device():
    before = os.stat("/dev/null")
    write_lines("/dev/null", LINES)
    assert os.stat("/dev/null").st_rdev == before.st_rdev


def test_a_pipe_is_written_to(tmp_path):
    pipe, read = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_text(encoding="utf-8")))
    reader.start()
    write_lines(pipe, LINES)
    reader.join()
    assert read == [TEXT]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_standard_output_by_name(tmp_path):
    """A file that a shell opened is not replaced: what is printed later goes there, too."""
    code = f"from structperc.data.output import write_lines; write_lines('/dev/stdout', {LINES})"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout.decode() == TEXT
    with open(tmp_path / "out", "wb") as out:
        subprocess.run([sys.executable, "-c", code], stdout=out, check=True)
        assert os.path.samestat(os.stat(tmp_path / "out"), os.fstat(out.fileno()))
    assert (tmp_path / "out").read_text(encoding="utf-8") == TEXT


def test_full_disk(tmp_path, monkeypatch):
    file = tmp_path / "a.txt"
    file.write_text("old")
    assert (
        error_message(write_lines, "/dev/full", LINES) == "/dev/full: cannot write this file (No space left on device)"
    )

    def full(number):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    assert error_message(write_lines, file, LINES) == f"{file}: cannot write this file (No space left on device)"
    assert file.read_text() == "old"
    assert os.listdir(tmp_path) == ["a.txt"]


def test_the_clean_up_does_not_hide_the_error(tmp_path, monkeypatch):
    def gone(path, missing_ok=False):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(output.Path, "unlink", gone)
    with pytest.raises(KeyError, match="while lines are made"), open_atomic(tmp_path / "a.txt"):
        raise KeyError("while lines are made")


def test_failing_lines(tmp_path):
    file = tmp_path / "a.txt"
    file.write_text("old")

    def lines():
        yield "half"
        raise InputError("no more")

    assert error_message(write_lines, file, lines()) == "no more"
    assert file.read_text() == "old"
    assert os.listdir(tmp_path) == ["a.txt"]


def test_check_of_targets(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("kept")
    (tmp_path / "to folder").symlink_to(tmp_path)
    for path, reason in (
        ("", "'' is not a valid file name"),
        ("a\0b", "'a\\x00b' is not a valid file name"),
        (tmp_path, f"{tmp_path}: this is a folder; name a file"),
        (tmp_path / "to folder", f"{tmp_path}/to folder: this is a folder"),
        (f"{tmp_path}/new/", f"{tmp_path}/new/: this is a folder; name a file"),
        (tmp_path / "none" / "a", f"{tmp_path}/none/a: the folder {tmp_path}/none does not exist"),
        (tmp_path / "file" / "a", f"{tmp_path}/file/a: the folder {tmp_path}/file is a file"),
    ):
        assert error_message(check_output_path, path).startswith(reason)
        assert error_message(write_lines, path, LINES).startswith(reason)
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    for path, needed in ((tmp_path / "file", tmp_path / "file"), (tmp_path / "new", tmp_path)):
        assert error_message(check_output_path, path).endswith(f"(no permission to write to {needed})")
    assert sorted(os.listdir(tmp_path)) == ["file", "to folder"]
    assert (tmp_path / "file").read_text() == "kept"


def test_long_name(tmp_path):
    assert "File name too long" in error_message(write_lines, tmp_path / ("x" * 300), LINES)


@pytest.fixture(scope="module")
def gone():
    """The number of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def left_by(path, process):
    """What an unfinished file of another process is called."""
    return path.with_name(temporary_path(path).name.replace(f".{os.getpid()}.part", f".{process}.part"))


def test_files_of_killed_processes_are_removed(tmp_path, gone):
    file, folder = (left_by(tmp_path / name, gone) for name in ("out.txt", "model"))
    file.write_text("half")
    (folder / "new").mkdir(parents=True)
    (folder / "new" / "model.json").write_text("half")
    write_lines(tmp_path / "other.txt", ["whole\n"])
    assert [p.name for p in tmp_path.iterdir()] == ["other.txt"]


def test_files_of_running_processes_stay(tmp_path, gone):
    here = left_by(tmp_path / "x", gone).name
    kept = [
        left_by(tmp_path / "x", os.getppid()).name,  # a process that lives
        temporary_path(tmp_path / "x").name,
        here.replace(output.HOST, output.HOST + "2"),  # of another host, where the process may live
        here.removeprefix("."),
        here.removesuffix(".part"),
        f".x.{gone}",
        f".x.{output.HOST}.{'9' * 30}.part",
    ]
    for name in kept:
        (tmp_path / name).write_text("")
    write_lines(tmp_path / "out.txt", [])
    assert {p.name for p in tmp_path.iterdir()} == {*kept, "out.txt"}


def test_interrupted_replacement_of_a_folder(tmp_path, gone):
    """Its process was killed between the two moves."""
    part = left_by(tmp_path / "model", gone)
    for name in ("new", output.OLD):
        (part / name).mkdir(parents=True)
        (part / name / "file").write_text(name)
    temporary_path(tmp_path / "model")
    assert [p.name for p in tmp_path.iterdir()] == ["model"]
    assert (tmp_path / "model" / "file").read_text() == output.OLD


def fill(tmp_path, text):
    with atomic_folder(tmp_path / "model") as fresh:
        (fresh / "file").write_text(text)
        if text == "wrong":
            raise OSError("no space")


def test_replacement_of_folders(tmp_path, monkeypatch):
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
