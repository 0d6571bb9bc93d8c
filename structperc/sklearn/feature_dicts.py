"""The features of a token in Python's types, read as python-crfsuite's `ItemSequence` reads them."""

from collections.abc import Iterator, Mapping
from numbers import Real
from typing import Any

import numpy as np

from structperc.errors import InputError

LISTS = (list, tuple, set, frozenset)
PARTS = (Mapping, *LISTS)
LARGEST = float(np.finfo(np.float32).max)


def features_of(token: Any, place: str = "features") -> Iterator[tuple[str, float]]:
    """Yield name and weight of each feature of a token: a dict of features, or a list or set of names.

    In a dict, {"w": "the"} is the feature w:the with weight 1, {"len": 3} is len with weight 3, {"flag": True} is flag
    with weight 1 and {"flag": False} with weight 0; dicts in it are read the same way, {"next": {"len": 3}} is next:len
    with weight 3, and lists and sets as names, {"has": ["a", "b"]} is has:a and has:b with weight 1.

    Raises InputError, which begins with the place, for names that are no strings and weights that are no finite
    numbers.
    """
    if not isinstance(token, PARTS):
        raise InputError(f"{place}: a token is a dict of features or a list of their names, not {token!r:.40}")
    yield from _features(token, "", place)


def _features(given: Any, prefix: str, place: str) -> Iterator[tuple[str, float]]:
    if not isinstance(given, Mapping):  # a set in an order that every process has
        for name in sorted(given, key=str) if isinstance(given, set | frozenset) else given:
            yield _name(name, prefix, place), 1.0
        return
    for key, value in given.items():
        name = _name(key, prefix, place)
        if isinstance(value, str | bytes):
            yield f"{name}:{_text(value)}", 1.0
        elif isinstance(value, PARTS):
            yield from _features(value, f"{name}:", place)
        else:
            yield name, _weight(value, name, place)


def _name(name: Any, prefix: str, place: str) -> str:
    if not isinstance(name, str | bytes):
        raise InputError(f"{place}: the name of a feature is a string, not {name!r:.40}; write it as a string")
    return prefix + _text(name)


def _text(text: str | bytes) -> str:
    return text.decode() if isinstance(text, bytes) else text


def _weight(value: Any, name: str, place: str) -> float:
    if not isinstance(value, (Real, np.bool_)):
        advice = "give a string, a number, a bool, a dict or a list of strings"
        raise InputError(f"{place}, feature {name!r}: {value!r:.40} is a {type(value).__name__}; {advice}")
    if not abs(float(value)) <= LARGEST:
        raise InputError(f"{place}, feature {name!r}: {value!r} is no finite number; give one, or leave it out")
    return float(value)
