"""JSON: a file of objects, one on each line, or an array of objects.

Checks of plain JSON values against type hints, so that a file holds what its reader takes it for.
"""

import ast
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import NoneType, UnionType
from typing import Any, Literal, NoReturn, Union, get_args, get_origin

from structperc.data.text_files import split_lines
from structperc.errors import InputError

ON_LINES = "write one object on each line"
_OPENS = re.compile(r"""\s*(\{\s*["']|\[\s*\{|\[\s*["'].*["']\s*,\s*\{)""")
_ALONE = re.compile(r"\s*[\[{]\s*")  # a line of pretty-printed JSON
_INSIDE = re.compile(r"""\s*(["'{].*|\[\s*)""")  # the line after it
_EXTRA_COMMA = re.compile(r",(\s*[}\]])")


def parse_json_lines(lines: Iterable[str], name: str, first: int = 1) -> list[tuple[str, dict[str, Any]]]:
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
            row = json.loads(line, parse_constant=_no_constant)
        except (ValueError, RecursionError) as error:
            raise InputError(f"{place}: {_fault(line, error)}") from None
        found.append((place, _checked(row, line, place)))
    return found


def parse_json_records(text: str, name: str) -> list[tuple[str, dict[str, Any]]]:
    """Return (place, object) for each object of a text, which holds JSON lines or one array; see `parse_json_lines`."""
    if not text.lstrip().startswith("["):
        return parse_json_lines(split_lines(text), name)
    return list(_elements(text, name))


def looks_like_json(lines: Sequence[str]) -> bool:
    """Return whether lines that hold something begin as JSON does, whatever is wrong with it.

    Example:
        >>> looks_like_json(['{"text": "Anna left",}']), looks_like_json(["{ O", "} O"])
        (True, False)
    """
    if not lines:
        return False
    printed = len(lines) > 1 and _ALONE.fullmatch(lines[0]) and _INSIDE.fullmatch(lines[1])
    return bool(_OPENS.match(lines[0]) or printed)


def _elements(text: str, name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The objects of an array, with the lines on which they begin."""
    decoder = json.JSONDecoder(parse_constant=_no_constant)
    at, line, counted = text.index("[") + 1, 1, 0
    while True:
        at = _after_blank(text, at)
        line, counted = line + text.count("\n", counted, at), at
        place = f"{name}:{line}"
        if text[at : at + 1] == "]":
            break
        try:
            row, end = decoder.raw_decode(text, at)
        except _ConstantError as error:
            raise InputError(f"{place}: {_fault('', error)}") from None
        except (ValueError, RecursionError) as error:
            raise InputError(f"{place}: this element of the array is no JSON ({_short(error)}); correct it") from None
        yield place, _checked(row, text[at:end], place)
        at = _after_blank(text, end)
        if text[at : at + 1] == ",":
            at = _after_blank(text, at + 1)
            if text[at : at + 1] == "]":
                raise InputError(f"{place}: there is a comma after the last element of the array; leave it out")
        elif text[at : at + 1] != "]":
            raise InputError(f"{place}: no comma or ] after this element of the array; correct it, or {ON_LINES}")
    if text[at + 1 :].strip():
        raise InputError(f"{place}: something follows the end of the array; {ON_LINES}, without an array")


def _after_blank(text: str, at: int) -> int:
    match = re.compile(r"\s*").match(text, at)
    assert match is not None
    return match.end()


def _checked(row: Any, line: str, place: str) -> dict[str, Any]:
    if not isinstance(row, dict):
        what = "an array; " + _from_array() if isinstance(row, list) else "no object; write one {...} on each line"
        raise InputError(f"{place}: this is JSON, but {what}")
    if "\\u" in line and not _is_text(row):
        raise InputError(f"{place}: an escape stands for half a character; write the characters themselves")
    return row


def _from_array() -> str:
    return f"{ON_LINES}, without [ ] around them and commas between them (jq -c '.[]' FILE)"


def _fault(line: str, error: Exception) -> str:
    """Why a line is no JSON, and what to change."""
    line = line.strip()
    if isinstance(error, _ConstantError):
        return f"{error} is no JSON; write null or a number, or leave out the field"
    if isinstance(error, json.JSONDecodeError) and error.msg.startswith("Invalid control character"):
        return f"a string holds a tab or another control character ({_short(error)}); write it as \\t, \\u...."
    if line.startswith("[") and (len(line) < 3 or line.endswith(("{", ","))):
        return f"an array begins here; {_from_array()}"
    if line.endswith(",") and _is_json(line[:-1]):
        return "there is a comma after the object; leave it out"
    if _is_json(_EXTRA_COMMA.sub(r"\1", line)):
        return "there is a comma before } or ], after the last element; leave it out"
    if line.startswith(("{", "[")) and _is_python(line):
        return "this is a Python dictionary, not JSON; write it by json.dumps, which puts names in double quotes"
    at_end = isinstance(error, json.JSONDecodeError) and error.pos >= len(line)
    if line.startswith("{") and (at_end or line == "{"):
        return f"an object begins here that does not end on this line; {ON_LINES} (jq -c . FILE)"
    return f"this is no JSON ({_short(error)}); {ON_LINES}"


def _short(error: Exception) -> str:
    """Return the reason of an error without its line number, which counts from the start of a part of the file."""
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg} at character {error.colno}"
    return "too deeply nested" if isinstance(error, RecursionError) else str(error)


def _is_json(line: str) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True


def _is_python(line: str) -> bool:
    """Whether a line is a dictionary or list of Python, made of constants; nothing of it is run."""
    try:
        return isinstance(ast.literal_eval(line.rstrip(",")), dict | list | tuple)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return False


class _ConstantError(ValueError):
    """NaN or Infinity."""


def _no_constant(name: str) -> NoReturn:
    raise _ConstantError(name)


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


PLAIN = (bool, int, str)
SHOWN = 60  # characters of a wrong value in a message


def matches_type(value: Any, hint: Any) -> bool:
    """Return whether a JSON value is of a type.

    Hints are Any, None, bool, int, float, str, Literal, lists and sequences, dictionaries and mappings with strings as
    keys, and unions of these; nothing is of another type. True and False are no numbers, a whole number is a float,
    NaN is none.
    """
    if hint is Any:
        return True
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return any(matches_type(value, one) for one in inner)
    if origin is Literal:
        return any(type(value) is type(one) and value == one for one in inner)
    if origin in (list, Sequence):
        return isinstance(value, list) and _all_conform(value, inner[0])
    if origin in (dict, Mapping):
        return isinstance(value, dict) and _all_conform(value.values(), inner[1])
    if hint is float:
        return type(value) in (int, float) and value == value
    return type(value) is (NoneType if hint is None else hint)


def _all_conform(values: Iterable[Any], hint: Any) -> bool:
    if hint in PLAIN:  # at once: models have hundreds of thousands of strings
        return set(map(type, values)) <= {hint}
    return all(matches_type(one, hint) for one in values)


def check_value(value: Any, hint: Any, place: str) -> None:
    """Raise InputError that names the place if a value is not of a type."""
    if not matches_type(value, hint):
        shown = repr(value)
        shown = shown if len(shown) <= SHOWN else f"{shown[:SHOWN]}..."
        raise InputError(f"{place}: {getattr(hint, '__name__', None) or hint} is due, not {shown}")


def check_fields(value: Any, hints: Mapping[str, Any], place: str) -> None:
    """Raise InputError unless a value is a dictionary with just these keys, each of its type."""
    if not isinstance(value, dict):
        check_value(value, dict, place)
    for name, hint in hints.items():
        if name not in value:
            raise InputError(f"{place}: there is no {name!r}")
        check_value(value[name], hint, f"{place}.{name}")
    if unknown := [name for name in value if name not in hints]:
        raise InputError(f"{place}: unknown entry {unknown[0]!r}; known are {', '.join(hints)}")
