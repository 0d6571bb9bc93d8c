"""JSON lines: a file of objects, one on each line."""

import json
from collections.abc import Iterable
from typing import Any

from structperc.errors import InputError


def json_rows(lines: Iterable[str], name: str, first: int = 1) -> list[tuple[str, dict[str, Any]]]:
    """Return (place, object) for each line of the file `name` that holds something; a place is "file:line".

    `first` is the number of the first line.

    Raises InputError with the place for lines that are no objects, or whose strings are no text.
    """
    found = []
    for number, line in enumerate(lines, first):
        if not line.strip():
            continue
        place = f"{name}:{number}"
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise InputError(f"{place}: this is no JSON ({error}); write one object on each line") from None
        if not isinstance(row, dict):
            raise InputError(f"{place}: this is JSON, but no object; write one {{...}} on each line")
        if "\\u" in line and not _is_text(row):
            raise InputError(f"{place}: an escape stands for half a character; write the characters themselves")
        found.append((place, row))
    return found


def _is_text(row: dict[str, Any]) -> bool:
    try:
        json.dumps(row, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def json_line(row: dict[str, Any]) -> str:
    """Return an object as a line of JSON, with its end."""
    return json.dumps(row, ensure_ascii=False) + "\n"


def strings(row: dict[str, Any], field: str, place: str) -> list[str]:
    """Return the list of strings that a field holds. Raises InputError, with the place, for anything else."""
    values = row.get(field)
    if not isinstance(values, list):
        raise InputError(f"{place}: field {field!r} must be a list of strings, not {type(values).__name__}")
    for i, value in enumerate(values):
        if not isinstance(value, str):
            raise InputError(f"{place}: field {field!r}[{i}] must be a string, not {value!r:.40}; write it in quotes")
    return values
