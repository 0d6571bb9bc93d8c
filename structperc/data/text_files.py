"""Files that are no text in the encoding asked for: which format they have, by marks that no other format has.

A text file in pieces, as it arrives: from files and pipes, packed by gzip or not, in memory that does not grow.

Text files as they stand or as lines, with errors that say which file, which line and what to change.
"""

import codecs
import gzip
import os
import re
import select
import sys
import zlib
from collections.abc import Generator, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from itertools import chain
from pathlib import Path
from typing import BinaryIO

from structperc.errors import InputError

HEAD = 4096  # bytes looked at

BINARY_FORMATS = (  # first bytes, what they open
    (rb"BZh\d1AY&SY", "a bzip2 file; unpack it first"),
    (rb"\xfd7zXZ\0", "an xz file; unpack it first"),
    (rb"\x28\xb5\x2f\xfd", "a zstd file; unpack it first"),
    (rb"PK[\x03\x05]", "a zip archive; unpack it first"),  # new Office documents, .npz and .pt files, too
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
WIDE = (  # first bytes of texts with two or four bytes for each character
    (b"\xff\xfe\0\0", "utf-32"),
    (b"\0\0\xfe\xff", "utf-32"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
)


def detect_binary_format(data: bytes) -> str | None:
    """Return what a file is that opens with these bytes, and what to do about it; None for an unknown format.

    This is to be asked about files that cannot be text: a text may open with any of these letters.
    """
    found = (name for opening, name in BINARY_FORMATS if re.match(opening, data[:HEAD], re.DOTALL))
    return next(found, None)


def detect_wide_encoding(data: bytes) -> str | None:
    """Return utf-16 or utf-32, by the mark at the beginning or, in mostly Latin texts, by the zeros between.

    Or None.
    """
    for mark, encoding in WIDE:
        if data.startswith(mark):
            return encoding
    head = data[: min(HEAD, len(data) // 4 * 4)]
    zeros = "".join("0" if 2 * head[i::4].count(0) > len(head) // 4 else "x" for i in range(4))
    return {"x0x0": "utf-16-le", "0x0x": "utf-16-be", "x000": "utf-32-le", "000x": "utf-32-be"}.get(zeros)


PIECE = 2**17  # bytes: enough sentences at a time for speed, few enough for memory
PATIENCE = 0.05  # seconds that a pipe may take before it counts as one that has no more for now
BYTE_ORDER_MARK = "\ufeff"  # of the order of bytes, before the first character of a text
_GZIP = b"\x1f\x8b"
_PACKED = zlib.MAX_WBITS | 16  # a stream of gzip
_CONTROL = re.compile(r"[\x01-\x08\x0e-\x1f]")  # in no text that is written for people


def arriving(
    path: Path, encoding: str | None = None, size: int = PIECE, keep_mark: bool = False
) -> Generator[str, None, None]:
    """Yield the text of a file in pieces of at most `size` bytes, and "" before what has to be waited for.

    "-" is standard input. Line ends stay as they are; a byte-order mark is dropped (unless `keep_mark`), gzip is
    unpacked. Without an encoding the file must be UTF-8; messages advise to set one only where one was given.

    Raises InputError for a path that cannot be read, with file:line for bytes that are not in the encoding, after the
    text before them, and for files that are no text but something known, such as archives.
    """
    _check(encoding)
    with _opened(path) as file:
        yield from _texts(path, _unpacked(path, _read(path, file, size), size), encoding, keep_mark)


def _check(encoding: str | None) -> None:
    try:
        bytes(4).decode("utf-8" if encoding is None else encoding)
    except (LookupError, ValueError):  # unknown, or no encoding of texts
        raise _unknown(encoding) from None


def _unknown(encoding: str | None) -> InputError:
    return InputError(f"unknown encoding {encoding!r}; set encoding: utf-8, latin-1, ...")


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    if str(path) == "-" and sys.stdin is None:
        raise InputError("standard input is closed; name a file")
    with _errors(path):
        opened: AbstractContextManager[BinaryIO]
        opened = nullcontext(sys.stdin.buffer) if str(path) == "-" else path.open("rb")
    with opened as file:
        yield file


@contextmanager
def _errors(path: Path) -> Iterator[None]:
    """Turn what goes wrong where a file is opened or read into InputErrors."""
    try:
        yield
    except OSError as error:
        place = "" if path.is_absolute() else f"; relative paths start in {Path.cwd()}"
        raise InputError(f"{path}: cannot read this file ({error.strerror}){place}") from None
    except ValueError as error:
        raise InputError(f"{str(path)!r} is no name of a file ({error})") from None


def _read(path: Path, file: BinaryIO, size: int) -> Iterator[bytes]:
    """What is there at once, and b"" before what is not."""
    while True:
        if _is_to_come(file):
            yield b""
        with _errors(path):
            data = file.read1(size)  # type: ignore[attr-defined]
        if not data:
            return
        yield data


def _is_to_come(file: BinaryIO) -> bool:
    """Whether reading would wait; False where the system does not say, as of what lies in memory."""
    if sys.platform == "win32":
        return False
    try:
        return not select.select([file], [], [], PATIENCE)[0]
    except (OSError, ValueError):
        return False


def _unpacked(path: Path, data: Iterator[bytes], size: int) -> Iterator[bytes]:
    """The same, gzip unpacked."""
    first = b""
    for piece in data:
        first += piece
        if len(first) >= len(_GZIP):
            break
        if not piece:
            yield b""
    if not first.startswith(_GZIP):
        yield from chain([first] if first else [], data)
        return
    try:
        yield from _members(chain([first], data), size)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path}: this gzip file is damaged ({error}); pack it anew") from None


def _members(data: Iterator[bytes], size: int) -> Iterator[bytes]:
    """The content of files of gzip that follow each other; zeros may pad the last one."""
    member = zlib.decompressobj(_PACKED)
    begun = True  # whether a member is not at its end
    for piece in data:
        left = piece
        if not piece:
            yield b""
        while left:
            if not begun:
                left = left.lstrip(b"\0")
                member, begun = zlib.decompressobj(_PACKED), bool(left)
                if left and not _GZIP.startswith(left[:2]):
                    raise gzip.BadGzipFile(f"Not a gzipped file ({left[:2]!r})")
            if unpacked := member.decompress(left, size):
                yield unpacked
            left = member.unused_data if member.eof else member.unconsumed_tail
            begun = begun and not member.eof
    if begun:
        raise EOFError("Compressed file ended before the end-of-stream marker was reached")


def _texts(path: Path, data: Iterator[bytes], encoding: str | None, keep_mark: bool) -> Iterator[str]:
    """The same as text, perhaps without a byte-order mark."""
    decoder = codecs.getincrementaldecoder("utf-8" if encoding is None else encoding)()
    head, lines, begun = b"", _Lines(), False
    for piece in chain(data, [None]):
        if piece == b"":
            yield ""
            continue
        if not head:
            _check_width(path, piece or b"", encoding)
        head += (piece or b"")[: HEAD - len(head)]
        text, wrong = _decoded(decoder, piece, encoding)
        if wrong or (not begun and _CONTROL.search(text[:HEAD])):
            _refuse_known(path, head, encoding)
        lines.add(text)
        if text:
            yield text if begun or keep_mark else text.removeprefix(BYTE_ORDER_MARK)
            begun = True
        if wrong:
            next(data, None)  # a damaged packed file unpacks to no text before it is seen to be damaged
            raise InputError(f"{path}:{lines.number}: {wrong}")


def _decoded(decoder: codecs.IncrementalDecoder, piece: bytes | None, encoding: str | None) -> tuple[str, str]:
    """The text of a piece, None being the end, and what is wrong after it; "" for nothing."""
    wrong = ""
    try:
        text = decoder.decode(piece or b"", final=piece is None)
    except UnicodeDecodeError as error:
        text = error.object[: error.start].decode(error.encoding)
        wrong = (
            f"byte 0x{error.object[error.start]:02x} is not {error.encoding}; {_advice(encoding, 'latin-1, perhaps')}"
        )
    except ValueError:
        raise _unknown(encoding) from None
    if (at := text.find("\0")) >= 0:
        return text[:at], "a zero byte: this is no text file"
    return text, wrong


def _check_width(path: Path, data: bytes, encoding: str | None) -> None:
    """Raise InputError for text with one byte for each character where two or four are asked for."""
    if encoding is not None and encoding.lower().startswith(("utf-16", "utf-32")) and b"\n" in data and 0 not in data:
        raise InputError(f"{path}: this is no {encoding} text; set encoding: utf-8, latin-1, ...")


def _refuse_known(path: Path, data: bytes, encoding: str | None) -> None:
    """Raise InputError for what is known and no text, or a text in another encoding that shows."""
    if found := detect_binary_format(data):
        raise InputError(f"{path}: this is {found}")
    wide = detect_wide_encoding(data)
    if wide is not None and (encoding or "")[:6].lower() != wide[:6]:
        raise InputError(f"{path}: this is {wide} text; {_advice(encoding, wide)}")


def _advice(encoding: str | None, other: str) -> str:
    return "save it as UTF-8" if encoding is None else f"set encoding: {other}"


class _Lines:
    r"""Counts the lines of a text, which \n ends, or \r where there is no \n."""

    def __init__(self) -> None:
        self._feeds, self._returns = 0, 0

    def add(self, text: str) -> None:
        self._feeds += text.count("\n")
        self._returns += text.count("\r")

    @property
    def number(self) -> int:
        """The line after all that was added."""
        return (self._feeds or self._returns) + 1


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
    r"""Return the lines of a file, ended by \n or \r\n, or all of them by \r; see `read_text` for everything else."""
    return split_lines(read_text(path, encoding))


def split_lines(text: str) -> list[str]:
    r"""Return the lines of a text, ended by \n or \r\n, or all of them by \r."""
    text = text.replace("\r\n", "\n")
    return text.split(_line_end(text))


def read_text(path: str | Path, encoding: str | None = None) -> str:
    """Return the text of a file, its line ends as they are; a byte-order mark is dropped, gzip is unpacked.

    The path goes through `expand`; "-" is standard input. Without an encoding the file must be UTF-8; messages advise
    to set one only where one was given.

    Raises InputError for a path that cannot be read (nothing else is tried), with file:line for bytes that are not in
    the encoding, and for files that are no text but something known, such as archives.
    """
    return "".join(arriving(expand(path), encoding))


def _line_end(text: str) -> str:
    return "\r" if "\r" in text and "\n" not in text else "\n"
