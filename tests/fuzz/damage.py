"""What happens to files of any kind: cut, flipped, packed, in another encoding, not there, another one's."""

import gzip
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from typing import NamedTuple


class Attempt(NamedTuple):
    """A command on inputs of which one was changed."""

    mutation: str  # the same words for the same kind of change; `legal.py` knows those that must be accepted
    arguments: list[str]
    written: tuple[str, ...] = ()  # files that the command is told to write


Kind = Callable[[Random, Path], Attempt]  # changes something in a folder of right inputs
Change = Callable[[Random, bytes], bytes]  # of a file


def truncated(draw: Random, data: bytes) -> bytes:
    return data[: int(draw.random() * len(data))]


def bit_flipped(draw: Random, data: bytes) -> bytes:
    at = int(draw.random() * len(data))
    return data[:at] + bytes([data[at] ^ 1 << draw.randrange(8)]) + data[at + 1 :]


def bytes_replaced(draw: Random, data: bytes) -> bytes:
    at = int(draw.random() * len(data))
    return data[:at] + draw.randbytes(draw.randint(1, 8)) + data[at + 8 :]


def bytes_dropped(draw: Random, data: bytes) -> bytes:
    at = int(draw.random() * len(data))
    return data[:at] + data[at + draw.randint(1, 8) :]


def part_twice(draw: Random, data: bytes) -> bytes:
    a, b = sorted(int(draw.random() * len(data)) for _ in range(2))
    return data[:b] + data[a:]


def nul(draw: Random, data: bytes) -> bytes:
    at = int(draw.random() * len(data))
    return data[:at] + b"\0" + data[at:]


def no_utf8(draw: Random, data: bytes) -> bytes:
    at = int(draw.random() * len(data))
    return data[:at] + draw.choice([b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xfe\xff"]) + data[at:]


CHANGES: dict[str, Change] = {
    "truncated": truncated,
    "bit flipped": bit_flipped,
    "bytes replaced": bytes_replaced,
    "bytes dropped": bytes_dropped,
    "part twice": part_twice,
    "NUL put in": nul,
    "bytes that are no UTF-8": no_utf8,
    "empty": lambda draw, data: b"",
    "white space alone": lambda draw, data: b" \n\t\n\n  \n",
    "random bytes": lambda draw, data: draw.randbytes(draw.randint(1, 3000)),
    "gzip": lambda draw, data: gzip.compress(data, mtime=0),
    "parquet": lambda draw, data: b"PAR1" + draw.randbytes(200) + b"PAR1",
    "zip": lambda draw, data: b"PK\x03\x04" + draw.randbytes(200),
    "a web page": lambda draw, data: b"<!DOCTYPE html>\n<html><body>404: Not Found</body></html>\n",
    "JSON": lambda draw, data: b'{"word": ["Anna", "met"], "label": ["B-PER", "O"]}\n',
    "plain text": lambda draw, data: b"Angela Merkel visited Stromberg .\nThen she left for Rome and Paris .\n",
    "one long line": lambda draw, data: b"x" * 300_000,
    "brackets nested": lambda draw, data: b"[" * 5000,
}
TEXT_CHANGES: dict[str, Change] = {
    "byte-order mark": lambda draw, data: b"\xef\xbb\xbf" + data,
    "CRLF": lambda draw, data: data.replace(b"\n", b"\r\n"),
    "CR alone": lambda draw, data: data.replace(b"\n", b"\r"),
    "one CR": lambda draw, data: data.replace(b"\n", b"\r\n", 1),
    "UTF-16": lambda draw, data: data.decode().encode("utf-16"),
    "UTF-16 without mark": lambda draw, data: data.decode().encode("utf-16-le"),
    "UTF-32": lambda draw, data: data.decode().encode("utf-32"),
    "latin-1": lambda draw, data: data.replace(b"Anna", b"An\xf1a"),
    "no last line end": lambda draw, data: data.rstrip(b"\n"),
    "empty lines after": lambda draw, data: data + b"\n" * draw.randint(1, 20),
    "line separators of Unicode": lambda draw, data: data.replace(b"\n", b"\xe2\x80\xa8"),
    "twice": lambda draw, data: data + data,
    "form feed": lambda draw, data: data.replace(b"\n", b"\n\x0c", 2),
}


def missing(draw: Random, path: Path) -> None:
    path.unlink()


def folder(draw: Random, path: Path) -> None:
    path.unlink()
    path.mkdir()


def dangling(draw: Random, path: Path) -> None:
    path.unlink()
    path.symlink_to("nowhere")


def loop(draw: Random, path: Path) -> None:
    path.unlink()
    path.symlink_to(path.name)


def device(draw: Random, path: Path) -> None:
    path.unlink()
    path.symlink_to("/dev/null")


def another(draw: Random, path: Path) -> None:
    top = Path.cwd()
    others = sorted(other for other in top.rglob("*") if other.is_file() and other.suffix != ".py")
    data = draw.choice([other for other in others if other.read_bytes() != path.read_bytes()]).read_bytes()
    path.unlink()
    path.write_bytes(data)


def linked(draw: Random, path: Path) -> None:
    shutil.copy(path, "moved")
    path.unlink()
    os.symlink(Path("moved").absolute(), path)


PLACES: dict[str, Callable[[Random, Path], None]] = {
    "missing": missing,
    "a folder in its place": folder,
    "a link to nothing": dangling,
    "a link to itself": loop,
    "a link to /dev/null": device,
    "another file in its place": another,
    "a link to it": linked,
}


def change(draw: Random, path: Path, *known: Mapping[str, Change]) -> str:
    """Do one of the known changes to a file, one that does change it; -> its name."""
    table = {name: change for changes in known for name, change in changes.items()}
    data = made = path.read_bytes()
    while made == data:
        name = draw.choice(list(table))
        made = table[name](draw, data)
    path.unlink()  # it may be a hard link
    path.write_bytes(made)
    return name


def damage(draw: Random, path: Path, *known: Mapping[str, Change]) -> str:
    """Change a file, or put something else in its place; -> what was done."""
    if draw.random() < 0.15:
        name = draw.choice(list(PLACES))
        PLACES[name](draw, path)
        return name
    return change(draw, path, *known)
