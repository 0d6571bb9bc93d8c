"""Text files as strings, lines, or streams of pieces or of blocks of lines; with errors that name file and line.

Gzip files are unpacked, and "-" is standard input.
"""

import codecs
import gzip
import io
import os
import re
import select
import sys
import zlib
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, cast

from structperc.errors import InputError
from structperc.spelling import closest

HEAD = 4096  # bytes inspected to detect binary formats
PIECE = 2**17  # bytes per piece
TIMEOUT = 0.05  # seconds to wait for more data in a pipe
BYTE_ORDER_MARK = "\ufeff"
CONTEXT = 128  # characters before a line that decide whether a text can be cut after it

Ends = Callable[[str], Iterable[int]]  # whole lines -> positions where they may be cut

BINARY_FORMATS = (  # first bytes, and description for messages
    (rb"BZh\d1AY&SY", "a bzip2 file; unpack it first"),
    (rb"\xfd7zXZ\0", "an xz file; unpack it first"),
    (rb"\x28\xb5\x2f\xfd", "a zstd file; unpack it first"),
    (rb"PK[\x03\x05]", "a zip archive; unpack it first"),  # also new Office documents, .npz and .pt files
    (rb"7z\xbc\xaf", "a 7z archive; unpack it first"),
    (rb"PAR1", "a parquet file; write its columns as text first"),
    (rb"ARROW1\0|\xff\xff\xff\xff", "an Arrow file; write its columns as text first"),
    (rb"...\0{5}\{\"", "a safetensors file; a text file is needed"),
    (rb"\x93NUMPY", "a NumPy array; a text file is needed"),
    (rb"\x80[\x02-\x05]", "a Python pickle; a text file is needed"),
    (rb"SQLite format 3\0", "an SQLite data base; write its columns as text first"),
    (rb"\x89HDF", "an HDF5 file; write its columns as text first"),
    (rb"%PDF-", "a PDF document; a text file is needed"),
    (rb"\xd0\xcf\x11\xe0", "an old Office document; a text file is needed"),
    (rb"\x89PNG|\xff\xd8\xff|GIF8|RIFF....WEBP", "an image; a text file is needed"),
    (rb"\x7fELF|MZ", "a program; a text file is needed"),
)
_BYTE_ORDER_MARKS = (
    (b"\xff\xfe\0\0", "utf-32"),
    (b"\0\0\xfe\xff", "utf-32"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
)
_GZIP = b"\x1f\x8b"
_WITH_DEFAULT = re.compile(r"\$\{(\w+):-([^{}]*)\}")
_CONTROL = re.compile(r"[\x01-\x08\x0e-\x1f]")  # not in text files


def expand_variables(text: str) -> str:
    """Expand environment variables: "$NAME", "${NAME}", or "${NAME:-default}" if it may be unset or empty.

    Raises InputError for a variable that is not set and has no default.
    """
    with_defaults = _WITH_DEFAULT.sub(lambda match: os.environ.get(match[1]) or match[2], text)
    filled = os.path.expandvars(with_defaults)
    if "$" in filled:
        raise InputError(f"{text}: environment variable not set; set it or write the path without it")
    return filled


def expand_path(path: str | Path) -> Path:
    """Expand environment variables ("$DATA/train.txt", see `expand_variables`) and "~" in a path.

    Raises InputError for a variable that is not set and has no default.
    """
    try:
        return Path(expand_variables(str(path))).expanduser()
    except RuntimeError:
        raise InputError(f"{path}: unknown user; write the path without ~") from None


def check_exists(path: str | Path) -> None:
    """Raise InputError, with a similar path, unless a file or folder has this path, which is expanded."""
    expanded = expand_path(path)
    try:
        expanded.stat()
    except (FileNotFoundError, NotADirectoryError):
        raise InputError(f"{path}: no such file{suggest_path(expanded)}") from None
    except (OSError, ValueError):  # its reader has the better message
        return


def suggest_path(path: Path) -> str:
    """Return "; did you mean PATH?" for a missing path, with the closest one, or where relative paths start."""
    missing = path
    while missing.parent != missing and not missing.parent.is_dir():
        missing = missing.parent
    try:
        names = sorted(os.listdir(missing.parent), key=lambda name: Path(name).suffix == missing.suffix)
    except OSError:
        names = []
    by_stem = {Path(name).stem: name for name in names}  # of several names those with the same suffix
    if (stem := closest(missing.stem, by_stem)) is not None:
        similar = missing.parent / by_stem[stem]
        whole = similar / path.relative_to(missing)
        return f"; did you mean {whole if whole.exists() else similar}?"
    return "" if path.is_absolute() else f"; relative paths start in {Path.cwd()}"


def read_text(path: str | Path, encoding: str | None = None) -> str:
    """Return the text of a file, see `stream_text`; the path is expanded, see `expand_path`."""
    return "".join(stream_text(expand_path(path), encoding))


def read_lines(path: str | Path, encoding: str | None = None) -> list[str]:
    """Return the lines of a file, see `read_text` and `split_lines`."""
    return split_lines(read_text(path, encoding))


def split_lines(text: str) -> list[str]:
    r"""Split a text at \n and \r\n, or at \r if there is no \n."""
    text = text.replace("\r\n", "\n")
    return text.split("\r" if "\r" in text and "\n" not in text else "\n")


def stream_text(
    path: Path, encoding: str | None = None, size: int = PIECE, keep_mark: bool = False
) -> Generator[str, None, None]:
    """Yield the text of a file in pieces of at most `size` bytes, and "" before waiting for more data.

    Line ends are kept; a byte-order mark is dropped unless `keep_mark`. Without an encoding the file must be UTF-8, and
    error messages do not suggest setting one. Raises InputError for unreadable files and known binary formats; and with
    file:line for bytes that are not in the encoding, after the text before.
    """
    try:
        decoder = codecs.getincrementaldecoder("utf-8" if encoding is None else encoding)()
        bytes(4).decode("utf-8" if encoding is None else encoding)
    except (LookupError, ValueError):  # unknown, or not a text encoding
        raise _unknown_encoding(encoding) from None
    wide = encoding is not None and encoding.lower().startswith(("utf-16", "utf-32"))
    head, feeds, returns, begun = b"", 0, 0, False
    with _open(path) as file:
        pieces = _read_bytes(path, file, size)
        for piece in chain(pieces, [None]):
            if piece == b"":
                yield ""
                continue
            if not head and piece and wide and b"\n" in piece and 0 not in piece:
                raise InputError(f"{path}: this is not {encoding} text; set encoding: utf-8, latin-1, ...")
            head += (piece or b"")[: HEAD - len(head)]
            text, problem = _decode(decoder, piece, encoding)
            if problem or (not begun and _CONTROL.search(text[:HEAD])):
                _check_known_format(path, head, encoding)
            feeds, returns = feeds + text.count("\n"), returns + text.count("\r")
            if text:
                yield text if begun or keep_mark else text.removeprefix(BYTE_ORDER_MARK)
                begun = True
            if problem:
                next(pieces, None)  # a damaged gzip file has a better message
                raise InputError(f"{path}:{(feeds or returns) + 1}: {problem}")


def _unknown_encoding(encoding: str | None) -> InputError:
    return InputError(f"unknown encoding {encoding!r}; set encoding: utf-8, latin-1, ...")


@contextmanager
def _open(path: Path) -> Iterator[io.BufferedReader]:
    opened: AbstractContextManager[io.BufferedReader]
    with _read_errors(path):
        if str(path) == "-":
            if sys.stdin is None:
                raise InputError("standard input is closed; name a file")
            opened = nullcontext(cast(io.BufferedReader, sys.stdin.buffer))
        else:
            opened = path.open("rb")
    with opened as file:
        yield file


@contextmanager
def _read_errors(path: Path) -> Iterator[None]:
    """Convert errors of opening or reading a file to InputErrors."""
    try:
        yield
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise InputError(f"{path}: this gzip file is damaged ({error}); pack it again") from None
    except FileNotFoundError:
        raise InputError(f"{path}: no such file{suggest_path(path)}") from None
    except OSError as error:
        raise InputError(f"{path}: cannot read this file ({error.strerror})") from None
    except ValueError as error:
        raise InputError(f"{str(path)!r} is not a valid file name ({error})") from None


def _read_bytes(path: Path, file: io.BufferedReader, size: int) -> Iterator[bytes]:
    """Yield available data, unpacked, and b"" before waiting for more."""
    first = b""
    reader: io.BufferedIOBase = file
    while len(first) < len(_GZIP):
        if not _is_ready(file):
            yield b""
        with _read_errors(path):
            data = file.read1(size)
        first += data
        if not data:
            break
    if first.startswith(_GZIP):
        reader = gzip.GzipFile(fileobj=io.BufferedReader(_Prefixed(first, file)))
    elif first:
        yield first
    while True:
        if not _is_ready(file):
            yield b""
        with _read_errors(path):
            data = reader.read1(size)
        if not data:
            return
        yield data


class _Prefixed(io.RawIOBase):
    """A file with first bytes that were already read."""

    def __init__(self, first: bytes, file: io.BufferedReader) -> None:
        self.first, self.file = first, file

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self.first:
            return self.file.readinto1(buffer)
        count = min(len(buffer), len(self.first))
        buffer[:count], self.first = self.first[:count], self.first[count:]
        return count


def _is_ready(file: io.BufferedReader) -> bool:
    """Return True if reading does not block or if this is unknown."""
    if sys.platform == "win32":
        return True
    try:
        return bool(select.select([file], [], [], TIMEOUT)[0])
    except (OSError, ValueError):  # in memory
        return True


def _decode(decoder: codecs.IncrementalDecoder, piece: bytes | None, encoding: str | None) -> tuple[str, str]:
    """Return the text of a piece (None: the end of the file), and a message about invalid bytes after it."""
    problem = ""
    try:
        text = decoder.decode(piece or b"", final=piece is None)
    except UnicodeDecodeError as error:
        text = error.object[: error.start].decode(error.encoding)
        byte = f"byte 0x{error.object[error.start]:02x}"
        problem = f"{byte} is not {error.encoding}; {_advice(encoding, 'latin-1, perhaps')}"
    except ValueError:
        raise _unknown_encoding(encoding) from None
    if (at := text.find("\0")) >= 0:
        return text[:at], "zero byte: this is not a text file"
    return text, problem


def _check_known_format(path: Path, data: bytes, encoding: str | None) -> None:
    """Raise InputError for a known binary format, and for UTF-16 or UTF-32 if another encoding is expected."""
    if kind := next((name for opening, name in BINARY_FORMATS if re.match(opening, data, re.DOTALL)), None):
        raise InputError(f"{path}: this is {kind}")
    wide = detect_wide_encoding(data)
    if wide is not None and (encoding or "")[:6].lower() != wide[:6]:
        raise InputError(f"{path}: this is {wide} text; {_advice(encoding, wide)}")


def detect_wide_encoding(data: bytes) -> str | None:
    """Detect UTF-16 and UTF-32 by the byte-order mark or by zero bytes in mostly Latin text; None for others."""
    for mark, encoding in _BYTE_ORDER_MARKS:
        if data.startswith(mark):
            return encoding
    head = data[: min(HEAD, len(data) // 4 * 4)]
    zeros = "".join("0" if 2 * head[i::4].count(0) > len(head) // 4 else "x" for i in range(4))
    return {"x0x0": "utf-16-le", "0x0x": "utf-16-be", "x000": "utf-32-le", "000x": "utf-32-be"}.get(zeros)


def _advice(encoding: str | None, other: str) -> str:
    return "save it as UTF-8" if encoding is None else f"set encoding: {other}"


# -- blocks of lines ---------------------------------------------------------------------------------------


class Block(NamedTuple):
    """Whole lines of a file with whole sentences, documents or objects."""

    first: int  # number of the first line, from 1
    text: str

    @property
    def lines(self) -> list[str]:
        """The lines, without their ends."""
        return split_lines(self.text)

    def parts(self, ends: Ends) -> "list[Block]":
        """Return the block, cut wherever possible."""
        pieces, first, at = [], self.first, 0
        for end in chain(ends(self.text), [len(self.text)]):
            if end > at:
                pieces.append(Block(first, self.text[at:end]))
                first, at = first + self.text.count("\n", at, end), end
        return pieces


def blocks(pieces: Iterable[str], ends: Ends) -> Iterator[Block | None]:
    r"""Yield, for each piece, the complete lines up to the last position where they may be cut, and finally the rest.

    Lines end with \n: a file without \n is one block. "" in pieces becomes None.
    """
    first, pending, begun = 1, _PendingLines(), [""]  # complete lines, and the beginning of the next one
    for piece in pieces:
        if not piece:
            yield None
            continue
        lines, end, rest = piece.rpartition("\n")
        begun.append(lines + end)
        if not end:
            begun.append(rest)
            continue
        if complete := pending.add("".join(begun), ends):
            yield Block(first, complete)
            first += complete.count("\n")
        begun = [rest]
    if left := "".join([*pending.parts, *begun]):
        yield Block(first, left)


class _PendingLines:
    """Lines before the next position where they may be cut; only their last characters are searched again."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self._last = ""

    def add(self, lines: str, ends: Ends) -> str:
        """Add lines; remove and return those up to the last position where they may be cut."""
        at = max(ends(self._last + lines), default=-1) - len(self._last)
        if at < 0 or not (self.parts or at):
            at, complete = 0, ""
        else:
            complete, self.parts, self._last = "".join([*self.parts, lines[:at]]), [], ""
        if left := lines[at:]:
            self.parts.append(left)
            self._last = (self._last + left)[-CONTEXT:]
        return complete


def line_ends(text: str) -> Iterator[int]:
    """Yield the ends of all lines."""
    return (match.end() for match in re.finditer("\n", text))


def no_ends(text: str) -> Iterator[int]:
    """Yield nothing: the file is one block."""
    return iter(())
