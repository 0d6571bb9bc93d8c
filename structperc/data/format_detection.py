"""Detection of the format of a text file: CoNLL columns, JSON lines, CoNLL-U or running text."""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from itertools import chain, islice, pairwise
from pathlib import Path
from typing import NamedTuple

from structperc.data.json_data import looks_like_json
from structperc.data.read_options import DOCSTART, HEADER, InputFormat
from structperc.data.text_files import BYTE_ORDER_MARK, split_lines, stream_text
from structperc.errors import InputError
from structperc.spelling import is_blank

FORMAT_NAMES = {"text": "running text", "columns": "columns", "jsonl": "JSON lines"}
_JSON_LINES = 10  # lines inspected for JSON
_JOINED_LINES = 50  # lines inspected for words joined to their labels
_HEAD = 2**16  # characters of a file searched for the end of a sentence
_CONLLU = re.compile(r"\d+([-.]\d+)?(\t[^\t]*){9}$")
_WORD = re.compile(r"\w")
_JOINED = re.compile(r"(?s:.+)(###|[|/_])([^|/_]+)$")  # a word and its label
_JOINED_LABELS = 2  # on average at least so many words have the same label
_CLOSING, _TERMINATORS = "'\"”’»)", (".", "!", "?", "…")


def detect_format(lines: Sequence[str], needed: int, name: str) -> InputFormat:
    """Return the format of the lines of the file `name`; a token needs `needed` fields.

    With several needed fields the format is "columns" (or "jsonl"). Otherwise columns have -DOCSTART- lines, no more
    fields than needed, or the same number of fields in more than half of the lines, unless all lines are between empty
    ones or end like sentences. Other files are text if a line ends like a sentence. Raises InputError for CoNLL-U, and
    if the format is unclear.
    """
    nonblank = [line for _, line in nonblank_lines(lines)]
    if nonblank and (all(map(is_json, nonblank)) or looks_like_json(nonblank)):
        return "jsonl"
    _check_not_conllu(lines, name)
    if needed > 1:
        check_not_text(lines, needed, name)
        return "columns"
    widths = Counter(len(line.split()) for line in nonblank)
    marked = any(line.split()[0] == DOCSTART for line in nonblank)
    if marked or max(widths, default=0) <= needed:
        return "columns"
    ends = [*map(_ends_sentence, nonblank)]
    if not _between_blank_lines(lines) and not all(ends) and 2 * max(widths.values()) > len(nonblank):
        return "columns"
    if any(ends):
        return "text"
    raise InputError(f"{name}: cannot tell running text from columns; set --input text or --input columns")


def is_detectable(lines: Sequence[str], needed: int) -> bool:
    """Return True if these lines are enough for `detect_format`."""
    try:
        detect_format(lines, needed, "")
    except InputError:
        return False
    return True


def check_not_text(lines: Sequence[str], needed: int, name: str) -> None:
    """Raise InputError for lines of the file `name` that are probably not columns with `needed` fields.

    These are JSON objects and, with more than the needed fields, CoNLL-U and running text.
    """
    head = list(islice(nonblank_lines(lines), _JSON_LINES))
    if not head:
        return
    first, line = head[0]
    if all(is_json(line) for _, line in head) or looks_like_json([line for _, line in head]):
        advice = "rename the file to .jsonl to read it as a table, or write a token per line"
        raise InputError(f"{name}:{first}: this is JSON; {advice}")
    if len(line.split()) <= needed:
        return
    _check_not_conllu(lines, name)
    if looks_like_text(lines):
        advice = "write a token per line, and an empty line after a sentence; if these are columns, set --columns"
        raise InputError(f"{name}:{first}: this looks like running text; {advice}")


def _check_not_conllu(lines: Sequence[str], name: str) -> None:
    if is_conllu(lines):
        place = f"{name}:{next(nonblank_lines(lines))[0]}"
        raise InputError(f"{place}: this is CoNLL-U, not a column file; extract its words, column 2")


def check_not_joined(lines: Sequence[str], name: str) -> None:
    """Raise InputError for lines of sentences in which each word is joined to its label: "Anna|B-PER left|O"."""
    head = [line for _, line in islice(nonblank_lines(lines), _JOINED_LINES)]
    matches = [_JOINED.match(field) for line in head for field in line.split()]
    if len(matches) <= len(head) or not all(matches):
        return
    separators, labels = ({match[i] for match in matches if match} for i in (1, 2))
    if len(separators) == 1 and len(labels) * _JOINED_LABELS <= len(matches):
        joint = f"word{separators.pop()}label"
        advice = "write a word and its label per line, and an empty line after a sentence"
        raise InputError(f"{name}: this has a sentence per line as {joint} {joint} ...; {advice}")


def looks_like_text(lines: Sequence[str]) -> bool:
    """Return True if all non-blank lines are between blank ones, or all end like sentences."""
    return _between_blank_lines(lines) or all(_ends_sentence(line) for _, line in nonblank_lines(lines))


def is_conllu(lines: Sequence[str]) -> bool:
    """Return True if all non-blank lines are words or comments of CoNLL-U, with at least one word."""
    kinds = [bool(_CONLLU.match(line)) for _, line in nonblank_lines(lines) if not line.startswith("#")]
    return bool(kinds) and all(kinds)


def nonblank_lines(lines: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Yield the lines that are not blank, with their numbers from 1."""
    return ((number, line) for number, line in enumerate(lines, 1) if not is_blank(line))


def is_json(line: str) -> bool:
    """Return True if a line is a non-empty JSON object, or a list of such."""
    if line.lstrip()[:1] not in ("{", "["):
        return False
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return False
    objects = value if isinstance(value, list) else [value]
    return bool(objects) and all(isinstance(row, dict) and row for row in objects)


def _ends_sentence(line: str) -> bool:
    """Return True if a line has a word and ends with the end of a sentence, closing quotes and brackets included."""
    return line.rstrip().rstrip(_CLOSING).endswith(_TERMINATORS) and _WORD.search(line) is not None


def _between_blank_lines(lines: Sequence[str]) -> bool:
    return all(a + 1 < b for (a, _), (b, _) in pairwise(nonblank_lines(lines)))


# -- the beginning of a file -------------------------------------------------------------------------------


class FileHead(NamedTuple):
    """The beginning of a file, for detecting its format."""

    text: str  # without byte-order mark
    whole: bool  # True: this is the whole file
    pieces: Iterator[str]  # pieces of the whole file, including this beginning
    marked: bool = False  # True: the file has a byte-order mark

    @property
    def lines(self) -> list[str]:
        """The complete lines."""
        complete = self.text if self.whole else self.text[: self.text.rfind("\n") + 1] or self.text
        return split_lines(complete)


def read_head(pieces: Iterator[str], enough: Callable[[Sequence[str]], bool]) -> FileHead:
    """Read pieces of a file (see `stream_text`) until there is a complete sentence or JSON object, and `enough` lines.

    Later errors are raised when the later pieces are read.
    """
    text, marked, searched = "", False, 0
    for piece in pieces:
        marked = marked or (not text and piece.startswith(BYTE_ORDER_MARK))
        text += piece.removeprefix(BYTE_ORDER_MARK) if not text else piece
        if piece and (len(text) <= _HEAD or len(text) >= 2 * searched):  # a long text only when it has doubled
            searched = len(text)
            if _is_sufficient(text, enough):
                break
    try:
        following = list(islice(pieces, 1))
    except InputError as error:
        return FileHead(text, False, _text_and_error(text, error), marked)
    return FileHead(text, not following, chain([text], following, pieces), marked)


def first_lines(path: Path, encoding: str | None = None) -> list[str]:
    """Return the lines of a file up to the end of a sentence, or more. Raises InputError as `stream_text` does."""
    with closing(stream_text(path, encoding)) as pieces:
        return read_head(pieces, lambda lines: True).lines


def _text_and_error(text: str, error: InputError) -> Iterator[str]:
    yield text
    raise error


def _is_sufficient(text: str, enough: Callable[[Sequence[str]], bool]) -> bool:
    """Return True for a sentence followed by an empty line, a JSON object, or a long text without these."""
    if len(text) > _HEAD:
        return bool(_tokens(split_lines(text)))
    lines = split_lines(text)[:-1]
    tokens = _tokens(lines)
    if not tokens:
        return False
    number, line = tokens[0]
    return (is_json(line) or any(map(is_blank, lines[number:]))) and enough(lines)


def _tokens(lines: Sequence[str]) -> list[tuple[int, str]]:
    """Return the non-blank lines other than document and header lines, with their numbers."""
    numbered = ((number, line) for number, line in nonblank_lines(lines) if line.split()[:1] not in ([], [DOCSTART]))
    return [(number, line) for number, line in numbered if number > 1 or not line.startswith(HEADER)]
