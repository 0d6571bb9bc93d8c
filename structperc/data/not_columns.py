"""Text files that are no column files although they could be read as such: JSON lines, running text."""

import json
import re
from collections.abc import Iterator, Sequence
from itertools import islice, pairwise

from structperc.data.json_lines import opens_json
from structperc.errors import InputError
from structperc.spelling import is_blank

_LOOKED_AT = 10  # lines, for JSON
_CONLLU = re.compile(r"\d+([-.]\d+)?(\t[^\t]*){9}$")
_ENDS_SENTENCE = re.compile(r"\w.*[.!?…]['\"”’»)]*\s*$")


def check_columns(lines: Sequence[str], needed: int, name: str) -> None:
    """Raise InputError for lines of the file `name` that are probably no columns; for files whose columns nobody names.

    Refused are JSON objects and, where lines have more than the `needed` fields, what running text has in common with
    few column files: lines that stand alone, between empty ones, and lines of which all end as sentences do. So are
    lines of CoNLL-U, whose first column holds numbers, not words.
    """
    head = list(islice(filled(lines), _LOOKED_AT))
    if not head:
        return
    first, line = head[0]
    if all(is_json(line) for _, line in head) or opens_json([line for _, line in head]):
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
    alone = all(a + 1 < b for (a, _), (b, _) in pairwise(filled(lines)))
    return alone or all(ends_sentence(line) for _, line in filled(lines))


def is_conllu(lines: Sequence[str]) -> bool:
    """Return whether all lines that hold something are words of CoNLL-U or comments, and not all comments."""
    kinds = [bool(_CONLLU.match(line)) for _, line in filled(lines) if not line.startswith("#")]
    return bool(kinds) and all(kinds)


def refuse_conllu(lines: Sequence[str], name: str) -> None:
    """Raise InputError for lines that are CoNLL-U, see `is_conllu`."""
    if is_conllu(lines):
        place = f"{name}:{next(filled(lines))[0]}"
        raise InputError(f"{place}: this is CoNLL-U, not a file of columns; give its words, column 2, one a line")


def ends_sentence(line: str) -> bool:
    """Return whether a line ends as a sentence does."""
    return _ENDS_SENTENCE.search(line) is not None


def filled(lines: Sequence[str]) -> Iterator[tuple[int, str]]:
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
