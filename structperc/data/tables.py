"""Tables as corpora: rows that are sentences, tokens, or texts with marked spans.

The named columns tell: `text` (and `spans`) are running text, a document per row, which is tokenized; `sentence` tells
which tokens, one per row, form a sentence; otherwise a row is a sentence, with lists or strings split at white space.
"""

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from structperc.data.annotations import (
    AnnotatedText,
    LabelledText,
    ReportHandler,
    Row,
    SpanReport,
    TextOptions,
    check_conflicts,
    label_texts,
    read_spans,
)
from structperc.data.corpus import Corpus
from structperc.data.tag_schemes import convert, make_label
from structperc.errors import InputError

DELIMITERS = {".csv": ",", ".tsv": "\t"}
JSON = (".jsonl", ".ndjson", ".json")
PARQUET = ".parquet"
FOLDER = "folder"  # of `datasets.Dataset.save_to_disk`
FORMATS = {
    FOLDER: "a folder of save_to_disk",
    PARQUET: "parquet",
    ".csv": "CSV",
    ".tsv": "CSV with tabs",
    ".json": "JSON",
}
TEXT, SPANS, SENTENCE, DOCUMENT = "text", "spans", "sentence", "document"  # roles that are not columns of tokens
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
    """Return the format of a table: its suffix before .gz, or FOLDER; None for other names."""
    if any((path / name).is_file() for name in ("dataset_info.json", "dataset_dict.json")):
        return FOLDER
    suffixes = path.suffixes[:-1] if path.suffix == ".gz" else path.suffixes
    kind = suffixes[-1].lower() if suffixes else ""
    return kind if kind in (PARQUET, *JSON, *DELIMITERS) else None


def usual_columns(role: str, names: Iterable[str]) -> list[str]:
    """Return the columns with a usual name of a role, ignoring capitals and word breaks.

    Example:
        >>> usual_columns("sentence", ["Sentence #", "Word", "Tag"])
        ['Sentence #']
    """
    plain = {name: re.sub(r"[\s_-]", "", name.lower()) for name in names}
    return [name for usual in USUAL_NAMES.get(role, (role,)) for name in plain if plain[name] == usual]


def candidate_columns(row: Mapping[str, Any], roles: Iterable[str]) -> dict[str, list[str]]:
    """Return for each role the columns of a row with a usual name and a possible value.

    Example:
        >>> candidate_columns({"id": 1, "text": "Anna left", "label": [[0, 4, "PER"]]}, ["text", "spans", "label"])
        {'text': ['text'], 'spans': ['label'], 'label': []}
    """
    return {role: [name for name in usual_columns(role, row) if _is_possible(role, row[name])] for role in roles}


def _is_possible(role: str, value: Any) -> bool:
    if role == TEXT:
        return isinstance(value, str)
    marks = isinstance(value, list | tuple) and all(isinstance(one, Mapping | list | tuple) for one in value)
    if role == SPANS:
        return marks or isinstance(value, Mapping) or (isinstance(value, str) and value.lstrip().startswith("[{"))
    return not (marks and value) and not isinstance(value, Mapping)


def parse_column_options(columns: Sequence[str], file: str) -> dict[str, str]:
    """Return the columns of roles given as ROLE=COLUMN. Raises InputError for other options."""
    pairs = [one.partition("=") for one in columns]
    if wrong := [role for role, equals, _ in pairs if not equals]:
        raise InputError(f"{file}: --columns of a table are ROLE=COLUMN, such as word=tokens, not {wrong[0]!r}")
    return {role: column for role, _, column in pairs}


class TableOptions(NamedTuple):
    """Options for reading rows.

    Args:
        columns: the column of each role.
        names: the names of labels stored as numbers, by role.
        text_options: for running text and its spans.
        scheme: of the labels made from spans.
        heading: whether the first row of CSV names the columns; otherwise they are called "1", "2", ...
    """

    columns: Mapping[str, str]
    names: Mapping[str, Sequence[str]] = {}
    text_options: TextOptions = TextOptions()
    scheme: str = "IOB2"
    heading: bool = True

    def options(self) -> dict[str, Any]:
        """Return all options by name, including the text options."""
        own = self._asdict()
        return {**own.pop("text_options")._asdict(), **own}

    def check(self, name: str) -> None:
        """Raise InputError for roles that exclude each other and for unknown text options."""
        given = set(self.columns)
        if TEXT in given and not given <= {TEXT, SPANS, DOCUMENT}:
            raise InputError(f"{name}: columns name text and {sorted(given - {TEXT, SPANS, DOCUMENT})}; leave out one")
        if not given & {TEXT, "word"} or "line" in given or (SPANS in given and TEXT not in given):
            raise InputError(f"{name}: columns must name word, or text and spans, and no line; not {sorted(given)}")
        self.text_options.check()
        if SPANS in given and self.scheme == "none":
            raise InputError(f"{name}: spans are segments; set scheme to IOB2, IOBES, ...")

    @property
    def token_columns(self) -> list[tuple[str, str]]:
        """Roles and columns with a string for each token."""
        return [(role, column) for role, column in self.columns.items() if role not in (SENTENCE, DOCUMENT)]


class TableSurvey(NamedTuple):
    """How a table is read."""

    kind: str  # see `table_format`
    reader: TableOptions
    tool: str | None  # that exported it, if known
    row: str  # unit of places, "line" or "row"
    spans: SpanReport | None  # for texts with spans
    others: list[str]  # columns without a role

    def joined(self, other: "TableSurvey") -> "TableSurvey":
        """Return how this table and that of another split are read in the same way."""
        names = max(self.reader.names, other.reader.names, key=lambda one: len(one.get("label", ())))
        reader, spans = self.reader._replace(names=names), self.spans
        if spans is not None and other.spans is not None:
            of = other.spans if spans.text_options.offsets == "characters" else spans
            texts, conflicts = [*spans.texts, *other.spans.texts], [*spans.conflicts, *other.spans.conflicts]
            spans = SpanReport(spans.name, of.text_options, texts, conflicts, spans.joined)
        return self._replace(reader=reader, spans=spans)

    @property
    def format(self) -> str:
        """Format of the file, and the content of a row."""
        columns = self.reader.columns
        content = "a text with spans" if SPANS in columns else "a token" if SENTENCE in columns else "a sentence"
        by = f" of {self.tool}" if self.tool else ""
        return f"{FORMATS.get(self.kind, 'JSON lines')}{by}, {content} in each row"


class Sentence(NamedTuple):
    """A sentence of a table."""

    place: str
    document: Any  # identifies its document; None: the sentence is its own document
    columns: dict[str, list[str]]  # by role
    lines: list[int]  # of its tokens, for tables in text files; else empty


def table_corpus(
    rows: Iterable[Row],
    options: TableOptions,
    name: str,
    unit: str = "sentence",
    on_report: ReportHandler = check_conflicts,
) -> Corpus:
    """Return the rows of the table `name` as a corpus.

    `on_report` handles conflicts between spans and tokens. Raises InputError with the place of a row for missing
    columns, values that are not words or labels, columns of different lengths, and documents that are not contiguous;
    for a table without tokens.
    """
    options.check(name)
    if TEXT in options.columns:
        sentences = _text_rows(rows, options, name, on_report)
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
            advice = "put its rows together, or leave out document"
            raise InputError(f"{place}: document {document!r:.60} continues after another one; {advice}")
        documents.append(seen[key])
        boundaries.append(len(flat["word"]))
        numbers += lines
    if not flat.get("word"):
        raise InputError(f"{name}: there are no tokens in this table")
    known = numbers if len(numbers) == len(flat["word"]) else None
    return Corpus.from_columns(flat, boundaries, documents, unit, name, known)


def _sentence_rows(rows: Iterable[Row], options: TableOptions) -> Iterator[Sentence]:
    """A sentence per row."""
    for place, row in rows:
        columns = {}
        for role, column in options.token_columns:
            value = _value(row, column, place)
            values = split_cell(value, f"{place}: column {column!r}") if isinstance(value, str) else value
            if not isinstance(values, Sequence):
                raise InputError(f"{place}: column {column!r} has {value!r:.40}, not a list of strings; change columns")
            columns[role] = [_string(one, role, column, place, options) for one in values]
        yield Sentence(place, _document(row, place, options), columns, _line(place) * len(columns["word"]))


def split_cell(value: str, place: str) -> list[str]:
    """Return the words in a cell: between white space, or of a list of strings written as JSON or Python.

    Raises InputError, which begins with `place`, for a list without commas, as NumPy prints it.

    Example:
        >>> split_cell("Anna left", "a.csv:2"), split_cell("['B-PER', 'O']", "a.csv:2")
        (['Anna', 'left'], ['B-PER', 'O'])
    """
    if not (value.startswith("[") and value.endswith("]")):
        return value.split()
    try:
        found = ast.literal_eval(value)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return value.split()
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        return value.split()
    if _NO_COMMA.search(value):
        raise InputError(f"{place} has a list without commas; write spaces between words, or a list as JSON")
    return found


def _token_rows(rows: Iterable[Row], options: TableOptions) -> Iterator[Sentence]:
    """A token per row; a sentence ends where the column of sentences has a new value, unless it is empty."""
    current: Sentence | None = None
    last, column_of_sentences = None, options.columns[SENTENCE]
    for place, row in rows:
        if column_of_sentences not in row:
            if column_of_sentences == EMPTY_ROWS:
                raise InputError(f"{place}: sentence: '' is for CSV with empty rows between sentences; name a column")
            raise _missing(row, column_of_sentences, place)
        value = row[column_of_sentences]
        if current is None or (value not in (None, "") and value != last):
            if current is not None:
                yield current
            document, last = _document(row, place, options), value
            current = Sentence(place, document, {role: [] for role, _ in options.token_columns}, [])
        for role, column in options.token_columns:
            current.columns[role].append(_string(_value(row, column, place), role, column, place, options))
        current.lines.extend(_line(place))
    if current is not None:
        yield current


def _text_rows(rows: Iterable[Row], options: TableOptions, name: str, on_report: ReportHandler) -> Iterator[Sentence]:
    """A text per row, which is a document unless a column of documents is named."""
    texts, documents = [], []
    for number, (place, row) in enumerate(rows):
        column = options.columns[TEXT]
        value = _value(row, column, place)
        if not isinstance(value, str):
            raise InputError(f"{place}: column {column!r} has {value!r:.40}, not a text; change columns")
        documents.append(_document(row, place, options) if DOCUMENT in options.columns else number)
        texts.append(AnnotatedText(place, value, _spans(row, place, options) if SPANS in options.columns else None))
    labelled = label_texts(texts, options.text_options, name, on_report)
    for (place, _, spans), document, found in zip(texts, documents, labelled, strict=True):
        words = found.text.words
        labels = None if spans is None else _labels(found)
        for a, b in pairwise(found.text.sentences):
            own = {} if labels is None else {"label": convert(labels[a:b], "IOB2", options.scheme)}
            yield Sentence(place, document, {"word": words[a:b], **own}, _line(place) * (b - a))


def _labels(found: LabelledText) -> list[str]:
    """Labels of the tokens of a text in IOB2."""
    labels = ["O"] * len(found.text.tokens)
    for first, end, kind in found.spans:
        labels[first:end] = [make_label("B", kind), *[make_label("I", kind)] * (end - first - 1)]
    return labels


def _spans(row: Mapping[str, Any], place: str, options: TableOptions) -> list[Any]:
    column = options.columns[SPANS]
    if column in row and row[column] is None:
        raise InputError(f"{place}: column {column!r} is empty; write [] for no spans, or leave out the row")
    type_name = partial(_string, role=SPANS, column=column, place=place, options=options)
    value = _value(row, column, place)
    return read_spans([] if value == "" else value, column, place, type_name)  # an empty cell of CSV


def _line(place: str) -> list[int]:
    """The line in a place "file:line", in a list; an empty one for other places."""
    _, colon, line = place.rpartition(":")
    return [int(line)] if colon and line.isdecimal() else []


def _value(row: Mapping[str, Any], column: str, place: str) -> Any:
    if column not in row:
        raise _missing(row, column, place)
    if row[column] is None:
        raise InputError(f"{place}: column {column!r} is empty; fill it in, or leave out the row")
    return row[column]


def _missing(row: Mapping[str, Any], column: str, place: str) -> InputError:
    return InputError(
        f"{place}: no column {column!r} among {[name for name in row if name != EMPTY_ROWS]}; change columns"
    )


def _document(row: Mapping[str, Any], place: str, options: TableOptions) -> Any:
    if DOCUMENT not in options.columns:
        return None
    value = _value(row, options.columns[DOCUMENT], place)
    if not isinstance(value, str | int):
        raise InputError(f"{place}: column {options.columns[DOCUMENT]!r} has {value!r:.40}, not a name or number")
    return value


def _string(value: Any, role: str, column: str, place: str, options: TableOptions) -> str:
    """A word or label as a string, by its name if it is a number."""
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
