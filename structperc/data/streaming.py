"""A stream of text as blocks of whole sentences, documents or lines."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple

from structperc.data.format_detection import is_json, nonblank_lines
from structperc.data.read_options import DOCSTART, HEADER
from structperc.data.text_files import BYTE_ORDER_MARK, split_lines, stream_text
from structperc.errors import InputError
from structperc.spelling import is_blank

Ends = Callable[[str], Iterable[int]]  # whole lines -> positions where they may be cut
LOOKED_AT = 2**16  # characters of a file searched for the end of a sentence
CONTEXT = 128  # characters before a line that decide whether it can be cut after it

_EMPTY_LINE = re.compile(r"^[ \t]*\r?\n", re.MULTILINE)
_DOCUMENT = re.compile(rf"^[ \t]*{re.escape(DOCSTART)}(?=[ \t\r\n])", re.MULTILINE)


class Block(NamedTuple):
    """Whole lines of a file that contain no part of a sentence, document or object only."""

    first: int  # number of the first line, from 1
    text: str

    @property
    def lines(self) -> list[str]:
        """The lines, without their ends."""
        return split_lines(self.text)

    def parts(self, ends: Ends) -> "list[Block]":
        """Return the block cut wherever possible."""
        found, first, at = [], self.first, 0
        for end in chain(ends(self.text), [len(self.text)]):
            if end > at:
                found.append(Block(first, self.text[at:end]))
                first, at = first + self.text.count("\n", at, end), end
        return found


class FileHead(NamedTuple):
    """The beginning of a file, as much as is needed to detect its format."""

    text: str
    whole: bool  # whether this is the whole file
    pieces: Iterator[str]  # of the whole file, this beginning included
    marked: bool = False  # whether there is a byte-order mark, which `text` leaves out

    @property
    def lines(self) -> list[str]:
        """The complete lines."""
        complete = self.text if self.whole else self.text[: self.text.rfind("\n") + 1] or self.text
        return split_lines(complete)


def read_head(pieces: Iterator[str], enough: Callable[[Sequence[str]], bool]) -> FileHead:
    """Read pieces of a file (see `stream_text`) until there is a complete sentence or JSON object, and `enough` lines.

    An error after that is raised when the later pieces are read.
    """
    text, marked = "", False
    for piece in pieces:
        marked = marked or (not text and piece.startswith(BYTE_ORDER_MARK))
        text += piece.removeprefix(BYTE_ORDER_MARK) if not text else piece
        if piece and _shows_something(text, enough):
            break
    try:
        following = list(islice(pieces, 1))
    except InputError as error:
        return FileHead(text, False, chain([text], _raise(error)), marked)
    return FileHead(text, not following, chain([text], following, pieces), marked)


def first_lines(path: Path, encoding: str | None = None) -> list[str]:
    """Return the lines of a file up to the end of a sentence or further. Raises InputError as `stream_text` does."""
    with closing(stream_text(path, encoding)) as pieces:
        return read_head(pieces, lambda lines: True).lines


def _raise(error: InputError) -> Iterator[str]:
    raise error
    yield


def blocks(pieces: Iterable[str], ends: Ends) -> Iterator[Block | None]:
    r"""Yield, for each piece, the complete lines up to the last position where they may be cut, and finally the rest.

    Lines end with \n: a file without any is one block. "" in pieces becomes None.
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
    """Lines before the next position where they may be cut; searched once, except for some of the last."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self._last = ""

    def add(self, lines: str, ends: Ends) -> str:
        """Add lines, and remove and return all up to the last position where they may be cut."""
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


def sentence_ends(text: str) -> Iterator[int]:
    """Yield the positions after empty lines, for column files."""
    return (match.end() for match in _EMPTY_LINE.finditer(text))


def document_ends(text: str) -> Iterator[int]:
    """Yield the positions before -DOCSTART- lines, for column files."""
    return (match.start() for match in _DOCUMENT.finditer(text))


def nowhere(text: str) -> Iterator[int]:
    """Yield nothing, for files that are needed as a whole."""
    return iter(())


def _shows_something(text: str, enough: Callable[[Sequence[str]], bool]) -> bool:
    """Whether there is a sentence followed by an empty line, a JSON object, or a lot of text without these."""
    if len(text) > LOOKED_AT:
        return bool(_tokens(split_lines(text)))
    lines = split_lines(text)[:-1]
    tokens = _tokens(lines)
    if not tokens:
        return False
    number, line = tokens[0]
    return (is_json(line) or any(map(is_blank, lines[number:]))) and enough(lines)


def _tokens(lines: Sequence[str]) -> list[tuple[int, str]]:
    """Return the non-blank lines other than document and header lines, with their numbers."""
    found = ((number, line) for number, line in nonblank_lines(lines) if line.split()[:1] not in ([], [DOCSTART]))
    return [(number, line) for number, line in found if number > 1 or not line.startswith(HEADER)]
