"""Tables of weights in files with fewer bits than in memory."""

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from structperc.data.typed import check_value
from structperc.errors import InputError

Width = Literal["float32", "float16", "int8"]
NARROW = Literal["float16", "int8"]
TABLES = "tables"  # the entry of a configuration: {name: width} of the tables that are narrow
NARROWED = ("scorer.node", "scorer.edge")
SCALE = ".scale"  # ends the name of what the rows of an int8 table are multiplied by, (rows,) float32
LEVELS = 127  # on both sides of 0
Arrays = Mapping[str, np.ndarray]


def narrowed(arrays: Arrays, width: Width) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """Return arrays with the tables of feature weights in so many bits, and the width of each that was changed.

    With int8 a weight is a whole number of 127ths of the largest one of its row. Raises InputError for weights that
    float16 cannot hold.
    """
    tables = [] if width == "float32" else [name for name in NARROWED if name in arrays]
    found = dict(arrays)
    for name in tables:
        found |= _halved(name, arrays[name]) if width == "float16" else _scaled(name, arrays[name])
    return found, dict.fromkeys(tables, width)


def names_of_tables(entries: Mapping[str, Any]) -> list[str]:
    """Return the names of narrow tables and of their scales, by the entries of a configuration.

    Raises InputError for entries that are not of their types.
    """
    tables = entries.get(TABLES, {})
    check_value(tables, dict[str, NARROW], TABLES)
    return [name + end for name in tables for end in ("", SCALE)]


def widened(entries: Mapping[str, Any], arrays: Arrays) -> dict[str, np.ndarray]:
    """Return arrays with all tables in float32 that the entries of a configuration say are narrow.

    Raises InputError for tables that are not as they say.
    """
    names_of_tables(entries)
    found = dict(arrays)
    for name, width in entries.get(TABLES, {}).items():
        table, scale = found.get(name), found.pop(name + SCALE, None)
        if table is None or table.ndim != 2 or table.dtype != np.dtype(width):
            raise InputError(f"{TABLES}: the weights {name} are no {width} table")
        if width == "int8" and (scale is None or scale.shape != table.shape[:1] or scale.dtype != np.float32):
            raise InputError(f"{TABLES}: the weights {name} have no scale, float32, for each row")
        found[name] = table.astype(np.float32) * (np.float32(1) if scale is None else scale[:, None])
    return found


def _halved(name: str, table: np.ndarray) -> dict[str, np.ndarray]:
    largest = np.abs(table).max(initial=0)
    if largest > np.finfo(np.float16).max:
        raise InputError(f"{name} has weights up to {largest:g}, which float16 cannot hold; take int8")
    return {name: table.astype(np.float16)}


def _scaled(name: str, table: np.ndarray) -> dict[str, np.ndarray]:
    scale = (np.abs(table).max(1, initial=0) / LEVELS).astype(np.float32)
    steps = table / np.where(scale > 0, scale, 1)[:, None]
    return {name: np.rint(steps).clip(-LEVELS, LEVELS).astype(np.int8), name + SCALE: scale}
