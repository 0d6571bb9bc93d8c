"""Files as outputs: a regular file appears complete or not at all, anything else is written to as it stands."""

import contextlib
import os
import stat
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from structperc.data.unfinished import whole_file
from structperc.errors import InputError

TOGETHER = 1024  # lines that are written at a time


def check_target(path: str | Path) -> None:
    """Raise InputError for a path that cannot be written to: an empty name, a folder, a missing or protected folder.

    Nothing is opened: a full disk shows only when it is written to.
    """
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
    """Write lines (with their ends) as UTF-8. Raises InputError as `opened` does."""
    left = iter(lines)
    with opened(path) as file:
        while some := "".join(islice(left, TOGETHER)):
            file.write(some.encode("utf-8", "surrogateescape"))


@contextlib.contextmanager
def opened(path: str | Path) -> Iterator[BinaryIO]:
    """Open a file for bytes within the block.

    A regular file, or the one that a link leads to, is replaced when all is written and keeps its permissions; when
    that fails it stays what it was. Pipes, devices, and files that are standard output are written to directly.
    Raises InputError, naming path and reason, for what `check_target` refuses and for failures on the way.
    """
    check_target(path)
    with complaints(path):
        if os.path.exists(path) and not _replaceable(path):
            with open(path, "wb") as file:
                yield file
            return
        target = Path(os.path.realpath(path))
        with whole_file(target) as part:
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
def complaints(path: str | Path) -> Iterator[None]:
    """Turn errors of the file system within the block into InputErrors, except a pipe closed by its reader."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise InputError(f"{path}: cannot write this file ({error.strerror or error})") from error
