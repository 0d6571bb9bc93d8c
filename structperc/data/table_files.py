"""Tables in files: parquet, JSON lines, CSV, and the folders of `datasets.Dataset.save_to_disk`."""

import csv
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import datasets
import pyarrow as pa
import pyarrow.parquet
from datasets import Dataset

from structperc.data.json_lines import json_rows
from structperc.data.table_names import DELIMITERS, FOLDER, JSON, PARQUET, kind_of_table
from structperc.data.tables import TYPES, Reader, Row, table_rows
from structperc.data.text import expand, lines_of, read_whole
from structperc.errors import InputError


def read_table(path: str | Path, reader: Reader, encoding: str = "utf-8") -> Dataset:
    """Return a table as rows of sentences, see `tables.table_rows`.

    The form of the table is that of its name: .parquet, .jsonl (.ndjson, .json), .csv (.tsv), the last two also packed,
    as .jsonl.gz, or a folder that `save_to_disk` has written. Raises InputError for other names and what is no such
    table, and as `table_rows` does.
    """
    path = expand(path)
    name = str(path)
    kind = kind_of_table(path)
    if kind == FOLDER:
        return dataset_rows(_saved(path), reader, name)
    if kind == PARQUET:
        return dataset_rows(_parquet(path), reader, name)
    if kind in JSON:
        return table_rows(json_rows(lines_of(read_whole(path, encoding)), name), reader, name)
    if kind in DELIMITERS:
        return table_rows(_csv_rows(read_whole(path, encoding), DELIMITERS[kind], name), reader, name)
    known = f"{PARQUET}, {', '.join([*JSON, *DELIMITERS])}"
    raise InputError(f"{name}: a table is a file that ends in {known}, or a saved folder; rename it, or use Conll")


def columns_of_table(path: str | Path, encoding: str = "utf-8") -> list[str]:
    """Return the names of the columns of a table; of JSON lines those of the first row. Raises InputError likewise."""
    path = expand(path)
    kind = kind_of_table(path)
    if kind not in (*JSON, *DELIMITERS):
        return (_saved(path) if kind == FOLDER else _parquet(path)).column_names
    text = read_whole(path, encoding)
    rows: Iterator[Row]
    if kind in DELIMITERS:
        rows = _csv_rows(text, DELIMITERS[kind], str(path))
    else:
        rows = iter(json_rows(lines_of(text), str(path)))
    return [name for _, row in islice(rows, 1) for name in row]


def dataset_rows(data: Any, reader: Reader, name: str) -> Dataset:
    """Return a `datasets.Dataset`, or an `IterableDataset`, which is read to its end, as rows of sentences.

    Numbers of labels become the names that `reader`, or else the features of the data, give them. Raises InputError for
    columns that are not there, and as `table_rows` does; a place is the name and the number of a row, from 1.
    """
    features = data.features or {}
    if features and (missing := [column for column in reader.columns.values() if column not in features]):
        raise InputError(f"{name}: no columns {missing} among {list(features)}; change columns")
    own = {role: _names(features.get(column)) for role, column in reader.columns.items()}
    names = {**{role: found for role, found in own.items() if found}, **reader.names}
    if features:
        data = data.select_columns(list(dict.fromkeys(reader.columns.values())))
    if isinstance(data, Dataset):
        data = data.with_format(None)
    rows = ((f"{name}, row {number}", row) for number, row in enumerate(data, 1))
    return table_rows(rows, reader._replace(names=names), name)


def _names(feature: Any) -> Sequence[str] | None:
    """The names of a column of class labels, of lists of them, or of lists of spans that have such a label."""
    item = getattr(feature, "feature", feature)
    if isinstance(item, Mapping):
        item = next((item[key] for key in TYPES if key in item), None)
    return getattr(item, "names", None)


def _saved(path: Path) -> Dataset:
    if (path / "dataset_dict.json").is_file():
        splits = ", ".join(sorted(part.name for part in path.iterdir() if part.is_dir()))
        raise InputError(f"{path}: this folder holds the splits {splits}; name one of them, {path}/...")
    try:
        return datasets.load_from_disk(str(path))
    except (OSError, ValueError, KeyError, TypeError, pa.ArrowException) as error:
        raise InputError(f"{path}: not a folder of save_to_disk ({' '.join(str(error).split()):.200})") from None


def _parquet(path: Path) -> Dataset:
    try:
        return Dataset(pyarrow.parquet.read_table(path))
    except OSError as error:
        raise InputError(f"{path}: cannot read this file ({error.strerror or error})") from None
    except (ValueError, TypeError, KeyError, pa.ArrowException) as error:
        raise InputError(f"{path}: not a parquet file ({' '.join(str(error).split()):.200}); write it again") from None


def _csv_rows(text: str, delimiter: str, name: str) -> Iterator[Row]:
    """The rows after the heading, as strings; a place is the line on which a row ends."""
    whole = (f"{line}\n" for line in lines_of(text.rstrip("\r\n")))
    lines = csv.reader(whole, delimiter=delimiter, strict=True)
    try:
        heading: list[str] | None = None
        for fields in lines:
            place = f"{name}:{lines.line_num}"
            if not fields or (heading is None and not any(fields)):
                continue
            if heading is None:
                heading = fields
                if len(set(fields)) < len(fields):
                    raise InputError(f"{place}: the heading names a column twice; rename one")
            elif len(fields) != len(heading):
                raise InputError(f"{place}: {len(fields)} fields, but the heading has {len(heading)}; correct it")
            else:
                row: Mapping[str, Any] = dict(zip(heading, fields, strict=True))
                yield place, row
    except csv.Error as error:
        raise InputError(f"{name}:{lines.line_num}: not readable as CSV ({error}); correct it") from None
