"""Atomic output: files and folders appear only when they are complete.

They are written as .NAME.HOST.PID.part next to the target and then moved. Parts of killed processes are removed by the
next writer in the folder.
"""

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
OLD = "old"  # within a part: the replaced folder
LINES = 1024  # written at a time


def temporary_path(path: Path) -> Path:
    """Return an unused path next to `path` for this process to write to, and remove stale parts."""
    remove_stale(path.parent)
    part = path.with_name(f".{path.name}.{HOST}.{os.getpid()}.part")
    remove(part)  # left by an earlier process with this id
    return part


def remove_stale(folder: Path) -> None:
    """Remove parts in a folder that were left by ended processes of this host."""
    with suppress(OSError):  # missing folder or no permission
        for entry in [*os.scandir(folder)]:
            match = NAME.fullmatch(entry.name)
            if match and not _is_running(int(match["process"])):
                _put_back(folder / entry.name / OLD, folder / match["target"])
                remove(folder / entry.name)


def remove(path: Path) -> None:
    """Remove a file or a folder with its content, if it exists."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    elif os.path.lexists(path):
        path.unlink()


@contextmanager
def atomic_file(target: Path) -> Iterator[Path]:
    """Yield a path to write to, which then replaces the target. After an error the target is unchanged."""
    part = temporary_path(target)
    try:
        yield part
        os.replace(part, target)
    finally:
        with suppress(OSError):  # keep the original error
            part.unlink(missing_ok=True)


@contextmanager
def atomic_folder(target: Path) -> Iterator[Path]:
    """Yield a new folder to fill, which then replaces the target. After an error the target is unchanged.

    Other files in the parent of the new folder are removed.
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
        with suppress(OSError):  # keep the original error
            _put_back(old, target)
            remove(part)


def _put_back(old: Path, target: Path) -> None:
    if old.exists() and not target.exists():
        old.rename(target)


def _is_running(process: int) -> bool:
    """Return True if a process exists or if this is unknown."""
    if sys.platform == "win32":
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True


def make_folder(path: Path) -> None:
    """Make a folder and those above it unless it exists. Raises InputError if that is not possible."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{path}: cannot make this folder ({error.strerror or error})") from None


def check_output_path(path: str | Path | None) -> None:
    """Raise InputError for an invalid name, a folder, and a missing or write-protected parent; None is accepted."""
    if path is None:
        return
    if not str(path) or "\0" in str(path):
        raise InputError(f"{str(path)!r} is not a valid file name; name a file to write")
    if os.path.isdir(path) or str(path).endswith(os.sep):
        raise InputError(f"{path}: this is a folder; name a file")
    needed = Path(path)
    if not os.path.exists(path):
        needed = Path(os.path.realpath(path)).parent
        if not needed.is_dir():
            raise InputError(f"{path}: the folder {needed} {'is a file' if needed.exists() else 'does not exist'}")
    if not os.access(needed, os.W_OK):
        raise InputError(f"{path}: cannot write this file (no permission to write to {needed})")


def write_lines(path: str | Path, lines: Iterable[str]) -> None:
    """Write lines with line ends as UTF-8. Raises InputError as `open_atomic` and `check_text` do."""
    left = iter(lines)
    with open_atomic(path) as file:
        while some := "".join(islice(left, LINES)):
            file.write(check_text(some, path).encode("utf-8", "surrogateescape"))


def check_text(text: str, name: str | Path) -> str:
    """Return a text. Raises InputError with the name of the output if it contains NUL, which no reader accepts."""
    if (at := text.find("\0")) >= 0:
        reason = f"a text file cannot contain NUL, as after {text[max(0, at - 20) : at]!r}"
        raise InputError(f"{name}: {reason}; remove it from the input, or write JSON")
    return text


@contextmanager
def open_atomic(path: str | Path) -> Iterator[BinaryIO]:
    """Open a file for writing bytes within the block.

    A regular file, or the target of a link, is replaced on success and keeps its permissions. Pipes, devices and
    standard output are written directly. Raises InputError as `check_output_path` does, and for errors while writing.
    """
    check_output_path(path)
    with write_errors(path):
        if os.path.exists(path) and not _is_replaceable(path):
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


def _is_replaceable(path: str | Path) -> bool:
    """Return True for a regular file other than standard output and error."""
    status = os.stat(path)
    for number in (1, 2):
        with suppress(OSError):
            if os.path.samestat(status, os.fstat(number)):
                return False
    return stat.S_ISREG(status.st_mode)


@contextmanager
def write_errors(path: str | Path) -> Iterator[None]:
    """Convert file-system errors within the block to InputErrors, except a broken pipe."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise InputError(f"{path}: cannot write this file ({error.strerror or error})") from error
