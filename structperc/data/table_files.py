"""Tables as corpora: parquet, JSON, CSV, saved folders, documents of annotation tools, and data sets in memory.

The named columns define the content of a row: with `text` (and `spans`) a document of running text, which is tokenized;
with `sentence` a token; otherwise a sentence, as lists or as strings split at white space.
"""

import ast
import csv
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from structperc.data.annotations import (
    TYPES,
    AnnotatedText,
    ReportHandler,
    SpanReport,
    TableRow,
    TextOptions,
    align_texts,
    check_conflicts,
    convert_exports,
    read_spans,
)
from structperc.data.corpus import Corpus, DroppedSegment
from structperc.data.json_data import parse_json_records
from structperc.data.label_sets import OR, convert_label_sets, is_label_set, label_sets_of_spans
from structperc.data.scheme_detection import warn_joined
from structperc.data.standoff import BRAT, CAS, STANDOFF, WEBANNO, read_standoff, standoff_format
from structperc.data.tag_schemes import convert
from structperc.data.text_files import expand_path, read_text, split_lines
from structperc.data.weights import WEIGHT
from structperc.errors import InputError

if TYPE_CHECKING:
    from datasets import Dataset

DELIMITERS = {".csv": ",", ".tsv": "\t"}
JSON = (".jsonl", ".ndjson", ".json")
PARQUET = ".parquet"
FOLDER = "folder"  # a folder written by `datasets.Dataset.save_to_disk`
FORMATS = {
    FOLDER: "a folder of save_to_disk",
    PARQUET: "parquet",
    ".csv": "CSV",
    ".tsv": "CSV with tabs",
    ".json": "JSON",
    BRAT: "stand-off files of brat",
    WEBANNO: "WebAnno TSV",
    CAS: "UIMA CAS JSON",
}
TEXT, SPANS, SENTENCE, DOCUMENT = "text", "spans", "sentence", "document"  # roles that are not columns of tokens
COMPLETE, NOT = "complete", "not"  # roles of annotated texts with incomplete labels
EMPTY_ROWS = ""  # the column of sentences of CSV whose sentences end with an empty row

USUAL_NAMES: Mapping[str, tuple[str, ...]] = {  # usual names of columns by role, without _, spaces and capitals
    "word": ("word", "words", "token", "tokens", "form"),
    "label": ("label", "labels", "tag", "tags", "nertag", "nertags", "ner", "nerlabel", "nerlabels", "bio", "iob"),
    TEXT: ("text",),
    SPANS: ("spans", "entities", "label", "labels", "annotations"),
    SENTENCE: ("sentence", "sentence#", "sentenceid", "sentid", "sent", "sentenceidx", "sentencenumber"),
    DOCUMENT: ("document", "documentid", "docid", "doc"),
}
_NO_COMMA = re.compile(r"""(['"])\s+['"]""")


def table_format(path: Path) -> str | None:
    """Return the format of a table: its suffix before .gz, FOLDER or one of `STANDOFF`; None for other names."""
    if (documents := standoff_format(path)) is not None:
        return documents
    if any((path / name).is_file() for name in ("dataset_info.json", "dataset_dict.json")):
        return FOLDER
    suffixes = path.suffixes[:-1] if path.suffix == ".gz" else path.suffixes
    kind = suffixes[-1].lower() if suffixes else ""
    return kind if kind in (PARQUET, *JSON, *DELIMITERS) else None


def usual_columns(role: str, names: Iterable[str]) -> list[str]:
    """Return the columns with a usual name of a role, ignoring capitals and word breaks."""
    plain = {name: re.sub(r"[\s_-]", "", name.lower()) for name in names}
    return [name for usual in USUAL_NAMES.get(role, (role,)) for name in plain if plain[name] == usual]


def candidate_columns(row: Mapping[str, Any], roles: Iterable[str]) -> dict[str, list[str]]:
    """Return for each role the columns of a row with a usual name and a possible value."""
    return {role: [name for name in usual_columns(role, row) if _is_possible(role, row[name])] for role in roles}


def unique_columns(among: Mapping[str, list[str]], file: str) -> dict[str, str]:
    """Return the column of each role that has one. Raises InputError for a role with several."""
    if unclear := next((role for role, names in among.items() if len(names) > 1), None):
        advice = f"set --columns {unclear}=... and the other roles"
        raise InputError(f"{file}: ambiguous column for {unclear}: {' or '.join(among[unclear])}; {advice}")
    return {role: names[0] for role, names in among.items() if names}


def _is_possible(role: str, value: Any) -> bool:
    if role == TEXT:
        return isinstance(value, str)
    marks = isinstance(value, list | tuple) and all(isinstance(mark, Mapping | list | tuple) for mark in value)
    if role == SPANS:
        return marks or isinstance(value, Mapping) or (isinstance(value, str) and value.lstrip().startswith("[{"))
    return not (marks and value) and not isinstance(value, Mapping)


def parse_column_options(columns: Sequence[str], file: str) -> dict[str, str]:
    """Return the columns of roles given as ROLE=COLUMN. Raises InputError for other options."""
    pairs = [option.partition("=") for option in columns]
    if wrong := [role for role, equals, _ in pairs if not equals]:
        raise InputError(f"{file}: --columns of a table are ROLE=COLUMN, such as word=tokens, not {wrong[0]!r}")
    roles = [role for role, *_ in pairs]
    if twice := [role for role in roles if roles.count(role) > 1]:
        raise InputError(f"{file}: --columns has {twice[0]} twice; give it one column")
    return {role: column for role, _, column in pairs}


class TableOptions(NamedTuple):
    """Options for reading rows.

    Args:
        columns: the column of each role.
        names: the names of labels stored as numbers, by role.
        text_options: for running text and its spans.
        scheme: tag scheme of the labels made from spans.
        heading: True if the first row of CSV names the columns; otherwise they are called "1", "2", ...
    """

    columns: Mapping[str, str]
    names: Mapping[str, Sequence[str]] = {}
    text_options: TextOptions = TextOptions()
    scheme: str = "IOB2"
    heading: bool = True

    def options(self) -> dict[str, Any]:
        """Return all options by name, including the text options."""
        fields = self._asdict()
        return fields.pop("text_options")._asdict() | fields

    def check(self, name: str) -> None:
        """Raise InputError for roles that exclude each other and for unknown text options."""
        given = set(self.columns)
        of_texts = {TEXT, SPANS, DOCUMENT, WEIGHT, *((COMPLETE, NOT) if SPANS in given else ())}
        if TEXT in given and not given <= of_texts:
            raise InputError(f"{name}: columns name text and {sorted(given - of_texts)}; remove one")
        if not given & {TEXT, "word"} or "line" in given or (SPANS in given and TEXT not in given):
            raise InputError(f"{name}: columns must name word, or text and spans, and not line; got {sorted(given)}")
        self.text_options.check()
        if SPANS in given and self.scheme == "none":
            raise InputError(f"{name}: spans are segments; set scheme to IOB2, IOBES, ...")

    @property
    def token_columns(self) -> list[tuple[str, str]]:
        """Roles and columns with a string for each token."""
        columns = [(role, column) for role, column in self.columns.items() if role not in (SENTENCE, DOCUMENT)]
        return sorted(columns, key=lambda one: one[0] == WEIGHT)  # last, as a row may have one weight for all words


class TableSurvey(NamedTuple):
    """Format of a table, and the options that fit it."""

    kind: str  # see `table_format`
    reader: TableOptions
    tool: str | None  # annotation tool that exported it, if known
    place: str  # unit of locations, "line" or "row"
    spans: SpanReport | None  # for texts with spans
    others: list[str]  # columns without a role

    def joined(self, other: "TableSurvey") -> "TableSurvey":
        """Return a survey with options for this table and that of another split."""
        names = max(self.reader.names, other.reader.names, key=lambda one: len(one.get("label", ())))
        reader, spans = self.reader._replace(names=names), self.spans
        if spans is not None and other.spans is not None:
            options = (other.spans if spans.text_options.offsets == "characters" else spans).text_options
            texts, conflicts = [*spans.texts, *other.spans.texts], [*spans.conflicts, *other.spans.conflicts]
            missing = [*spans.missing, *other.spans.missing]
            spans = spans._replace(text_options=options, texts=texts, conflicts=conflicts, missing=missing)
        return self._replace(reader=reader, spans=spans)

    @property
    def format(self) -> str:
        """Format of the file and content of a row, as a text."""
        columns = self.reader.columns
        content = "a text with spans" if SPANS in columns else "a token" if SENTENCE in columns else "a sentence"
        by = f" of {self.tool}" if self.tool else ""
        return f"{FORMATS.get(self.kind, 'JSON lines')}{by}, {content} in each row"


class TableSentence(NamedTuple):
    """A sentence of a table."""

    place: str
    document: Any  # identifies its document; None: the sentence is its own document
    columns: dict[str, list[str]]  # by role
    lines: list[int]  # lines of its tokens, for tables in text files; otherwise empty


def table_corpus(
    rows: Iterable[TableRow],
    options: TableOptions,
    name: str,
    unit: str = "sentence",
    on_report: ReportHandler = check_conflicts,
) -> Corpus:
    """Return the rows of the table `name` as a corpus.

    `on_report` handles conflicts between spans and tokens. Raises InputError with the location of a row for missing
    columns, values that are not words or labels, columns of different lengths, and documents that are not contiguous;
    for a table without tokens.
    """
    options.check(name)
    dropped: list[DroppedSegment] = []
    if TEXT in options.columns:
        sentences = _text_rows(rows, options, name, on_report, dropped)
    else:
        sentences = (_token_rows if SENTENCE in options.columns else _sentence_rows)(rows, options)
    flat: dict[str, list[str]] = {}
    boundaries, documents, numbers = [0], [], []
    seen: dict[tuple[str, Any], int] = {}
    for number, (place, document, columns, lines) in enumerate(sentences):
        for role, values in columns.items():
            if len(values) != len(columns["word"]):
                raise InputError(f"{place}: {len(columns['word'])} words, but {len(values)} of {role!r}; correct it")
            flat.setdefault(role, []).extend(values)
        key = ("", number) if document is None else (DOCUMENT, document)
        if seen.setdefault(key, len(seen)) != len(seen) - 1:
            advice = "make its rows adjacent, or remove document from columns"
            raise InputError(f"{place}: document {document!r:.60} continues after another one; {advice}")
        documents.append(seen[key])
        boundaries.append(len(flat["word"]))
        numbers += lines
    if not flat.get("word"):
        raise InputError(f"{name}: there are no tokens in this table")
    line_numbers = numbers if len(numbers) == len(flat["word"]) else None
    return replace(Corpus.from_columns(flat, boundaries, documents, unit, name, line_numbers), dropped=dropped)


def _sentence_rows(rows: Iterable[TableRow], options: TableOptions) -> Iterator[TableSentence]:
    for place, row in rows:
        columns: dict[str, list[str]] = {}
        for role, column in options.token_columns:
            value = _value(row, column, place)
            values = split_cell(value, f"{place}: column {column!r}") if isinstance(value, str) else value
            if role == WEIGHT and isinstance(value, float | int):  # of the whole row
                values = [value] * len(columns["word"])
            if not isinstance(values, Sequence):
                raise InputError(f"{place}: column {column!r} has {value!r:.40}, not a list of strings; change columns")
            columns[role] = [_string(cell, role, column, place, options) for cell in values]
        yield TableSentence(place, _document(row, place, options), columns, _line(place) * len(columns["word"]))


def split_cell(value: str, place: str) -> list[str]:
    """Return the words in a cell: between white space, or of a list of strings written as JSON or Python.

    Raises InputError, which begins with `place`, for a list without commas, as NumPy prints it.
    """
    if not (value.startswith("[") and value.endswith("]")):
        return value.split()
    try:
        words = ast.literal_eval(value)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return value.split()
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        return value.split()
    if _NO_COMMA.search(value):
        raise InputError(f"{place} has a list without commas; write spaces between words, or a list as JSON")
    return words


def _token_rows(rows: Iterable[TableRow], options: TableOptions) -> Iterator[TableSentence]:
    """Read a token per row; a sentence begins where the column of sentences has a new value that is not empty."""
    current: TableSentence | None = None
    last, column_of_sentences = None, options.columns[SENTENCE]
    for place, row in rows:
        if column_of_sentences not in row:
            if column_of_sentences == EMPTY_ROWS:
                raise InputError(f"{place}: sentence: '' needs CSV with empty rows between sentences; name a column")
            raise _missing(row, column_of_sentences, place)
        value = row[column_of_sentences]
        if current is None or (value not in (None, "") and value != last):
            if current is not None:
                yield current
            document, last = _document(row, place, options), value
            current = TableSentence(place, document, {role: [] for role, _ in options.token_columns}, [])
        for role, column in options.token_columns:
            current.columns[role].append(_string(_value(row, column, place), role, column, place, options))
        current.lines.extend(_line(place))
    if current is not None:
        yield current


def _text_rows(
    rows: Iterable[TableRow],
    options: TableOptions,
    name: str,
    on_report: ReportHandler,
    dropped: list[DroppedSegment],
) -> Iterator[TableSentence]:
    """Read a text per row, which is a document unless a column of documents is named; append to the dropped spans."""
    texts, documents, complete, weights = [], [], [], []
    excluded: list[tuple[int, AnnotatedText]] = []  # spans that are not of a type, with the number of their text
    rows = list(rows)
    _check_spans_given(rows, options)
    for number, (place, row) in enumerate(rows):
        column = options.columns[TEXT]
        value = _value(row, column, place)
        if not isinstance(value, str):
            raise InputError(f"{place}: column {column!r} has {value!r:.40}, not a text; change columns")
        documents.append(_document(row, place, options) if DOCUMENT in options.columns else number)
        texts.append(AnnotatedText(place, value, _spans(row, place, options) if SPANS in options.columns else None))
        complete.append(_is_complete(row, place, options))
        weights.append(_value(row, options.columns[WEIGHT], place) if WEIGHT in options.columns else None)
        excluded += [(number, annotated) for annotated in _excluded_spans(row, value, place, options)]

    def report_dropped(report: SpanReport) -> None:
        dropped.extend(report.dropped())
        on_report(report)

    aligned = align_texts(texts, options.text_options, name, report_dropped)
    wrong = _align_excluded(excluded, options, name, on_report)
    sets = bool({COMPLETE, NOT} & options.columns.keys())
    complete_labels: list[list[str]] = []
    for number, ((place, _, given), (text, spans, _)) in enumerate(zip(texts, aligned, strict=True)):
        words = text.words
        if sets and (kind := next((kind for _, _, kind in spans if OR in kind), None)):
            raise InputError(f"{place}: type {kind!r}: {OR} separates labels in incomplete annotation; rename the type")
        labels = label_sets_of_spans(len(text.tokens), spans, wrong.get(number, []), complete[number], place)
        for a, b in pairwise(text.sentences):
            columns = {"word": words[a:b]}
            if given is not None:
                of_sentence = labels[a:b]
                incomplete = sets and any(map(is_label_set, of_sentence))
                columns["label"] = (convert_label_sets if incomplete else convert)(of_sentence, "IOB2", options.scheme)
                complete_labels += [] if incomplete else [of_sentence]
            if WEIGHT in options.columns:
                columns[WEIGHT] = [_string(weights[number], WEIGHT, options.columns[WEIGHT], place, options)] * (b - a)
            yield TableSentence(place, documents[number], columns, _line(place) * (b - a))
    warn_joined(name, complete_labels, "IOB2", options.scheme)


def _check_spans_given(rows: Sequence[TableRow], options: TableOptions) -> None:
    """Raise InputError for a row without the column of spans if other rows have it."""
    column = options.columns.get(SPANS)
    lacking = [place for place, row in rows if column not in row] if column is not None else []
    if lacking and len(lacking) < len(rows):
        others = f"{len(rows) - len(lacking):,} of {len(rows):,} rows have it"
        advice = f'write "{column}": [] if the text has no spans, or remove the row'
        raise InputError(f"{lacking[0]}: this row has no field {column!r} ({others}); {advice}")


def _is_complete(row: Mapping[str, Any], place: str, options: TableOptions) -> bool:
    """Return False if tokens outside of the spans are unknown."""
    value = row.get(options.columns[COMPLETE], True) if COMPLETE in options.columns else True
    if not isinstance(value, bool):
        raise InputError(
            f"{place}: column {options.columns[COMPLETE]!r} has {value!r:.40}, not true or false; correct it"
        )
    return value


def _excluded_spans(row: Mapping[str, Any], text: str, place: str, options: TableOptions) -> list[AnnotatedText]:
    """Return the text with the spans that are not of a type, for each type: spans of several types may overlap."""
    if NOT not in options.columns or not row.get(options.columns[NOT]):
        return []
    excluding = options._replace(columns={SPANS: options.columns[NOT]})
    excluded = _spans(row, place, excluding)
    kinds = sorted({span.type for span in excluded})
    return [AnnotatedText(place, text, [span for span in excluded if span.type == kind]) for kind in kinds]


def _align_excluded(
    excluded: Sequence[tuple[int, AnnotatedText]], options: TableOptions, name: str, on_report: ReportHandler
) -> dict[int, list[tuple[int, int, str]]]:
    """Return the spans of tokens that are not of a type, by the number of their text."""
    if not excluded:
        return {}
    aligned = align_texts([text for _, text in excluded], options.text_options, name, on_report)
    by_text: dict[int, list[tuple[int, int, str]]] = {}
    for (number, _), aligned_text in zip(excluded, aligned, strict=True):
        by_text.setdefault(number, []).extend(aligned_text.spans)
    return by_text


def _spans(row: Mapping[str, Any], place: str, options: TableOptions) -> list[Any]:
    column = options.columns[SPANS]
    if column in row and row[column] is None:
        raise InputError(f"{place}: column {column!r} is empty; write [] for no spans, or remove the row")
    type_name = partial(_string, role=SPANS, column=column, place=place, options=options)
    value = _value(row, column, place)
    return read_spans([] if value == "" else value, column, place, type_name, quoted=True)  # an empty cell of CSV


def _line(place: str) -> list[int]:
    """Return the line of a location "file:line" in a list, which is empty for other locations."""
    _, colon, line = place.rpartition(":")
    return [int(line)] if colon and line.isdecimal() else []


def _value(row: Mapping[str, Any], column: str, place: str) -> Any:
    if column not in row:
        raise _missing(row, column, place)
    if row[column] is None:
        raise InputError(f"{place}: column {column!r} is empty; fill it in, or remove the row")
    return row[column]


def _missing(row: Mapping[str, Any], column: str, place: str) -> InputError:
    names = [name for name in row if name != EMPTY_ROWS]
    return InputError(f"{place}: no column {column!r} among {names}; change columns, or add it to the row")


def _document(row: Mapping[str, Any], place: str, options: TableOptions) -> Any:
    if DOCUMENT not in options.columns:
        return None
    value = _value(row, options.columns[DOCUMENT], place)
    if not isinstance(value, str | int):
        raise InputError(f"{place}: column {options.columns[DOCUMENT]!r} has {value!r:.40}, not a string or integer")
    return value


def _string(value: Any, role: str, column: str, place: str, options: TableOptions) -> str:
    """Return a word, label or weight; integers are replaced by the names of labels."""
    if role == WEIGHT and isinstance(value, float | int):
        return str(value)
    if isinstance(value, int) and not isinstance(value, bool):
        names = options.names.get(role)
        if names is None:
            advice = f"set label_names: {{{role}: [O, B-..., ...]}}"
            raise InputError(f"{place}: column {column!r} has numbers without names; {advice}")
        if not 0 <= value < len(names):
            raise InputError(f"{place}: column {column!r} has {value}, but there are {len(names)} names; correct it")
        return names[value]
    if not isinstance(value, str) or not value:
        raise InputError(f"{place}: column {column!r}: expected a word or label, got {value!r:.40}; correct it")
    return value


# -- files and data sets -----------------------------------------------------------------------------------


def read_table(
    path: str | Path,
    options: TableOptions,
    encoding: str = "utf-8",
    unit: str = "sentence",
    on_report: ReportHandler = check_conflicts,
) -> Corpus:
    """Read a table as a corpus, see `table_corpus`.

    The format is that of the name: .parquet, .jsonl (.ndjson, .json), .csv (.tsv), the last two also packed, as
    .jsonl.gz, a folder of `save_to_disk`, or of documents of annotation tools, see `read_standoff`. JSON is an object
    per line or an array of objects, also as exported by annotation tools. CSV is separated by commas or, if the first
    line has none, by semicolons or tabs. Raises InputError for other names and malformed files, and as `table_corpus`
    does.
    """
    path = expand_path(path)
    if table_format(path) in (FOLDER, PARQUET):
        return dataset_corpus(_dataset(path), options, str(path), unit, on_report)
    return table_corpus(iterate_rows(path, encoding, options.heading), options, str(path), unit, on_report)


def read_best_fit(
    path: str | Path,
    options: TableOptions,
    encoding: str = "utf-8",
    unit: str = "sentence",
    rows: Sequence[TableRow] | None = None,
) -> tuple[Corpus, TableOptions, SpanReport | None]:
    """Read a table with the offset unit and tokenizer that give the fewest conflicts.

    `rows` are those of the file, if they are known; not of parquet, whose rows do not name labels. Returns the corpus,
    the options used and a report of the remaining conflicts, which do not raise an error.
    """
    reports: list[SpanReport] = []

    def read() -> Corpus:
        if rows is None:
            return read_table(path, options, encoding, unit, reports.append)
        return table_corpus(rows, options, str(expand_path(path)), unit, reports.append)

    corpus = read()
    while reports and (better := reports[-1].better_options()):
        options = options._replace(text_options=min(better.values(), key=lambda one: one[1])[0])
        corpus = read()
    return corpus, options, reports[-1] if reports else None


def iterate_rows(path: str | Path, encoding: str = "utf-8", heading: bool = True) -> Iterator[TableRow]:
    """Yield the rows of a table with their locations. Raises InputError as `read_table` does.

    The column `EMPTY_ROWS` of CSV, unless a column has that name, counts the empty rows before a row.
    """
    path = expand_path(path)
    name, kind = str(path), table_format(path)
    if kind in (FOLDER, PARQUET):
        return _number_rows(_dataset(path), name)
    if kind in STANDOFF:
        return read_standoff(path, encoding)
    if kind in JSON:
        return convert_exports(parse_json_records(read_text(path, encoding), name), name)
    if kind in DELIMITERS:
        text = read_text(path, encoding)
        return _csv_rows(text, detect_delimiter(text, kind), name, heading)
    suffixes = ", ".join([PARQUET, *JSON, *DELIMITERS])
    wanted = f"a saved folder, documents of an annotation tool, or a file name with {suffixes}"
    raise InputError(f"{name}: expected {wanted}; rename it, or use Conll")


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
    return usual if usual in first else next((delimiter for delimiter in (";", "\t") if delimiter in first), usual)


def dataset_corpus(
    data: Any, options: TableOptions, name: str, unit: str = "sentence", on_report: ReportHandler = check_conflicts
) -> Corpus:
    """Return a `datasets.Dataset`, or an `IterableDataset`, which is read completely, as a corpus.

    Labels stored as numbers are named by the options or by the features of the data. Raises InputError for missing
    columns, and as `table_corpus` does; locations are the name and the number of the row, from 1.
    """
    features = data.features or {}
    if features and (missing := [column for column in options.columns.values() if column not in features]):
        raise InputError(f"{name}: no columns {missing} among {list(features)}; change columns")
    stored = {role: _names(features.get(column)) for role, column in options.columns.items()}
    names = {**{role: label_names for role, label_names in stored.items() if label_names}, **options.names}
    if features:
        data = data.select_columns(list(dict.fromkeys(options.columns.values())))
    if hasattr(data, "with_format"):
        data = data.with_format(None)
    return table_corpus(_number_rows(data, name), options._replace(names=names), name, unit, on_report)


def _number_rows(data: Any, name: str) -> Iterator[TableRow]:
    return ((f"{name}, row {number}", row) for number, row in enumerate(data, 1))


def _names(feature: Any) -> Sequence[str] | None:
    """Return the names of class labels, of lists of them, or of spans with such a label."""
    item = getattr(feature, "feature", feature)
    if isinstance(item, Mapping):
        item = next((item[key] for key in TYPES if key in item), None)
    return getattr(item, "names", None)


def _dataset(path: Path) -> "Dataset":
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


def _csv_rows(text: str, delimiter: str, name: str, heading: bool) -> Iterator[TableRow]:
    """Yield the rows after the heading, as strings; a location is the line on which a row ends."""
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
                    raise InputError(f"{place}: duplicate column in the heading; rename one")
                if heading:
                    continue
            if len(fields) != len(names):
                first = "the heading has" if heading else "the first row has"
                raise InputError(f"{place}: {len(fields)} fields, but {first} {len(names)}; correct it")
            yield place, {EMPTY_ROWS: str(empty), **dict(zip(names, fields, strict=True))}
    except csv.Error as error:
        raise InputError(f"{name}:{lines.line_num}: invalid CSV ({error}); correct it") from None
