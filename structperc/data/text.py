"""Text files as they stand or as lines, with errors that say which file, which line and what to change.

This is the one reader of text files: it unpacks gzip, and reads standard input where a file is called "-".
"""

import gzip
import os
import re
import sys
import zlib
from pathlib import Path

from structperc.data.other_formats import HEAD, known_format, wide_encoding
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
    path = expand(path)
    data = _bytes(path)
    text = _decoded(path, data, encoding)
    if (at := text.find("\0")) >= 0 or _CONTROL.search(text[:HEAD]):
        _refuse_known(path, data, encoding)
    if at >= 0:
        raise InputError(f"{path}:{text.count(_line_end(text), 0, at) + 1}: a zero byte: this is no text file")
    return text.removeprefix("\ufeff")


_GZIP = b"\x1f\x8b"
_CONTROL = re.compile(r"[\x01-\x08\x0e-\x1f]")  # in no text that is written for people


def _bytes(path: Path) -> bytes:
    data = _packed(path)
    if not data.startswith(_GZIP):
        return data
    try:
        return gzip.decompress(data)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path}: this gzip file is damaged ({error}); pack it anew") from None


def _packed(path: Path) -> bytes:
    if str(path) == "-":
        if sys.stdin is None:
            raise InputError("standard input is closed; name a file")
        return sys.stdin.buffer.read()
    try:
        return path.read_bytes()
    except OSError as error:
        place = "" if path.is_absolute() else f"; relative paths start in {Path.cwd()}"
        raise InputError(f"{path}: cannot read this file ({error.strerror}){place}") from None
    except ValueError as error:
        raise InputError(f"{str(path)!r} is no name of a file ({error})") from None


def _decoded(path: Path, data: bytes, encoding: str | None) -> str:
    if encoding is not None and encoding.lower().startswith(("utf-16", "utf-32")) and b"\n" in data and 0 not in data:
        raise InputError(f"{path}: this is no {encoding} text; leave out encoding, or set another one")
    try:
        return data.decode("utf-8" if encoding is None else encoding)
    except UnicodeDecodeError as error:
        _refuse_known(path, data, encoding)
        end = b"\n" if b"\n" in data else b"\r"
        place = f"{path}:{data.count(end, 0, error.start) + 1}: byte 0x{data[error.start]:02x}"
        raise InputError(f"{place} is not {error.encoding}; {_advice(encoding, 'perhaps latin-1')}") from None
    except (LookupError, ValueError):  # unknown, or no encoding of texts
        raise InputError(f"unknown encoding {encoding!r}; set encoding to utf-8, latin-1, ...") from None


def _refuse_known(path: Path, data: bytes, encoding: str | None) -> None:
    """Raise InputError for what is known and no text, or a text in another encoding that shows."""
    if found := known_format(data):
        raise InputError(f"{path}: this is {found}")
    wide = wide_encoding(data)
    if wide is not None and (encoding or "")[:6].lower() != wide[:6]:
        raise InputError(f"{path}: this is {wide} text; {_advice(encoding, wide)}")


def _advice(encoding: str | None, other: str) -> str:
    return "save it as UTF-8" if encoding is None else f"set encoding, {other}"


def _line_end(text: str) -> str:
    return "\r" if "\r" in text and "\n" not in text else "\n"
