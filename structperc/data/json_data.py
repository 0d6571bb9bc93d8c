"""JSON objects, one on each line or in an array; and checks of JSON values against type hints."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import NoneType, UnionType
from typing import Any, Literal, NoReturn, Union, get_args, get_origin

from structperc.data.text_files import split_lines
from structperc.errors import InputError

PLAIN = (bool, int, str)
SHOWN = 60  # characters of a wrong value in a message
_OPENS = re.compile(r"""\s*(\{\s*["']|\[\s*\{|\[\s*["'].*["']\s*,\s*\{)""")
_OPENING_LINE = re.compile(r"\s*[\[{]\s*")  # first line of pretty-printed JSON
_SECOND_LINE = re.compile(r"""\s*(["'{].*|\[\s*)""")
_BLANK = re.compile(r"\s*")


def parse_json_lines(lines: Iterable[str], name: str, first: int = 1) -> list[tuple[str, dict[str, Any]]]:
    """Return (location, object) for each non-blank line of the file `name`; a location is "file:line".

    `first` is the number of the first line. Raises InputError with the location for lines that are not objects, and for
    invalid Unicode.
    """
    rows = []
    for number, line in enumerate(lines, first):
        if not line.strip():
            continue
        place = f"{name}:{number}"
        try:
            row = json.loads(line, parse_constant=_reject_constant, object_pairs_hook=distinct)
        except (ValueError, RecursionError) as error:
            advice = "write one object per line, with names in double quotes and without commas after the last element"
            advice = advice if isinstance(error, json.JSONDecodeError | RecursionError) else "correct it"
            raise InputError(f"{place}: invalid JSON ({_reason(error)}); {advice}") from None
        rows.append((place, _checked(row, line, place)))
    return rows


def parse_json_records(text: str, name: str) -> list[tuple[str, dict[str, Any]]]:
    """Return (location, object) for each object of a text of JSON lines or one array, see `parse_json_lines`.

    The location is "file, row N" in an array with several objects on a line.
    """
    if not text.lstrip().startswith("["):
        return parse_json_lines(split_lines(text), name)
    rows = list(_elements(text, name))
    if len({place for place, _ in rows}) < len(rows):
        return [(f"{name}, row {number}", row) for number, (_, row) in enumerate(rows, 1)]
    return rows


def looks_like_json(lines: Sequence[str]) -> bool:
    """Return True if non-blank lines begin like JSON, valid or not."""
    if not lines:
        return False
    printed = len(lines) > 1 and _OPENING_LINE.fullmatch(lines[0]) and _SECOND_LINE.fullmatch(lines[1])
    return bool(_OPENS.match(lines[0]) or printed)


def _elements(text: str, name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the objects of an array with their locations, the lines on which they begin."""
    decoder = json.JSONDecoder(parse_constant=_reject_constant, object_pairs_hook=distinct)
    at, first, line, counted = text.index("[") + 1, True, 1, 0
    while True:
        at = _skip_blank(text, at)
        line, counted = line + text.count("\n", counted, at), at
        place = f"{name}:{line}"
        if text[at : at + 1] == "]" and first:
            break
        try:
            row, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError) as error:
            raise InputError(f"{place}: invalid JSON in this element of the array ({_reason(error)})") from None
        yield place, _checked(row, text[at:end], place)
        at, first = _skip_blank(text, end), False
        if text[at : at + 1] == "]":
            break
        if text[at : at + 1] != ",":
            raise InputError(f"{place}: expected a comma or ] after this element of the array")
        at += 1
    if text[at + 1 :].strip():
        raise InputError(f"{place}: unexpected text after the end of the array; write one object per line instead")


def _skip_blank(text: str, at: int) -> int:
    match = _BLANK.match(text, at)
    return at if match is None else match.end()


def _checked(row: Any, line: str, place: str) -> dict[str, Any]:
    if not isinstance(row, dict):
        raise InputError(f"{place}: expected a JSON object, got {type(row).__name__}; write one {{...}} per line")
    if "\\u" in line:
        try:
            json.dumps(row, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise InputError(f"{place}: unpaired surrogate escape; write the character itself") from None
    return row


def _reason(error: Exception) -> str:
    """Return the reason of an error without its line number, which is relative to a part of the file."""
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg} at character {error.colno}"
    return "too deeply nested" if isinstance(error, RecursionError) else str(error)


def _reject_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not allowed; write null or a number")


def distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object from its fields. Raises ValueError for a repeated one."""
    fields = dict(pairs)
    if len(fields) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"the field {next(name for name in names if names.count(name) > 1)!r:.40} is given twice")
    return fields


def json_line(row: dict[str, Any]) -> str:
    """Return an object as a line of JSON with line end."""
    return json.dumps(row, ensure_ascii=False) + "\n"


def strings(row: dict[str, Any], field: str, place: str) -> list[str]:
    """Return the list of strings in a field. Raises InputError with the location for other values."""
    values = row.get(field)
    if not isinstance(values, list):
        raise InputError(f"{place}: field {field!r} must be a list of strings, not {type(values).__name__}")
    for i, value in enumerate(values):
        if not isinstance(value, str):
            raise InputError(f"{place}: field {field!r}[{i}] must be a string, not {value!r:.40}; write it in quotes")
    return values


def matches_type(value: Any, hint: Any) -> bool:
    """Return True if a JSON value matches a type hint.

    Supports Any, None, bool, int, float, str, Literal, lists and sequences, dictionaries and mappings, and unions;
    nothing matches other hints. Booleans are not numbers, integers are floats, NaN is not. Keys of plain types are
    checked.
    """
    if hint is Any:
        return True
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return any(matches_type(value, member) for member in inner)
    if origin is Literal:
        return any(type(value) is type(choice) and value == choice for choice in inner)
    if origin in (list, Sequence):
        return isinstance(value, list) and _all_match(value, inner[0])
    if origin in (dict, Mapping):
        keys = isinstance(value, dict) and (inner[0] not in PLAIN or _all_match(value, inner[0]))
        return keys and _all_match(value.values(), inner[1])
    if hint is float:
        return type(value) in (int, float) and value == value
    return type(value) is (NoneType if hint is None else hint)


def _all_match(values: Iterable[Any], hint: Any) -> bool:
    if hint in PLAIN:  # fast, for hundreds of thousands of strings
        return set(map(type, values)) <= {hint}
    return all(matches_type(value, hint) for value in values)


def check_value(value: Any, hint: Any, place: str) -> None:
    """Raise InputError, which begins with the location, if a value does not match a type hint."""
    if not matches_type(value, hint):
        shown = repr(value)
        shown = shown if len(shown) <= SHOWN else f"{shown[:SHOWN]}..."
        raise InputError(f"{place}: expected {getattr(hint, '__name__', None) or hint}, got {shown}")


def check_fields(value: Any, hints: Mapping[str, Any], place: str) -> None:
    """Raise InputError unless a value is a dictionary with exactly these keys and types."""
    check_value(value, dict[str, Any], place)
    for name, hint in hints.items():
        if name not in value:
            raise InputError(f"{place}: missing entry {name!r}")
        check_value(value[name], hint, f"{place}.{name}")
    if unknown := [name for name in value if name not in hints]:
        raise InputError(f"{place}: unknown entry {unknown[0]!r}; known are {', '.join(hints)}")
