"""Tables in files: parquet, JSON lines, CSV, and the folders of `datasets.Dataset.save_to_disk`."""

import csv
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import datasets
import pyarrow as pa
import pyarrow.parquet
from datasets import Dataset

from structperc.data.annotations import TYPES, ReportHandler, Row, SpanReport, check_conflicts, convert_exports
from structperc.data.json_data import parse_json_records
from structperc.data.tables import DELIMITERS, EMPTY_ROWS, FOLDER, JSON, PARQUET, TableOptions, table_format, table_rows
from structperc.data.text_files import expand, read_text, split_lines
from structperc.errors import InputError


def read_table(
    path: str | Path, reader: TableOptions, encoding: str = "utf-8", tell: ReportHandler = check_conflicts
) -> Dataset:
    """Return a table as rows of sentences, see `tables.table_rows`.

    The form of the table is that of its name: .parquet, .jsonl (.ndjson, .json), .csv (.tsv), the last two also packed,
    as .jsonl.gz, or a folder that `save_to_disk` has written. JSON is an object on each line or an array of objects,
    also as annotation tools export them (see `exports`). Fields of CSV are between commas, those of .csv whose first
    line has none between its semicolons or tabs. Raises InputError for other names and what is no such table, and as
    `table_rows` does.
    """
    path = expand(path)
    name = str(path)
    kind = table_format(path)
    if kind in (FOLDER, PARQUET):
        return dataset_rows(_dataset(path), reader, name, tell)
    if kind in JSON or kind in DELIMITERS:
        return table_rows(text_rows(read_text(path, encoding), kind, name, reader.heading), reader, name, tell)
    known = f"{PARQUET}, {', '.join([*JSON, *DELIMITERS])}"
    raise InputError(f"{name}: a table is a file that ends in {known}, or a saved folder; rename it, or use Conll")


def read_best_fit(
    path: str | Path, reader: TableOptions, encoding: str = "utf-8"
) -> tuple[Dataset, TableOptions, SpanReport | None]:
    """Return a table read with the offsets and tokens with which most spans fit, that way to read it, and the misfits.

    What does not fit is read as `reader` says, and not refused.
    """
    reports: list[SpanReport] = []
    data = read_table(path, reader, encoding, reports.append)
    while reports and (better := reports[-1].better()):
        reader = reader._replace(text_options=min(better.values(), key=lambda one: one[1])[0])
        data = read_table(path, reader, encoding, reports.append)
    return data, reader, reports[-1] if reports else None


def iterate_rows(path: str | Path, encoding: str = "utf-8", heading: bool = True) -> Iterator[Row]:
    """Yield the rows of a table as they are, with their places. Raises InputError as `read_table` does."""
    path = expand(path)
    kind = table_format(path)
    if kind in JSON or kind in DELIMITERS:
        return text_rows(read_text(path, encoding), kind, str(path), heading)
    return _placed(_dataset(path), str(path))


def class_names(path: str | Path, column: str) -> Sequence[str] | None:
    """Return the names that a parquet file or a saved folder has for the numbers of a column; None for others."""
    path = expand(path)
    if table_format(path) not in (PARQUET, FOLDER):
        return None
    return _names((_dataset(path).features or {}).get(column))


def _dataset(path: Path) -> Dataset:
    return _saved(path) if table_format(path) == FOLDER else _parquet(path)


def _placed(data: Any, name: str) -> Iterator[Row]:
    """The rows of a data set, with their numbers from 1."""
    return ((f"{name}, row {number}", row) for number, row in enumerate(data, 1))


def text_rows(text: str, kind: str, name: str, heading: bool = True) -> Iterator[Row]:
    """Yield the rows of a table in a text of JSON or CSV, with their places, see `read_table`.

    The column `EMPTY_ROWS` of CSV, unless the heading names one so, counts empty rows before a row.
    """
    if kind in JSON:
        return convert_exports(parse_json_records(text, name), name)
    return _csv_rows(text, detect_delimiter(text, kind), name, heading)


def detect_delimiter(text: str, kind: str) -> str:
    """Return what separates the fields of CSV, see `read_table`."""
    first = next((line for line in split_lines(text) if line.strip()), "")
    usual = DELIMITERS[kind]
    return usual if usual in first else next((one for one in (";", "\t") if one in first), usual)


def dataset_rows(data: Any, reader: TableOptions, name: str, tell: ReportHandler = check_conflicts) -> Dataset:
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
    return table_rows(_placed(data, name), reader._replace(names=names), name, tell)


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


def _csv_rows(text: str, delimiter: str, name: str, heading: bool) -> Iterator[Row]:
    """The rows after the heading, as strings; a place is the line on which a row ends."""
    whole = (f"{line}\n" for line in split_lines(text.rstrip("\r\n")))
    lines = csv.reader(whole, delimiter=delimiter, strict=True)
    try:
        names: list[str] | None = None
        empty = 0
        for fields in lines:
            place = f"{name}:{lines.line_num}"
            if not any(field.strip() for field in fields):
                empty += 1
                continue
            if names is None:
                names = _heading(fields, place) if heading else [str(n) for n in range(1, len(fields) + 1)]
                if heading:
                    continue
            if len(fields) != len(names):
                first = "the heading has" if heading else "the first row has"
                raise InputError(f"{place}: {len(fields)} fields, but {first} {len(names)}; correct it")
            yield place, {EMPTY_ROWS: str(empty), **dict(zip(names, fields, strict=True))}
    except csv.Error as error:
        raise InputError(f"{name}:{lines.line_num}: not readable as CSV ({error}); correct it") from None


def _heading(fields: list[str], place: str) -> list[str]:
    names = [field.strip() for field in fields]
    if len(set(names)) < len(names):
        raise InputError(f"{place}: the heading names a column twice; rename one")
    return names
