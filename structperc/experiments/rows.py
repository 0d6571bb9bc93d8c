"""Rows of an experiment: configurations trained once per seed, from a study file or a grid of values."""

import json
from collections.abc import Iterable, Sequence
from hashlib import sha256
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from structperc.errors import InputError
from structperc.training.overlays import read_configuration

MAX_FOLDER_NAME = 150  # characters


class ExperimentRow(NamedTuple):
    """A configuration with options, trained once per seed."""

    name: str
    command: str  # fit or rerank
    configs: list[str]  # files
    options: list[str]  # further arguments; the last value of an option counts
    seeds: list[int]  # empty: one training, with the seeds of the configuration
    init_from: str | None = None  # name of the row whose models its trainings start from
    values: tuple[tuple[str, str], ...] = ()  # (option, value) of a point of a grid, also among the options

    @property
    def folder(self) -> str:
        """The folder name of the row."""
        return folder_name(self.name)

    @property
    def trials(self) -> list[tuple["ExperimentRow", int | None]]:
        """The row with each of its seeds, or with None if it has no seeds."""
        return [(self, seed) for seed in self.seeds] or [(self, None)]

    def place(self, root: Path, seed: int | None) -> Path:
        """Return the folder of the training with this seed, under the root of an experiment."""
        return root / self.folder if seed is None else root / self.folder / f"seed={seed}"

    def arguments(self, seed: int | None) -> list[str]:
        """Return the arguments of fit or rerank for this seed, without the folder of the run."""
        seeded = [] if seed is None else [f"--seed_everything={seed}", f"--data.seed={seed}"]
        return [*(f"--config={file}" for file in self.configs), *self.options, *seeded]


def folder_name(name: str) -> str:
    """Return a distinct folder name that is valid in a path, not hidden and not too long."""
    quoted = quote(name, safe=" ,=+-_.[]{}()'")
    quoted = f"%2E{quoted[1:]}" if quoted.startswith(".") else quoted
    if len(quoted) <= MAX_FOLDER_NAME:
        return quoted
    return f"{quoted[:MAX_FOLDER_NAME]}-{sha256(quoted.encode()).hexdigest()[:8]}"


def identity(configs: Sequence[str], **about: Any) -> dict[str, Any]:
    """Return the contents of configuration files and further properties of trainings, as plain JSON types."""
    return json.loads(json.dumps({"configs": [read_configuration(file) for file in configs], **about}, default=str))


def check_same(before: dict[str, Any], now: dict[str, Any], folder: str, advice: str) -> None:
    """Raise InputError, which names the differences, if the runs of a folder have another `identity`."""
    if different := [name for name in now if now[name] != before.get(name)]:
        raise InputError(f"{folder} with other {' and '.join(different)}: {advice}")


def parse_grid(grids: Sequence[str]) -> dict[str, list[str]]:
    """Return {KEY: values} of ["KEY=V1,V2", ...] in the order given, without duplicates; see `split_values`.

    Raises InputError for a text of another form, a missing or empty value, and a key given twice.
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
            raise InputError(f"--grid names {key} twice; give all its values in one --grid")
        found[key] = list(dict.fromkeys(values))
    return found


def split_values(text: str) -> list[str]:
    """Return the parts of a text, split at its commas except those in brackets."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter in "[{(") - (letter in ")}]")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]


def grid_rows(
    grid: dict[str, list[str]],
    configs: Sequence[str] = (),
    options: Sequence[str] = (),
    seeds: Sequence[int] = (),
) -> list[ExperimentRow]:
    """Return a row "KEY=VALUE,KEY=VALUE" for each combination of values; the last option varies fastest.

    All rows have the same configurations, seeds and options; these options stand before those of the grid.
    """
    rows = []
    for values in product(*grid.values()):
        own = [f"{key}={value}" for key, value in zip(grid, values, strict=True)]
        arguments = [*options, *(f"--{one}" for one in own)]
        pairs = tuple(zip(grid, values, strict=True))
        rows.append(ExperimentRow(",".join(own), "fit", [*configs], arguments, [*seeds], values=pairs))
    return rows


def short_keys(keys: Iterable[str]) -> list[str]:
    """Return the last parts of dotted options, or the whole options if two have the same last part."""
    whole = list(keys)
    last = [key.rpartition(".")[2] for key in whole]
    return last if len(set(last)) == len(last) else whole
