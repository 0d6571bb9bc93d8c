"""Reading tables: parquet, JSON, CSV, saved folders of `datasets`, and data sets in memory."""

import csv
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from structperc.data.annotations import TYPES, ReportHandler, Row, SpanReport, check_conflicts, convert_exports
from structperc.data.corpus import Corpus
from structperc.data.json_data import parse_json_records
from structperc.data.tables import (
    DELIMITERS,
    EMPTY_ROWS,
    FOLDER,
    JSON,
    PARQUET,
    TableOptions,
    table_corpus,
    table_format,
)
from structperc.data.text_files import expand_path, read_text, split_lines
from structperc.errors import InputError

if TYPE_CHECKING:
    from datasets import Dataset


def read_table(
    path: str | Path,
    options: TableOptions,
    encoding: str = "utf-8",
    unit: str = "sentence",
    on_report: ReportHandler = check_conflicts,
) -> Corpus:
    """Read a table as a corpus, see `tables.table_corpus`.

    The format is that of the name: .parquet, .jsonl (.ndjson, .json), .csv (.tsv), the last two also packed, as
    .jsonl.gz, or a folder of `save_to_disk`. JSON is an object per line or an array of objects, also as exported by
    annotation tools. CSV is separated by commas or, if the first line has none, by semicolons or tabs. Raises
    InputError for other names and malformed files, and as `table_corpus` does.
    """
    path = expand_path(path)
    if table_format(path) in (FOLDER, PARQUET):
        return dataset_corpus(_dataset(path), options, str(path), unit, on_report)
    return table_corpus(iterate_rows(path, encoding, options.heading), options, str(path), unit, on_report)


def read_best_fit(
    path: str | Path, options: TableOptions, encoding: str = "utf-8", unit: str = "sentence"
) -> tuple[Corpus, TableOptions, SpanReport | None]:
    """Read a table with the offset unit and tokenizer that give the fewest conflicts.

    Returns the corpus, the options used and the remaining conflicts, which are not an error.
    """
    reports: list[SpanReport] = []
    corpus = read_table(path, options, encoding, unit, reports.append)
    while reports and (better := reports[-1].better_options()):
        options = options._replace(text_options=min(better.values(), key=lambda one: one[1])[0])
        corpus = read_table(path, options, encoding, unit, reports.append)
    return corpus, options, reports[-1] if reports else None


def iterate_rows(path: str | Path, encoding: str = "utf-8", heading: bool = True) -> Iterator[Row]:
    """Yield the rows of a table with their places. Raises InputError as `read_table` does.

    The column `EMPTY_ROWS` of CSV, unless a column has that name, counts the empty rows before a row.
    """
    path = expand_path(path)
    name, kind = str(path), table_format(path)
    if kind in (FOLDER, PARQUET):
        return _numbered_rows(_dataset(path), name)
    if kind in JSON:
        return convert_exports(parse_json_records(read_text(path, encoding), name), name)
    if kind in DELIMITERS:
        text = read_text(path, encoding)
        return _csv_rows(text, detect_delimiter(text, kind), name, heading)
    known = ", ".join([PARQUET, *JSON, *DELIMITERS])
    raise InputError(f"{name}: a table is a file that ends in {known}, or a saved folder; rename it, or use Conll")


def class_names(path: str | Path, column: str) -> Sequence[str] | None:
    """Return the names of the class labels in a column of a parquet file or saved folder; None for others."""
    path = expand_path(path)
    if table_format(path) not in (PARQUET, FOLDER):
        return None
    return _names((_dataset(path).features or {}).get(column))


def detect_delimiter(text: str, kind: str) -> str:
    """Return the delimiter of CSV, see `read_table`."""
    first = next((line for line in split_lines(text) if line.strip()), "")
    usual = DELIMITERS[kind]
    return usual if usual in first else next((one for one in (";", "\t") if one in first), usual)


def dataset_corpus(
    data: Any, options: TableOptions, name: str, unit: str = "sentence", on_report: ReportHandler = check_conflicts
) -> Corpus:
    """Return a `datasets.Dataset`, or an `IterableDataset`, which is read completely, as a corpus.

    Labels stored as numbers are named by the options or by the features of the data. Raises InputError for missing
    columns, and as `table_corpus` does; places are the name and the number of the row, from 1.
    """
    features = data.features or {}
    if features and (missing := [column for column in options.columns.values() if column not in features]):
        raise InputError(f"{name}: no columns {missing} among {list(features)}; change columns")
    own = {role: _names(features.get(column)) for role, column in options.columns.items()}
    names = {**{role: found for role, found in own.items() if found}, **options.names}
    if features:
        data = data.select_columns(list(dict.fromkeys(options.columns.values())))
    if hasattr(data, "with_format"):
        data = data.with_format(None)
    return table_corpus(_numbered_rows(data, name), options._replace(names=names), name, unit, on_report)


def _numbered_rows(data: Any, name: str) -> Iterator[Row]:
    return ((f"{name}, row {number}", row) for number, row in enumerate(data, 1))


def _names(feature: Any) -> Sequence[str] | None:
    """The names of a column of class labels, of lists of them, or of lists of spans with such a label."""
    item = getattr(feature, "feature", feature)
    if isinstance(item, Mapping):
        item = next((item[key] for key in TYPES if key in item), None)
    return getattr(item, "names", None)


def _dataset(path: Path) -> "Dataset":
    """Load a saved folder or a parquet file."""
    import datasets  # slow imports that text files do not need
    import pyarrow as pa
    import pyarrow.parquet

    if (path / "dataset_dict.json").is_file():
        splits = ", ".join(sorted(part.name for part in path.iterdir() if part.is_dir()))
        raise InputError(f"{path}: this folder has the splits {splits}; name one of them, {path}/...")
    folder = path.is_dir()
    try:
        return datasets.load_from_disk(str(path)) if folder else datasets.Dataset(pyarrow.parquet.read_table(path))
    except (OSError, ValueError, KeyError, TypeError, pa.ArrowException) as error:
        what = "a folder of save_to_disk" if folder else "a parquet file"
        raise InputError(f"{path}: cannot read this as {what} ({' '.join(str(error).split()):.200})") from None


def _csv_rows(text: str, delimiter: str, name: str, heading: bool) -> Iterator[Row]:
    """Yield the rows after the heading, as strings; a place is the line on which a row ends."""
    lines = csv.reader((f"{line}\n" for line in split_lines(text.rstrip("\r\n"))), delimiter=delimiter, strict=True)
    names: list[str] | None = None
    empty = 0
    try:
        for fields in lines:
            place = f"{name}:{lines.line_num}"
            if not any(field.strip() for field in fields):
                empty += 1
                continue
            if names is None:
                names = [field.strip() for field in fields] if heading else [str(n + 1) for n in range(len(fields))]
                if len(set(names)) < len(names):
                    raise InputError(f"{place}: the heading names a column twice; rename one")
                if heading:
                    continue
            if len(fields) != len(names):
                first = "the heading has" if heading else "the first row has"
                raise InputError(f"{place}: {len(fields)} fields, but {first} {len(names)}; correct it")
            yield place, {EMPTY_ROWS: str(empty), **dict(zip(names, fields, strict=True))}
    except csv.Error as error:
        raise InputError(f"{name}:{lines.line_num}: invalid CSV ({error}); correct it") from None
