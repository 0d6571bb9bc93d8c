"""Text files that are no column files although they could be read as such: JSON lines, running text.

What a file of unlabelled text is: columns, JSON lines or running text; what could be two of these is refused.
"""

import json
import logging
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice, pairwise
from typing import Literal, get_args

from structperc.data.json_data import looks_like_json
from structperc.data.read_options import DOCSTART
from structperc.errors import InputError
from structperc.spelling import is_blank

_LOOKED_AT = 10  # lines, for JSON
_CONLLU = re.compile(r"\d+([-.]\d+)?(\t[^\t]*){9}$")
_ENDS_SENTENCE = re.compile(r"\w.*[.!?…]['\"”’»)]*\s*$")


def check_not_text(lines: Sequence[str], needed: int, name: str) -> None:
    """Raise InputError for lines of the file `name` that are probably no columns; for files whose columns nobody names.

    Refused are JSON objects and, where lines have more than the `needed` fields, what running text has in common with
    few column files: lines that stand alone, between empty ones, and lines of which all end as sentences do. So are
    lines of CoNLL-U, whose first column holds numbers, not words.
    """
    head = list(islice(nonblank_lines(lines), _LOOKED_AT))
    if not head:
        return
    first, line = head[0]
    if all(is_json(line) for _, line in head) or looks_like_json([line for _, line in head]):
        raise InputError(
            f"{name}:{first}: this is JSON; call the file .jsonl to have it read as a table, or write a token per line"
        )
    if len(line.split()) <= needed:
        return
    refuse_conllu(lines, name)
    if looks_like_text(lines):
        advice = "write a token per line, and an empty line after a sentence; if these are columns, set --columns"
        raise InputError(f"{name}:{first}: this looks like running text; {advice}")


def looks_like_text(lines: Sequence[str]) -> bool:
    """Return whether all lines stand alone, between empty ones, or all end as sentences do."""
    alone = all(a + 1 < b for (a, _), (b, _) in pairwise(nonblank_lines(lines)))
    return alone or all(ends_sentence(line) for _, line in nonblank_lines(lines))


def is_conllu(lines: Sequence[str]) -> bool:
    """Return whether all lines that hold something are words of CoNLL-U or comments, and not all comments."""
    kinds = [bool(_CONLLU.match(line)) for _, line in nonblank_lines(lines) if not line.startswith("#")]
    return bool(kinds) and all(kinds)


def refuse_conllu(lines: Sequence[str], name: str) -> None:
    """Raise InputError for lines that are CoNLL-U, see `is_conllu`."""
    if is_conllu(lines):
        place = f"{name}:{next(nonblank_lines(lines))[0]}"
        raise InputError(f"{place}: this is CoNLL-U, not a file of columns; give its words, column 2, one a line")


def ends_sentence(line: str) -> bool:
    """Return whether a line ends as a sentence does."""
    return _ENDS_SENTENCE.search(line) is not None


def nonblank_lines(lines: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Yield the lines that hold something, with their numbers from 1."""
    return ((number, line) for number, line in enumerate(lines, 1) if not is_blank(line))


def is_json(line: str) -> bool:
    """Return whether a line is an object that holds something, or a list of such."""
    if line.lstrip()[:1] not in ("{", "["):
        return False
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return False
    objects = found if isinstance(found, list) else [found]
    return bool(objects) and all(isinstance(one, dict) and one for one in objects)


InputFormat = Literal["text", "columns", "jsonl"]
INPUT_FORMATS = get_args(InputFormat)
NAMES = {"text": "running text", "columns": "columns", "jsonl": "JSON lines"}

logger = logging.getLogger("pytorch_lightning.structperc")


def detect_format(lines: Sequence[str], needed: int, name: str) -> InputFormat:
    """Return the form of the lines of the file `name`, in which columns would need so many fields.

    A model that needs several columns reads columns alone. JSON lines begin as an object does. Columns have -DOCSTART-
    lines, no more fields than are needed, or the same number of fields in more than half of the lines, unless these
    stand alone, between empty lines, or all end as sentences do. Everything else is running text if a line ends as a
    sentence does. Raises InputError for CoNLL-U, and for what could be text and columns.
    """
    found = [line for _, line in nonblank_lines(lines)]
    if found and (all(map(is_json, found)) or looks_like_json(found)):
        return "jsonl"
    refuse_conllu(lines, name)
    if needed > 1:
        check_not_text(lines, needed, name)
        return "columns"
    widths = Counter(len(line.split()) for line in found)
    marked = any(line.split()[0] == DOCSTART for line in found)
    if marked or max(widths, default=0) <= needed:
        return "columns"
    alone = all(a + 1 < b for (a, _), (b, _) in pairwise(nonblank_lines(lines)))
    ends = [ends_sentence(line) for line in found]
    if not alone and not all(ends) and 2 * max(widths.values()) > len(found):
        return "columns"
    if any(ends):
        return "text"
    raise InputError(f"{name}: this may be running text or columns; set --input text or --input columns")


def is_detectable(lines: Sequence[str], needed: int) -> bool:
    """Return whether lines of a file are enough to tell what it is."""
    try:
        detect_format(lines, needed, "")
    except InputError:
        return False
    return True


def log_format(form: InputFormat, name: str) -> None:
    """Tell the user, on standard error, which form a file was found to have."""
    logger.info("%s: read as %s; --input says otherwise", name, NAMES[form])
