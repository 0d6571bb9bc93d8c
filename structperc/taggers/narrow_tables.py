"""Tables of weights in files: without the rows that are zero, and if asked for with fewer bits than in memory."""

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from structperc.data.typed import check_fields, check_value
from structperc.errors import InputError

Width = Literal["float32", "float16", "int8"]
TABLES = (
    "tables"  # the entry of a configuration: {name: {"width": ..., "rows": how many there are with those of zeros}}
)
ENTRY = {"width": Width, "rows": int}
NARROWED = ("scorer.node", "scorer.edge")
ROWS = ".rows"  # ends the name of the numbers of the rows in the file, ascending, (n,) int32; none where all are in it
SCALE = ".scale"  # ends the name of what the rows of an int8 table are multiplied by, (n,) float32
LEVELS = 127  # on both sides of 0
Arrays = Mapping[str, np.ndarray]


def narrowed(arrays: Arrays, width: Width) -> tuple[dict[str, np.ndarray], dict[str, dict[str, Any]]]:
    """Return tables (R, C) float32 as arrays for a file, and entries for those that are not as they were.

    Rows of zeros are left out where that saves room. With int8 a weight is a whole number of 127ths of the largest one
    of its row. Raises InputError for weights that float16 cannot hold.
    """
    found: dict[str, np.ndarray] = {}
    entries: dict[str, dict[str, Any]] = {}
    for name, table in arrays.items():
        rows = np.flatnonzero(table.any(1)).astype(np.int32)
        sparse = rows.nbytes + len(rows) * table[:1].nbytes < table.nbytes
        if sparse:
            found[name + ROWS] = rows
        if sparse or width != "float32":
            entries[name] = {"width": width, "rows": len(table)}
        found |= _with_width(name, table[rows] if sparse else table, width)
    return found, entries


def names_of_tables(entries: Mapping[str, Any]) -> list[str]:
    """Return the names of all arrays of tables that the entries of a configuration tell of.

    Raises InputError for entries that are not of their types.
    """
    tables = entries.get(TABLES, {})
    check_value(tables, dict[str, dict[str, Any]], TABLES)
    for name, entry in tables.items():
        check_fields(entry, ENTRY, f"{TABLES}.{name}")
    return [name + end for name in tables for end in ("", ROWS, SCALE)]


def widened(entries: Mapping[str, Any], arrays: Arrays) -> dict[str, np.ndarray]:
    """Return arrays with whole tables, in float32, in place of those that the entries of a configuration tell of.

    Raises InputError for arrays that are not as the entries say.
    """
    own = names_of_tables(entries)
    found = {name: array for name, array in arrays.items() if name not in own}
    for name, entry in entries.get(TABLES, {}).items():
        table, rows, scale = (arrays.get(name + end) for end in ("", ROWS, SCALE))
        if table is None or table.ndim != 2 or table.dtype != np.dtype(entry["width"]):
            raise InputError(f"{TABLES}: the weights {name} are no {entry['width']} table")
        rows = np.arange(len(table), dtype=np.int32) if rows is None and len(table) == entry["rows"] else rows
        if rows is None or not _are_rows(rows, len(table), entry["rows"]):
            raise InputError(f"{TABLES}: the rows of {name} are not {len(table)} ascending numbers of {entry['rows']}")
        if entry["width"] == "int8" and (scale is None or scale.shape != rows.shape or scale.dtype != np.float32):
            raise InputError(f"{TABLES}: the weights {name} have no scale, float32, for each row")
        found[name] = np.zeros((entry["rows"], table.shape[1]), np.float32)
        found[name][rows] = table if scale is None else table * scale[:, None]
    return found


def _with_width(name: str, table: np.ndarray, width: Width) -> dict[str, np.ndarray]:
    if width == "int8":
        scale = (np.abs(table).max(1, initial=0) / LEVELS).astype(np.float32)
        steps = np.rint(table / np.where(scale > 0, scale, 1)[:, None])
        return {name: steps.clip(-LEVELS, LEVELS).astype(np.int8), name + SCALE: scale}
    largest = np.abs(table).max(initial=0)
    if largest > np.finfo(width).max:
        raise InputError(f"{name} has weights up to {largest:g}, which {width} cannot hold; take int8")
    return {name: table.astype(width, copy=False)}


def _are_rows(rows: np.ndarray, count: int, whole: int) -> bool:
    if rows.dtype != np.int32 or rows.shape != (count,):
        return False
    return not count or bool(rows[0] >= 0 and rows[-1] < whole and (np.diff(rows) > 0).all())
