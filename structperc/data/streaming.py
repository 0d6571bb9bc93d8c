"""A text that arrives in pieces as blocks of whole sentences, documents or lines."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from structperc.data.format_detection import is_json, nonblank_lines
from structperc.data.read_options import DOCSTART, HEADER
from structperc.data.text_files import BYTE_ORDER_MARK, arriving, split_lines
from structperc.errors import InputError
from structperc.spelling import is_blank

Ends = Callable[[str], Iterable[int]]  # of whole lines -> the places where they may be cut
LOOKED_AT = 2**16  # characters of an opening that shows no end of a sentence
CONTEXT = 128  # characters before a line that may decide whether it can be cut after it

_EMPTY_LINE = re.compile(r"^[ \t]*\r?\n", re.MULTILINE)
_DOCUMENT = re.compile(rf"^[ \t]*{re.escape(DOCSTART)}(?=[ \t\r\n])", re.MULTILINE)


class Block(NamedTuple):
    """Whole lines of a file, in which no sentence (document, object) begins that ends elsewhere."""

    first: int  # number of the first line, from 1
    text: str

    @property
    def lines(self) -> list[str]:
        """The lines, without their ends."""
        return split_lines(self.text)

    def parts(self, ends: Ends) -> "list[Block]":
        """Return the block cut wherever it can be."""
        found, first, at = [], self.first, 0
        for end in chain(ends(self.text), [len(self.text)]):
            if end > at:
                found.append(Block(first, self.text[at:end]))
                first, at = first + self.text.count("\n", at, end), end
        return found


class FileHead(NamedTuple):
    """The beginning of a file, as far as it is needed to tell what the file is."""

    text: str
    whole: bool  # whether this is all of the file
    pieces: Iterator[str]  # of all of the file, that beginning included
    marked: bool = False  # whether a byte-order mark, which is left out, stands before it

    @property
    def lines(self) -> list[str]:
        """The lines that are complete."""
        complete = self.text if self.whole else self.text[: self.text.rfind("\n") + 1] or self.text
        return split_lines(complete)


def opening(pieces: Iterator[str], enough: Callable[[Sequence[str]], bool]) -> FileHead:
    """Return the beginning of a file that arrives in pieces ("" before one that has to be waited for).

    It shows at least one complete sentence, or an object of JSON, in lines that are `enough`, unless that takes more
    than most. A mistake after it is raised where the pieces are taken.
    """
    text, marked = "", False
    for piece in pieces:
        marked = marked or (not text and piece.startswith(BYTE_ORDER_MARK))
        text += piece.removeprefix(BYTE_ORDER_MARK) if not text else piece
        if piece and _shows_something(text, enough):
            break
    following = _next(pieces)
    if following is None:
        return FileHead(text, True, iter([text]), marked)
    return FileHead(text, False, chain([text], following, pieces), marked)


def first_lines(path: Path, encoding: str | None = None) -> list[str]:
    """Return the first lines of a file, up to the end of a sentence or beyond. Raises InputError as `arriving` does."""
    with closing(arriving(path, encoding)) as pieces:
        return opening(pieces, lambda lines: True).lines


def _next(pieces: Iterator[str]) -> Iterator[str] | None:
    """The next piece, or what is wrong with it; None where there is none."""
    try:
        piece = next(pieces, None)
    except InputError as error:
        return _raised(error)
    return None if piece is None else iter([piece])


def _raised(error: InputError) -> Iterator[str]:
    raise error
    yield


def blocks(pieces: Iterable[str], ends: Ends) -> Iterator[Block | None]:
    r"""Yield, for each piece, the lines that are complete up to the last place where they may be cut; the rest last.

    Lines end with \n: a file without any is one block. None stands before what has to be waited for, as "" in pieces.
    """
    first, held, begun = 1, _Held(), [""]  # lines that await a place to cut, and the beginning of a line
    for piece in pieces:
        if not piece:
            yield None
            continue
        lines, end, rest = piece.rpartition("\n")
        begun.append(lines + end)
        if not end:
            begun.append(rest)
            continue
        if complete := held.add("".join(begun), ends):
            yield Block(first, complete)
            first += complete.count("\n")
        begun = [rest]
    if left := "".join([*held.parts, *begun]):
        yield Block(first, left)


class _Held:
    """Lines that await a place where they may be cut; each is looked at once, but for some of the last."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self._last = ""

    def add(self, lines: str, ends: Ends) -> str:
        """Return all lines up to the last place where they may be cut, which are then no longer held."""
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
    """Yield the places after empty lines, for columns."""
    return (match.end() for match in _EMPTY_LINE.finditer(text))


def document_ends(text: str) -> Iterator[int]:
    """Yield the places before -DOCSTART- lines, for columns."""
    return (match.start() for match in _DOCUMENT.finditer(text))


def nowhere(text: str) -> Iterator[int]:
    """Yield nothing: the text is needed as a whole."""
    return iter(())


def _shows_something(text: str, enough: Callable[[Sequence[str]], bool]) -> bool:
    """Whether there is a sentence with an empty line after it, an object on a line, or very much without these."""
    if len(text) > LOOKED_AT:
        return bool(_tokens(split_lines(text)))
    lines = split_lines(text)[:-1]
    tokens = _tokens(lines)
    if not tokens:
        return False
    number, line = tokens[0]
    return (is_json(line) or any(map(is_blank, lines[number:]))) and enough(lines)


def _tokens(lines: Sequence[str]) -> list[tuple[int, str]]:
    """The lines that hold something, open no document and name no columns, with their numbers."""
    found = ((number, line) for number, line in nonblank_lines(lines) if line.split()[:1] not in ([], [DOCSTART]))
    return [(number, line) for number, line in found if number > 1 or not line.startswith(HEADER)]
