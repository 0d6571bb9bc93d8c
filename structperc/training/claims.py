"""Folders in which one process works at a time."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from structperc.errors import InputError
from structperc.training.runs import next_run, sweep_runs

LOCK = ".lock"  # stays in the folder; what holds is the system's lock on it, which ends with the process


@contextmanager
def alone_in(folder: Path, advice: str) -> Iterator[None]:
    """Makes the folder. InputError, with the advice, while another process is alone in it."""
    _make(folder)
    lock = FileLock(folder / LOCK)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise InputError(f"{folder}: another process works here; {advice}") from None
    try:
        yield
    finally:
        lock.release()


@contextmanager
def alone_in_new_run(root: Path) -> Iterator[Path]:
    """ROOT/1, or whatever number no run has yet; it is there from the start, and gone if nothing came into it."""
    missing = [folder for folder in (root, *root.parents) if not folder.exists()]
    folder = _next(root)
    sweep_runs(root)
    try:
        with alone_in(folder, "start again"):
            try:
                yield folder
            finally:
                if [path.name for path in folder.iterdir()] == [LOCK]:
                    (folder / LOCK).unlink()
    finally:
        with suppress(OSError):  # they are not empty
            for made in (folder, *missing):
                made.rmdir()


def _next(root: Path) -> Path:
    _make(root)
    while True:
        folder = next_run(root)
        with suppress(FileExistsError):  # another process was faster
            folder.mkdir()
            return folder


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{error.filename}: cannot make this folder ({error.strerror})") from None
