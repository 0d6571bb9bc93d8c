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
    """Make the folder and hold it within the block. Raises InputError, with the advice, if another process holds it."""
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
    """Yield the folder of a new run, ROOT/1 or the first number that is free, and hold it within the block.

    The folder is there from the start, and removed in the end if nothing was written into it.
    """
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
