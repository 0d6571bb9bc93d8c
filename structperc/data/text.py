"""Text files as they stand or as lines, with errors that say which file, which line and what to change."""

import os
from pathlib import Path

from structperc.data.arriving import arriving
from structperc.errors import InputError


def expand(path: str | Path) -> Path:
    """Return a path with environment variables ("$DATA/train.txt") and "~" filled in.

    Raises InputError for a variable that is not set.
    """
    filled = os.path.expandvars(str(path))
    if "$" in filled:
        raise InputError(f"{path}: environment variable not set; set it or write the path without it")
    try:
        return Path(filled).expanduser()
    except RuntimeError:
        raise InputError(f"{path}: there is no such user; write the path without ~") from None


def read_lines(path: str | Path, encoding: str | None = None) -> list[str]:
    r"""Return the lines of a file, ended by \n or \r\n, or all of them by \r; see `read_whole` for everything else."""
    return lines_of(read_whole(path, encoding))


def lines_of(text: str) -> list[str]:
    r"""Return the lines of a text, ended by \n or \r\n, or all of them by \r."""
    text = text.replace("\r\n", "\n")
    return text.split(_line_end(text))


def read_whole(path: str | Path, encoding: str | None = None) -> str:
    """Return the text of a file, its line ends as they are; a byte-order mark is dropped, gzip is unpacked.

    The path goes through `expand`; "-" is standard input. Without an encoding the file must be UTF-8; messages advise
    to set one only where one was given.

    Raises InputError for a path that cannot be read (nothing else is tried), with file:line for bytes that are not in
    the encoding, and for files that are no text but something known, such as archives.
    """
    return "".join(arriving(expand(path), encoding))


def _line_end(text: str) -> str:
    return "\r" if "\r" in text and "\n" not in text else "\n"
