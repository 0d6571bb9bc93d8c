"""The points of a sweep: all combinations of the values of some options; names of their folders."""

from collections.abc import Iterable, Sequence
from hashlib import sha256
from itertools import product
from typing import NamedTuple
from urllib.parse import quote

from structperc.errors import InputError

LONGEST = 150  # characters of a folder's name


class Point(NamedTuple):
    """One value for each option, both as on the command line of fit."""

    values: tuple[tuple[str, str], ...]  # (option, value)

    @property
    def name(self) -> str:
        """ "KEY=VALUE,KEY=VALUE"."""
        return ",".join(f"{key}={value}" for key, value in self.values)

    @property
    def folder(self) -> str:
        """The name as that of a folder."""
        return folder_name(self.name)

    @property
    def options(self) -> list[str]:
        """Arguments of fit."""
        return [f"--{key}={value}" for key, value in self.values]


def parse_grid(grids: Sequence[str]) -> dict[str, list[str]]:
    """["KEY=V1,V2", ...] -> {KEY: values}, each value once, in their order. Commas within brackets part no values.

    InputError for a text of another form, a key without values or with an empty one, and a key given twice.
    """
    found: dict[str, list[str]] = {}
    for grid in grids:
        key, equals, text = grid.partition("=")
        key = key.removeprefix("--")
        if not equals or not key:
            raise InputError(f"--grid {grid}: write an option and its values as KEY=V1,V2")
        values = split_values(text)
        if not all(values):
            raise InputError(f"--grid {grid}: a value is empty; write KEY=V1,V2")
        if key in found:
            raise InputError(f"--grid names {key} twice; give all its values at once")
        found[key] = list(dict.fromkeys(values))
    return found


def split_values(text: str) -> list[str]:
    """The text cut at its commas, except those within brackets."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter in "[{(") - (letter in ")}]")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]


def points(grid: dict[str, list[str]]) -> list[Point]:
    """All combinations; the last option varies fastest."""
    return [Point(tuple(zip(grid, values, strict=True))) for values in product(*grid.values())]


def folder_name(name: str) -> str:
    """Without characters that a path cannot hold, not hidden, not too long; other names make other folders."""
    held = quote(name, safe=" ,=+-_.[]{}()'")
    held = f"%2E{held[1:]}" if held.startswith(".") else held
    return held if len(held) <= LONGEST else f"{held[:LONGEST]}-{sha256(held.encode()).hexdigest()[:8]}"


def short_keys(keys: Iterable[str]) -> list[str]:
    """The last parts of dotted options, or the whole ones where two have the same."""
    whole = list(keys)
    last = [key.rpartition(".")[2] for key in whole]
    return last if len(set(last)) == len(last) else whole
