"""Text files as lines, with errors that say which file, which line and what to change."""

import os
from pathlib import Path

from structperc.errors import InputError


def expand(path: str | Path) -> Path:
    """A path with environment variables ("$DATA/train.txt") and "~" filled in. InputError for one that is not set."""
    filled = os.path.expandvars(str(path))
    if "$" in filled:
        raise InputError(f"{path}: environment variable not set; set it or write the path without it")
    return Path(filled).expanduser()


def read_lines(path: str | Path, encoding: str = "utf-8") -> list[str]:
    r"""Lines of a file, ended by \n or \r\n only; a byte-order mark is dropped. The path goes through `expand`.

    InputError for a path that cannot be read (nothing else is tried) and, with file:line, for bytes that are
    not in the encoding.
    """
    path = expand(path)
    try:
        data = path.read_bytes()
        text = data.decode(encoding)
    except OSError as error:
        place = "" if path.is_absolute() else f"; relative paths start in {Path.cwd()}"
        raise InputError(f"{path}: cannot read this file ({error.strerror}){place}") from None
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        other = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "latin-1"
        raise InputError(
            f"{path}:{line}: byte 0x{data[error.start]:02x} is not {encoding}; set encoding, perhaps {other}"
        ) from None
    except LookupError:
        raise InputError(f"unknown encoding {encoding!r}; set encoding to utf-8, latin-1, ...") from None
    return text.removeprefix("\ufeff").replace("\r\n", "\n").split("\n")
