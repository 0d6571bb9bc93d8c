"""The two files of a saved model, model.json and model.safetensors, as they are read without PyTorch.

Tables of feature weights are stored without the rows that are zero, and quantised on request.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np

from structperc.data.json_data import check_fields, check_value
from structperc.data.output import write_lines
from structperc.data.read_options import Unit
from structperc.data.tag_schemes import Scheme
from structperc.data.text_files import suggest_path
from structperc.errors import InputError
from structperc.user_code import error_location

FORMAT = 8
CONFIG, WEIGHTS = "model.json", "model.safetensors"
SUBFOLDERS = tuple(f"{depth}{CONFIG}" for depth in ("*/", "*/*/", "*/*/*/"))  # where runs and studies keep models
CHECKSUMS = "checksums"
PREDICTOR = "predictor"  # what loads without PyTorch, see `models.predictor_entry`; null if nothing does
TRAINING_FILES = "training_files"  # their reading options
BIASES, DEFAULT_BIAS, TEMPERATURE = "biases", "default_bias", "temperature"  # optional, see `models.Biases`
BIAS_ENTRIES = {BIASES: dict[str, dict[str, Any]], DEFAULT_BIAS: str, TEMPERATURE: float}
FEATURE_PREFIX = "features."  # prefix of the array names of features
ENTRIES = {
    "labels": list[str],
    "scheme": Scheme,
    "unit": Unit,
    "features": dict[str, Any],
}


Array = TypeVar("Array")


class ModelConfig(NamedTuple):
    """The content of model.json."""

    entries: dict[str, Any]
    changed: bool  # since it was saved, by its checksum


@contextmanager
def model_errors(path: Path | str) -> Iterator[None]:
    """Turn errors within the block into InputErrors of one line that names the folder, or the part with the model."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    except Exception as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        if place := error_location(error):
            raise InputError(f"{path}: {place}: {reason}") from error
        raise InputError(f"{path}: not a readable model ({reason}); save it again") from None


def check_model_files(folder: Path) -> None:
    """Raise InputError for a folder without one of the two files of a model."""
    if not folder.exists():
        raise InputError(f"no such folder{suggest_path(folder)}")
    for name in (CONFIG, WEIGHTS):
        if not (folder / name).is_file():
            raise InputError(f"no saved model here ({name} is missing){_suggestion(folder)}")


def read_configuration(folder: Path) -> ModelConfig:
    """Return the configuration of a model.

    Raises InputError for a folder without one of the two files, another format, and changed weights. Checksums detect
    damage; they do not authenticate a model.
    """
    check_model_files(folder)
    config = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
    if not isinstance(config, dict) or "format" not in config:
        raise InputError(f"{CONFIG} is not the configuration of a model (it has no 'format')")
    if type(config["format"]) is not int or config["format"] != FORMAT:
        raise InputError(f"{CONFIG} has format {config['format']}, this version reads {FORMAT}: train the model again")
    entries = {name: value for name, value in config.items() if name != CHECKSUMS}
    if CHECKSUMS not in config:
        return ModelConfig(entries, True)
    saved = config[CHECKSUMS]
    check_fields(saved, {WEIGHTS: str, CONFIG: str}, CHECKSUMS)
    if saved[WEIGHTS] != _file_checksum(folder / WEIGHTS):
        raise InputError(f"{WEIGHTS} is damaged (its checksum is wrong); save the model again")
    return ModelConfig(entries, saved[CONFIG] != _checksum(entries))


def update_entries(folder: Path, entries: Mapping[str, Any]) -> None:
    """Replace entries of the configuration of a saved model; the weights are not changed.

    Raises InputError as `read_configuration` does, and if the file cannot be written.
    """
    config = {**read_configuration(folder).entries, **entries}
    write_lines(folder / CONFIG, [json.dumps(add_checksums(config, folder), ensure_ascii=False)])


def _suggestion(folder: Path) -> str:
    """Return advice that names models in subfolders, such as that of a run."""
    below = (
        file.parent for pattern in SUBFOLDERS for file in folder.glob(pattern) if (file.parent / WEIGHTS).is_file()
    )
    folders = [str(path) for path in islice(below, 2)]
    if not folders:
        return ""
    return (
        f"; did you mean {folders[0]}?" if len(folders) == 1 else f"; use one of its subfolders, such as {folders[0]}"
    )


def read_arrays(folder: Path) -> dict[str, np.ndarray]:
    """Return the arrays of a model's weights and features by name. Raises InputError as `check_finite_array` does."""
    from safetensors.numpy import load_file

    arrays = load_file(folder / WEIGHTS)
    for name, array in arrays.items():
        check_finite_array(name, array.dtype.kind != "f" or bool(np.isfinite(array).all()))
    return arrays


def check_finite_array(name: str, finite: bool) -> None:
    """Raise InputError for weights that are not finite."""
    if not finite:
        raise InputError(f"{WEIGHTS}: {name} holds NaN or infinite numbers; save the model again")


def check_entries(config: dict[str, Any]) -> None:
    """Raise InputError for a configuration without the entries of all taggers."""
    for name, value in required_entries(config, ENTRIES).items():
        check_value(value, ENTRIES[name], name)


def bias_entries(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the biases, the default bias and the temperature that a configuration has. Raises InputError."""
    entries = {name: config[name] for name in BIAS_ENTRIES if name in config}
    for name, value in entries.items():
        check_value(value, BIAS_ENTRIES[name], name)
    if not 0 < (temperature := entries.get(TEMPERATURE, 1.0)) < float("inf"):
        raise InputError(f"{TEMPERATURE} must be > 0 and finite, got {temperature}")
    return entries


def required_entries(description: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Return the named entries of a description. Raises InputError for one that is missing."""
    for name in names:
        if name not in description:
            raise InputError(f"the entry {name!r} is missing")
    return {name: description[name] for name in names}


def arrays_of_features(arrays: Mapping[str, Array]) -> dict[str, Array]:
    """Return the arrays of a model's features, by their names there."""
    return {
        name.removeprefix(FEATURE_PREFIX): array for name, array in arrays.items() if name.startswith(FEATURE_PREFIX)
    }


def add_checksums(config: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Return a configuration with its format, and with checksums of itself and of the weights in the folder."""
    config = {"format": FORMAT, **config}
    return {**config, CHECKSUMS: {WEIGHTS: _file_checksum(folder / WEIGHTS), CONFIG: _checksum(config)}}


def _file_checksum(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _checksum(config: dict[str, Any]) -> str:
    """Return a checksum that does not depend on white space and the order of keys."""
    return hashlib.sha256(json.dumps(config, sort_keys=True).encode()).hexdigest()


TableType = Literal["float32", "float16", "int8"]
TABLES = "tables"  # entry of a configuration: {name: {"width": type, "rows": number including rows of zeros}}
ENTRY = {"width": TableType, "rows": int}
QUANTIZED_TABLES = ("scorer.node", "scorer.edge", "scorer.labels.node", "scorer.weight")  # the last: SegmentLinear
ROWS = ".rows"  # ends the name of the row numbers in the file, ascending, (n,) int32; missing if all are in it
SCALE = ".scale"  # ends the name of the factors of the rows of an int8 table, (n,) float32
LEVELS = 127  # on both sides of 0
NamedArrays = Mapping[str, np.ndarray]


def quantize_tables(arrays: NamedArrays, width: TableType) -> tuple[dict[str, np.ndarray], dict[str, dict[str, Any]]]:
    """Return tables (R, C) float32 as arrays for a file, and entries for those that were changed.

    Rows of zeros are omitted if that saves space. With int8 weights are multiples of 1/127 of the largest one of their
    row. Raises InputError for weights that are too large for float16.
    """
    quantized: dict[str, np.ndarray] = {}
    entries: dict[str, dict[str, Any]] = {}
    for name, table in arrays.items():
        rows = np.flatnonzero(table.any(1)).astype(np.int32)
        sparse = rows.nbytes + len(rows) * table[:1].nbytes < table.nbytes
        if sparse:
            quantized[name + ROWS] = rows
        if sparse or width != "float32":
            entries[name] = {"width": width, "rows": len(table)}
        quantized |= _with_width(name, table[rows] if sparse else table, width)
    return quantized, entries


def table_array_names(entries: Mapping[str, Any]) -> list[str]:
    """Return the names of all arrays of tables in a configuration. Raises InputError for entries of wrong types."""
    tables = entries.get(TABLES, {})
    check_value(tables, dict[str, dict[str, Any]], TABLES)
    for name, entry in tables.items():
        check_fields(entry, ENTRY, f"{TABLES}.{name}")
    return [name + end for name in tables for end in ("", ROWS, SCALE)]


def dequantize_tables(entries: Mapping[str, Any], arrays: NamedArrays) -> dict[str, np.ndarray]:
    """Return arrays in which the tables of a configuration are complete and float32.

    Raises InputError for arrays that do not fit the entries.
    """
    names = table_array_names(entries)
    dequantized = {name: array for name, array in arrays.items() if name not in names}
    for name, entry in entries.get(TABLES, {}).items():
        table, rows, scale = (arrays.get(name + end) for end in ("", ROWS, SCALE))
        if table is None or table.ndim != 2 or table.dtype != np.dtype(entry["width"]):
            raise InputError(f"{TABLES}: the weights {name} are not a table of {entry['width']}")
        rows = np.arange(len(table), dtype=np.int32) if rows is None and len(table) == entry["rows"] else rows
        if rows is None or not _are_rows(rows, len(table), entry["rows"]):
            raise InputError(
                f"{TABLES}: the rows of {name} are not {len(table)} ascending numbers below {entry['rows']}"
            )
        if entry["width"] == "int8" and (scale is None or scale.shape != rows.shape or scale.dtype != np.float32):
            raise InputError(f"{TABLES}: the weights {name} need a float32 scale for each row")
        dequantized[name] = np.zeros((entry["rows"], table.shape[1]), np.float32)
        dequantized[name][rows] = table if scale is None else table * scale[:, None]
    return dequantized


def _with_width(name: str, table: np.ndarray, width: TableType) -> dict[str, np.ndarray]:
    if width == "int8":
        scale = (np.abs(table).max(1, initial=0) / LEVELS).astype(np.float32)
        steps = np.rint(table / np.where(scale > 0, scale, 1)[:, None])
        return {name: steps.clip(-LEVELS, LEVELS).astype(np.int8), name + SCALE: scale}
    largest = np.abs(table).max(initial=0)
    if largest > np.finfo(width).max:
        raise InputError(f"{name} has weights up to {largest:g}, too large for {width}; use int8")
    return {name: table.astype(width, copy=False)}


def _are_rows(rows: np.ndarray, count: int, total: int) -> bool:
    """Return True for `count` ascending row numbers of a table of `total` rows."""
    if rows.dtype != np.int32 or rows.shape != (count,):
        return False
    return not count or bool(rows[0] >= 0 and rows[-1] < total and (np.diff(rows) > 0).all())
