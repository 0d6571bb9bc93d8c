"""Checks of plain JSON values against type hints, so that a file holds what its reader takes it for."""

from collections.abc import Iterable, Mapping, Sequence
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

from structperc.errors import InputError

PLAIN = (bool, int, str)
SHOWN = 60  # characters of a wrong value in a message


def conforms(value: Any, hint: Any) -> bool:
    """Return whether a JSON value is of a type.

    Hints are Any, None, bool, int, float, str, Literal, lists and sequences, dictionaries and mappings with strings as
    keys, and unions of these; nothing is of another type. True and False are no numbers, a whole number is a float,
    NaN is none.
    """
    if hint is Any:
        return True
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return any(conforms(value, one) for one in inner)
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
    return all(conforms(one, hint) for one in values)


def check_value(value: Any, hint: Any, place: str) -> None:
    """Raise InputError that names the place if a value is not of a type."""
    if not conforms(value, hint):
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
