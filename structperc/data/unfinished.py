"""Names of files and folders that are not complete yet; what killed processes left of them is swept.

Whatever is to appear whole is written as .NAME.HOST.PID.part beside its place NAME, and then moved there. All that
writes takes the name from here, and with it sweeps what processes that are gone have left in that folder.
"""

import os
import re
import shutil
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

HOST = re.sub(r"[^\w-]", "-", socket.gethostname()) or "host"
NAME = re.compile(rf"\.(?P<target>.+)\.{re.escape(HOST)}\.(?P<process>\d+)\.part", re.DOTALL)
OLD = "old"  # in the folder that is to replace another one: the other one, for the moment between two moves


def unfinished(path: Path) -> Path:
    """Return the path where this process writes what is to become `path`; it does not exist yet."""
    remove_unfinished(path.parent)
    part = path.with_name(f".{path.name}.{HOST}.{os.getpid()}.part")
    remove(part)  # of an earlier process of this number
    return part


def remove_unfinished(folder: Path) -> None:
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
def whole_file(target: Path) -> Iterator[Path]:
    """Yield the name of a file to be written, which then becomes the target. On an error nothing changes."""
    part = unfinished(target)
    try:
        yield part
        os.replace(part, target)
    finally:
        with suppress(OSError):  # the error that led here is the one to hear of
            part.unlink(missing_ok=True)


@contextmanager
def whole_folder(target: Path) -> Iterator[Path]:
    """Yield a new folder to be filled, which then replaces the target. On an error nothing changes.

    What else is put into its parent is removed with it.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    part = unfinished(target)
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
