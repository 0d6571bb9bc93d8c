"""The rows of a sweep: all combinations of the values of some options."""

from collections.abc import Iterable, Sequence
from itertools import product

from structperc.errors import InputError
from structperc.experiments.row import Row


def parse_grid(grids: Sequence[str]) -> dict[str, list[str]]:
    """Return {KEY: values} of ["KEY=V1,V2", ...], each value once, in their order; commas within brackets part nothing.

    Raises InputError for a text of another form, a key without values or with an empty one, and a key given twice.
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
    """Return the parts of a text cut at its commas, except those within brackets."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter in "[{(") - (letter in ")}]")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]


def grid_rows(
    grid: dict[str, list[str]], configs: Sequence[str], options: Sequence[str], seeds: Sequence[int]
) -> list[Row]:
    """Return a row "KEY=VALUE,KEY=VALUE" for each combination of values; the last option varies fastest.

    All rows have the same configurations, seeds and options; these options stand before those of the grid.
    """
    combinations = (tuple(zip(grid, values, strict=True)) for values in product(*grid.values()))
    return [grid_row(values, configs, options, seeds) for values in combinations]


def grid_row(
    values: tuple[tuple[str, str], ...],
    configs: Sequence[str] = (),
    options: Sequence[str] = (),
    seeds: Sequence[int] = (),
) -> Row:
    """Return the row of one combination of values, each (option, value) as on the command line of fit."""
    own = [f"{key}={value}" for key, value in values]
    return Row(",".join(own), "fit", [*configs], [*options, *(f"--{one}" for one in own)], [*seeds], values=values)


def short_keys(keys: Iterable[str]) -> list[str]:
    """Return the last parts of dotted options, or the whole ones where two have the same last part."""
    whole = list(keys)
    last = [key.rpartition(".")[2] for key in whole]
    return last if len(set(last)) == len(last) else whole
