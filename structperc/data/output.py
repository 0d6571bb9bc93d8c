"""Names of files and folders that are not complete yet; what killed processes left of them is swept.

Whatever is to appear whole is written as .NAME.HOST.PID.part beside its place NAME, and then moved there. All that
writes takes the name from here, and with it sweeps what processes that are gone have left in that folder.

Files as outputs: a regular file appears complete or not at all, anything else is written to as it stands.
"""

import contextlib
import os
import re
import shutil
import socket
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from structperc.errors import InputError

HOST = re.sub(r"[^\w-]", "-", socket.gethostname()) or "host"
NAME = re.compile(rf"\.(?P<target>.+)\.{re.escape(HOST)}\.(?P<process>\d+)\.part", re.DOTALL)
OLD = "old"  # in the folder that is to replace another one: the other one, for the moment between two moves


def temporary_path(path: Path) -> Path:
    """Return the path where this process writes what is to become `path`; it does not exist yet."""
    remove_stale(path.parent)
    part = path.with_name(f".{path.name}.{HOST}.{os.getpid()}.part")
    remove(part)  # of an earlier process of this number
    return part


def remove_stale(folder: Path) -> None:
    """Remove unfinished files and folders that ended processes of this host have left in a folder."""
    with suppress(OSError):  # of a folder that is not there, or not ours to change
        for entry in [*os.scandir(folder)]:
            found = NAME.fullmatch(entry.name)
            if found and not _alive(int(found["process"])):
                _put_back(folder / entry.name / OLD, folder / found["target"])
                remove(folder / entry.name)


def remove(path: Path) -> None:
    """Remove a file, or a folder with all it holds; nothing happens where there is none."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    elif os.path.lexists(path):
        path.unlink()


@contextmanager
def atomic_file(target: Path) -> Iterator[Path]:
    """Yield the name of a file to be written, which then becomes the target. On an error nothing changes."""
    part = temporary_path(target)
    try:
        yield part
        os.replace(part, target)
    finally:
        with suppress(OSError):  # the error that led here is the one to hear of
            part.unlink(missing_ok=True)


@contextmanager
def atomic_folder(target: Path) -> Iterator[Path]:
    """Yield a new folder to be filled, which then replaces the target. On an error nothing changes.

    What else is put into its parent is removed with it.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    part = temporary_path(target)
    fresh, old = part / "new", part / OLD
    try:
        fresh.mkdir(parents=True)
        yield fresh
        if target.exists():
            os.replace(target, old)
        os.replace(fresh, target)
    finally:
        with suppress(OSError):  # the error that led here is the one to hear of
            _put_back(old, target)
            remove(part)


def _put_back(old: Path, target: Path) -> None:
    if old.exists() and not target.exists():
        old.rename(target)


def _alive(process: int) -> bool:
    """Whether there is such a process; of a system that does not say so without harm, always."""
    if sys.platform == "win32":
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True


TOGETHER = 1024  # lines that are written at a time


def check_output_path(path: str | Path | None) -> None:
    """Raise InputError for a path that cannot be written to: an empty name, a folder, a missing or protected folder.

    Nothing is opened: a full disk shows only when it is written to. None, where no file was asked for, is accepted.
    """
    if path is None:
        return
    if not str(path) or "\0" in str(path):
        raise InputError(f"{str(path)!r} is no name for a file to write; give another one")
    if os.path.isdir(path) or str(path).endswith(os.sep):  # as paths of folders do
        raise InputError(f"{path}: this is a folder; name a file")
    needed = Path(path)
    if not os.path.exists(path):
        needed = Path(os.path.realpath(path)).parent
        if not needed.is_dir():
            raise InputError(f"{path}: the folder {needed} {'is a file' if needed.exists() else 'does not exist'}")
    if not os.access(needed, os.W_OK):
        raise InputError(f"{path}: cannot write this file (no permission to write to {needed})")


def write_lines(path: str | Path, lines: Iterable[str]) -> None:
    """Write lines (with their ends) as UTF-8. Raises InputError as `open_atomic` does."""
    left = iter(lines)
    with open_atomic(path) as file:
        while some := "".join(islice(left, TOGETHER)):
            file.write(some.encode("utf-8", "surrogateescape"))


@contextlib.contextmanager
def open_atomic(path: str | Path) -> Iterator[BinaryIO]:
    """Open a file for bytes within the block.

    A regular file, or the one that a link leads to, is replaced when all is written and keeps its permissions; when
    that fails it stays what it was. Pipes, devices, and files that are standard output are written to directly.
    Raises InputError, naming path and reason, for what `check_output_path` refuses and for failures on the way.
    """
    check_output_path(path)
    with write_errors(path):
        if os.path.exists(path) and not _replaceable(path):
            with open(path, "wb") as file:
                yield file
            return
        target = Path(os.path.realpath(path))
        with atomic_file(target) as part:
            with open(part, "wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            if target.exists():
                part.chmod(stat.S_IMODE(target.stat().st_mode))


def _replaceable(path: str | Path) -> bool:
    """Whether what is there is a regular file, and not what standard output or error go to."""
    found = os.stat(path)
    return stat.S_ISREG(found.st_mode) and not any(os.path.samestat(found, own) for own in _standard_streams())


def _standard_streams() -> Iterator[os.stat_result]:
    for number in (1, 2):
        with contextlib.suppress(OSError):
            yield os.fstat(number)


@contextlib.contextmanager
def write_errors(path: str | Path) -> Iterator[None]:
    """Turn errors of the file system within the block into InputErrors, except a pipe closed by its reader."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise InputError(f"{path}: cannot write this file ({error.strerror or error})") from error
