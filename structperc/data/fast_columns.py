"""Column files whose lines are all alike, read by `pyarrow.csv` piece by piece, in memory that grows by numbers alone.

What is not so plain is left to the strict reader, `conll.py`, which says what is wrong with it and on which line: files
in another encoding or packed ones, names of columns in the first line, comments, invisible characters on a line of
their own, tabs beside spaces, more than one separator between fields or any at the ends of lines, carriage returns,
lines of several lengths. Where this reader gives a corpus, it is that of the strict one.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

import numpy as np

from structperc.data.conll import BYTE_ORDER_MARK, is_header
from structperc.data.corpus import Column, Corpus
from structperc.data.read_options import LineFormat
from structperc.data.text_files import HEAD
from structperc.process_pool import Workers
from structperc.progress import bar
from structperc.spelling import is_blank

if TYPE_CHECKING:
    import pyarrow as pa

SIZE = 2**23  # bytes read at a time
WORTH = 4  # so many times that take longer to read than a worker takes to start
LONGEST = 2**27  # bytes of a sentence
_NO_TEXT = re.compile(rb"[\x00-\x08\x0e-\x1f]")
_MARK = BYTE_ORDER_MARK.encode()
RESERVED = {"document", "sentence", "line"}  # no roles
NEW_LINE = ord("\n")


class _Uneven(Exception):  # noqa: N818 - a finding, not a mistake
    """A file is not as plain as this reader needs it."""


def read_columns_fast(
    path: Path,
    columns: Sequence[str],
    how: LineFormat,
    unit: str,
    progress: bool = True,
    workers: Workers = Workers(),  # noqa: B008  # immutable
) -> Corpus | None:
    """Return a UTF-8 file of columns as a corpus, or None for one that only the strict reader understands.

    The corpus, its line numbers included, is that of the rows that `read_conll` gives with the same arguments. Workers
    read a part of a large file each.
    """
    roles = {role: i for i, role in enumerate(columns) if role is not None and role != "_"}
    named = [role for role in columns if role is not None and role != "_"]
    if "word" not in roles or len(roles) < len(named) or RESERVED & roles.keys():
        return None
    plain = _Plain(list(roles.values()), len(columns), how)
    read = _Reader(len(roles))
    try:
        if _has_header(path):
            return None
        size = path.stat().st_size
        workers = workers.at_most(size // (WORTH * SIZE))
        with (
            path.open("rb") as file,
            closing(workers.each(partial(partial, _read_part, plain), _parts(file))) as each,
            bar(None, str(path), size, progress, unit_scale=True) as shown,
        ):
            for part in each:
                read.add(part)
                shown.update(part.size)
    except (_Uneven, OSError):
        return None
    return read.corpus(list(roles), unit, str(path)) if any(map(len, read.lines)) else None


class _Plain(NamedTuple):
    """What all lines of a file are."""

    places: list[int]  # of the columns that are wanted
    least: int  # fields
    how: LineFormat


class _Part(NamedTuple):
    """What some whole sentences of a file hold."""

    size: int  # bytes
    lines: int
    width: int  # fields of each line; 0: there are none
    text: bool  # whether it could be the beginning of a file of text
    tokens: np.ndarray  # lines of tokens, from 1
    opening: np.ndarray  # lines that open documents
    columns: list[tuple[list[str], np.ndarray]]  # distinct strings and, of each token, which of them it is


class _Reader:
    """Puts the parts of a file together."""

    def __init__(self, columns: int) -> None:
        self.known: list[dict[str, int]] = [{} for _ in range(columns)]
        self.numbers: list[list[np.ndarray]] = [[] for _ in range(columns)]
        self.lines: list[np.ndarray] = []  # from 1
        self.opening: list[np.ndarray] = []
        self.width = self.read = 0  # fields of a line, lines so far

    def add(self, part: _Part) -> None:
        """Take the next part. Raises _Uneven for one that does not go with those before."""
        if part.width:
            if (self.width and part.width != self.width) or not (self.width or part.text):
                raise _Uneven
            self.width = part.width
            self.opening.append(part.opening + self.read)
            self.lines.append(part.tokens + self.read)
            for known, numbers, (distinct, own) in zip(self.known, self.numbers, part.columns, strict=True):
                renumbered = [known.setdefault(string, len(known)) for string in distinct]
                numbers.append(np.array(renumbered, np.int32)[own])
        self.read += part.lines

    def corpus(self, roles: Sequence[str], unit: str, name: str) -> Corpus:
        """Return what was read."""
        lines, opening = np.concatenate(self.lines), np.concatenate(self.opening)
        first = np.flatnonzero(np.diff(lines, prepend=-1) > 1)  # the line before is empty or opens a document
        before = np.searchsorted(opening, lines[first])  # documents opened before each sentence
        documents = np.cumsum(np.diff(before, prepend=before[:1]) > 0) if len(opening) else np.arange(len(first))
        columns: dict[str, Column] = {}
        for role in roles:  # a column after the other, each of which is there twice for a moment
            columns[role] = Column.numbered(list(self.known.pop(0)), np.concatenate(self.numbers.pop(0)))
        return Corpus.from_columns(columns, [*first, len(lines)], documents, unit, name, lines)


def _read_part(plain: _Plain, part: bytes) -> _Part:
    """Read some whole sentences. Raises _Uneven for anything that is not plain."""
    ends = np.flatnonzero(np.frombuffer(part, np.uint8) == NEW_LINE)
    filled = np.flatnonzero(np.diff(ends, prepend=-1) > 1) + 1
    text = not _NO_TEXT.search(part[:HEAD])
    if not len(filled):
        return _Part(len(part), len(ends), 0, text, filled, filled, [])
    gap = b"\t" if b"\t" in part or plain.how.separator == "tab" else b" "
    width = _width(part, gap, plain)
    table = _table(part, gap.decode(), width, sorted({0, *plain.places}))
    if table.num_rows != len(filled):
        raise _Uneven
    first = table.column("0").chunk(0)
    words = first.dictionary.to_pylist()
    if any(map(is_blank, words)):
        raise _Uneven
    (opens,) = np.nonzero(np.array(words, object) == plain.how.docstart)
    token = ~np.isin(first.indices.to_numpy(), opens)
    coded = [table.column(str(place)).chunk(0) for place in plain.places]
    columns = [(column.dictionary.to_pylist(), column.indices.to_numpy()[token]) for column in coded]
    return _Part(len(part), len(ends), width, text, filled[token], filled[~token], columns)


def _width(part: bytes, gap: bytes, plain: _Plain) -> int:
    """The number of fields of the first line."""
    around = gap * 2, gap + b"\n", b"\n" + gap
    if any(one in part for one in around) or part.startswith((gap, b" ")) or b"\r" in part or b"\0" in part:
        raise _Uneven
    edges = b"\t ", b" \t", b"\n ", b" \n"  # of fields between tabs
    if gap == b"\t" and any(one in part for one in (edges if plain.how.separator == "tab" else (b" ",))):
        raise _Uneven
    if _MARK in part or (plain.how.comments and (b"\n#" in part or part.startswith(b"#"))):
        raise _Uneven
    width = part.lstrip(b"\n").partition(b"\n")[0].count(gap) + 1
    if width < plain.least:
        raise _Uneven
    return width


def _table(part: bytes, gap: str, width: int, used: Sequence[int]) -> "pa.Table":
    import pyarrow as pa
    from pyarrow import csv

    names = list(map(str, range(width)))
    try:
        return csv.read_csv(
            pa.BufferReader(part),
            csv.ReadOptions(column_names=names, block_size=len(part) + 1),
            csv.ParseOptions(delimiter=gap, quote_char=False, escape_char=False, ignore_empty_lines=True),
            csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.dictionary(pa.int32(), pa.string())),
                include_columns=list(map(str, used)),
                strings_can_be_null=False,
            ),
        )
    except pa.ArrowInvalid:  # lines of several lengths, bytes that are no UTF-8
        raise _Uneven from None


def _has_header(path: Path) -> bool:
    """Whether the first line that is not empty may be one of names of columns."""
    with path.open("rb") as file:
        lines = file.read(HEAD).decode("utf-8", "replace").split("\n")
    return is_header(next((line.split() for line in lines if line.strip()), []))


def _parts(file: BinaryIO) -> Iterator[bytes]:
    """Yield a file in parts that end after empty lines; the last one ends with a line."""
    held = b""
    while block := file.read(SIZE):
        held += block
        if (end := held.rfind(b"\n\n") + 2) > 1:
            yield held[:end]
            held = held[end:]
        if len(held) > LONGEST:
            raise _Uneven
    if held:
        yield held if held.endswith(b"\n") else held + b"\n"
