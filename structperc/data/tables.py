"""Which files are tables, by their names, and which of their columns are what, by theirs.

Rows of a table -> rows of sentences: a sentence, a token or a text with marked spans in each of them.
"""

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

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
from structperc.data.rows import rows
from structperc.data.tag_schemes import convert, make_label
from structperc.errors import InputError
from structperc.text import TextSpan

if TYPE_CHECKING:
    from datasets import Dataset


DELIMITERS = {".csv": ",", ".tsv": "\t"}
JSON = (".jsonl", ".ndjson", ".json")
PARQUET = ".parquet"
FOLDER = "folder"  # of `save_to_disk`

USUAL: Mapping[str, tuple[str, ...]] = {  # names that columns of a role often have, without _, spaces and capitals
    "word": ("word", "words", "token", "tokens", "form"),
    "label": ("label", "labels", "tag", "tags", "nertag", "nertags", "ner", "nerlabel", "nerlabels", "bio", "iob"),
    "text": ("text",),
    "spans": ("spans", "entities", "label", "labels", "annotations"),
    "sentence": ("sentence", "sentence#", "sentenceid", "sentid", "sent", "sentenceidx", "sentencenumber"),
    "document": ("document", "documentid", "docid", "doc"),
}


def table_format(path: Path) -> str | None:
    """Return the form of a table, its suffix before .gz or FOLDER; None for other names."""
    if any((path / name).is_file() for name in ("dataset_info.json", "dataset_dict.json")):
        return FOLDER
    suffixes = path.suffixes[:-1] if path.suffix == ".gz" else path.suffixes
    kind = suffixes[-1].lower() if suffixes else ""
    return kind if kind in (PARQUET, *JSON, *DELIMITERS) else None


def usual_columns(role: str, names: Iterable[str]) -> list[str]:
    """Return the columns that a role often has, whatever their capitals and word breaks are.

    Example:
        >>> usual_columns("sentence", ["Sentence #", "Word", "Tag"])
        ['Sentence #']
    """
    plain = {name: re.sub(r"[\s_-]", "", name.lower()) for name in names}
    return [name for usual in USUAL.get(role, (role,)) for name in plain if plain[name] == usual]


def candidate_columns(row: Mapping[str, Any], roles: Iterable[str]) -> dict[str, list[str]]:
    """Return for each role the columns of a row that have a usual name of it and a value that it can have.

    Example:
        >>> candidate_columns({"id": 1, "text": "Anna left", "label": [[0, 4, "PER"]]}, ["text", "spans", "label"])
        {'text': ['text'], 'spans': ['label'], 'label': []}
    """
    return {role: [name for name in usual_columns(role, row) if _can_be(role, row[name])] for role in roles}


def parse_column_options(columns: Sequence[str], file: str) -> dict[str, str]:
    """Return the columns of roles that a user names as ROLE=COLUMN. Raises InputError for other names."""
    pairs = [one.partition("=") for one in columns]
    if wrong := [role for role, equals, _ in pairs if not equals]:
        raise InputError(f"{file}: --columns of a table are ROLE=COLUMN, such as word=tokens, not {wrong[0]!r}")
    return {role: column for role, _, column in pairs}


def _can_be(role: str, value: Any) -> bool:
    if role == "text":
        return isinstance(value, str)
    marks = _is_list(value) and all(isinstance(one, Mapping) or _is_list(one) for one in value)
    if role == "spans":
        return marks or isinstance(value, Mapping) or (isinstance(value, str) and value.lstrip().startswith("[{"))
    return not (marks and value) and not isinstance(value, Mapping)


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple)


TEXT, SPANS, SENTENCE, DOCUMENT = "text", "spans", "sentence", "document"  # roles that are no columns of tokens
FORMATS = {
    FOLDER: "a folder of save_to_disk",
    ".parquet": "parquet",
    ".csv": "CSV",
    ".tsv": "CSV with tabs",
    ".json": "JSON",
}
_NO_COMMA = re.compile(r"""(['"])\s+['"]""")
EMPTY_ROWS = ""  # the column of sentences of CSV whose sentences end with an empty row


class TableOptions(NamedTuple):
    """How rows are read.

    Args:
        columns: the column of each role.
        names: the names of labels kept as numbers, by role.
        text_options: how running text becomes tokens, and its spans labels.
        scheme: in which spans become labels.
        heading: whether the first row of CSV names its columns; else these are called "1", "2", ...
    """

    columns: Mapping[str, str]
    names: Mapping[str, Sequence[str]] = {}
    text_options: TextOptions = TextOptions()
    scheme: str = "IOB2"
    heading: bool = True

    def options(self) -> dict[str, Any]:
        """Return all options by name, those of the cutting among them."""
        own = self._asdict()
        return {**own.pop("text_options")._asdict(), **own}

    def check(self, name: str) -> None:
        """Raise InputError for roles that cannot be read together, and unknown ways to cut a text."""
        given = set(self.columns)
        if TEXT in given and not given <= {TEXT, SPANS, DOCUMENT}:
            raise InputError(f"{name}: columns name text and {sorted(given - {TEXT, SPANS, DOCUMENT})}; leave out one")
        if not given & {TEXT, "word"} or "line" in given or (SPANS in given and TEXT not in given):
            raise InputError(f"{name}: columns must name word, or text and spans, and no line; not {sorted(given)}")
        self.text_options.check()
        if SPANS in given and self.scheme == "none":
            raise InputError(f"{name}: spans are segments; set scheme to IOB2, IOBES, ...")


class TableSurvey(NamedTuple):
    """How a table is read."""

    kind: str  # of its name, see `kind_of_table`
    reader: TableOptions
    tool: str | None  # that has exported it, where that shows
    row: str  # "line" or "row": what places in it are
    spans: SpanReport | None  # for texts with spans
    others: list[str]  # columns without a role

    def joined(self, other: "TableSurvey") -> "TableSurvey":
        """Return how this table and another one, that of a further split, are read in the same way."""
        names = max(self.reader.names, other.reader.names, key=lambda one: len(one.get("label", ())))
        reader, spans = self.reader._replace(names=names), self.spans
        if spans is not None and other.spans is not None:
            of = other.spans if spans.text_options.offsets == "characters" else spans
            texts, conflicts = [*spans.texts, *other.spans.texts], [*spans.conflicts, *other.spans.conflicts]
            spans = SpanReport(spans.name, of.text_options, texts, conflicts, spans.joined)
        return self._replace(reader=reader, spans=spans)

    @property
    def format(self) -> str:
        """Format of the file, and the contents of a row."""
        columns = self.reader.columns
        holds = "a text with spans" if SPANS in columns else "a token" if "sentence" in columns else "a sentence"
        by = f" of {self.tool}" if self.tool else ""
        return f"{FORMATS.get(self.kind, 'JSON lines')}{by}, {holds} in each row"


class Sentence(NamedTuple):
    """A sentence of a table."""

    place: str
    document: Any  # what tells its document from others; None: it is one by itself
    columns: dict[str, list[str]]  # by role
    lines: list[int]  # those of its tokens, for tables in text files; else empty


def table_rows(
    found: Iterable[Row], reader: TableOptions, name: str, tell: ReportHandler = check_conflicts
) -> "Dataset":
    """Return the rows of the table `name` as rows of sentences, see `rows.rows`.

    `tell` is called with what is found about spans that do not fit the tokens. Raises InputError with the place of a
    row for columns that it lacks, values that are no words or labels, columns of different lengths, spans that do not
    fit the tokens, and documents that are not in one piece; for a table without tokens it begins with the name.
    """
    reader.check(name)
    if TEXT in reader.columns:
        sentences = _texts(found, reader, name, tell)
    else:
        sentences = (_tokens if SENTENCE in reader.columns else _sentences)(found, reader)
    flat: dict[str, list[str]] = {}
    boundaries, documents, numbers = [0], [], []
    seen: dict[tuple[str, Any], int] = {}
    for number, (place, document, columns, lines) in enumerate(sentences):
        for role, values in columns.items():
            if len(values) != len(columns["word"]):
                raise InputError(f"{place}: {len(columns['word'])} words, but {len(values)} of {role!r}; correct it")
            flat.setdefault(role, []).extend(values)
        key = ("", number) if document is None else ("document", document)
        if seen.setdefault(key, len(seen)) != len(seen) - 1:
            raise InputError(
                f"{place}: document {document!r:.60} was over; put its rows together, or leave out document"
            )
        documents.append(seen[key])
        boundaries.append(len(flat["word"]))
        numbers += lines
    if not flat.get("word"):
        raise InputError(f"{name}: there are no tokens in it")
    return rows(flat, boundaries, documents, numbers if len(numbers) == len(flat["word"]) else None)


def _sentences(found: Iterable[Row], reader: TableOptions) -> Iterator[Sentence]:
    """A sentence in each row."""
    for place, row in found:
        columns = {}
        for role, column in _of_tokens(reader):
            value = _value(row, column, place)
            values = split_cell(value, f"{place}: column {column!r}") if isinstance(value, str) else value
            if not isinstance(values, Sequence):
                raise InputError(f"{place}: column {column!r} holds {value!r:.40}, no list of strings; change columns")
            columns[role] = [_string(one, role, column, place, reader) for one in values]
        yield Sentence(place, _document(row, place, reader), columns, _line(place) * len(columns["word"]))


def split_cell(value: str, place: str) -> list[str]:
    """Return the words in a cell: between white space, or those of a list of strings as JSON or Python write it.

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
        raise InputError(f"{place} holds a list without commas; write spaces between words, or a list as JSON")
    return found


def _tokens(found: Iterable[Row], reader: TableOptions) -> Iterator[Sentence]:
    """A token in each row; a sentence ends where the column of sentences holds something new, not nothing."""
    current: Sentence | None = None
    last = None
    for place, row in found:
        told = _sentence(row, place, reader)
        if current is None or (told not in (None, "") and told != last):
            if current is not None:
                yield current
            document, last = _document(row, place, reader), told
            current = Sentence(place, document, {role: [] for role, _ in _of_tokens(reader)}, [])
        for role, column in _of_tokens(reader):
            current.columns[role].append(_string(_value(row, column, place), role, column, place, reader))
        current.lines.extend(_line(place))
    if current is not None:
        yield current


def _sentence(row: Mapping[str, Any], place: str, reader: TableOptions) -> Any:
    """Return the value that identifies the sentence of a token."""
    column = reader.columns[SENTENCE]
    if column not in row:
        if column == EMPTY_ROWS:
            raise InputError(f"{place}: sentence: '' is for CSV, where sentences end with an empty row; name a column")
        raise _missing(row, column, place)
    return row[column]


def _line(place: str) -> list[int]:
    """The line that a place names, "file:line", in a list; an empty one for places of another kind."""
    _, colon, line = place.rpartition(":")
    return [int(line)] if colon and line.isdecimal() else []


def _texts(found: Iterable[Row], reader: TableOptions, name: str, tell: ReportHandler) -> Iterator[Sentence]:
    """A text in each row, which is a document unless rows say otherwise."""
    texts, documents = [], []
    for number, (place, row) in enumerate(found):
        column = reader.columns[TEXT]
        value = _value(row, column, place)
        if not isinstance(value, str):
            raise InputError(f"{place}: column {column!r} holds {value!r:.40}, no text; change columns")
        documents.append(_document(row, place, reader) if DOCUMENT in reader.columns else number)
        texts.append(AnnotatedText(place, value, _spans(row, place, reader) if SPANS in reader.columns else None))
    labelled = label_texts(texts, reader.text_options, name, tell)
    for (place, _, spans), document, (text, found_spans) in zip(texts, documents, labelled, strict=True):
        words = text.words
        labels = None if spans is None else _labels(LabelledText(text, found_spans))
        for a, b in pairwise(text.sentences):
            own = {} if labels is None else {"label": convert(labels[a:b], "IOB2", reader.scheme)}
            yield Sentence(place, document, {"word": words[a:b], **own}, _line(place) * (b - a))


def _labels(found: LabelledText) -> list[str]:
    """Labels of the tokens of a text in IOB2."""
    labels = ["O"] * len(found.text.tokens)
    for first, end, kind in found.spans:
        labels[first:end] = [make_label("B", kind), *[make_label("I", kind)] * (end - first - 1)]
    return labels


def _spans(row: Mapping[str, Any], place: str, reader: TableOptions) -> list[TextSpan]:
    """The spans of a row."""
    column = reader.columns[SPANS]
    if column in row and row[column] is None:
        raise InputError(f"{place}: column {column!r} holds nothing; write [] for no spans, or leave out the row")
    named = partial(_string, role=SPANS, column=column, place=place, reader=reader)
    value = _value(row, column, place)
    return read_spans([] if value == "" else value, column, place, named)  # an empty cell of CSV


def _of_tokens(reader: TableOptions) -> list[tuple[str, str]]:
    return [(role, column) for role, column in reader.columns.items() if role not in (SENTENCE, DOCUMENT)]


def _value(row: Mapping[str, Any], column: str, place: str) -> Any:
    if column not in row:
        raise _missing(row, column, place)
    if row[column] is None:
        raise InputError(f"{place}: column {column!r} holds nothing; fill it in, or leave out the row")
    return row[column]


def _missing(row: Mapping[str, Any], column: str, place: str) -> InputError:
    there = [name for name in row if name != EMPTY_ROWS]
    return InputError(f"{place}: no column {column!r} among {there}; change columns")


def _document(row: Mapping[str, Any], place: str, reader: TableOptions) -> Any:
    if DOCUMENT not in reader.columns:
        return None
    value = _value(row, reader.columns[DOCUMENT], place)
    if not isinstance(value, str | int):
        raise InputError(f"{place}: column {reader.columns[DOCUMENT]!r} holds {value!r:.40}, no name or number")
    return value


def _string(value: Any, role: str, column: str, place: str, reader: TableOptions) -> str:
    """A word or label as a string, by its name if it is a number."""
    if isinstance(value, int) and not isinstance(value, bool):
        names = reader.names.get(role)
        if names is None:
            advice = f"set label_names: {{{role}: [O, B-..., ...]}}"
            raise InputError(f"{place}: column {column!r} holds numbers without names; {advice}")
        if not 0 <= value < len(names):
            raise InputError(f"{place}: column {column!r} holds {value}, but there are {len(names)} names; correct it")
        return names[value]
    if not isinstance(value, str) or not value:
        raise InputError(f"{place}: column {column!r} holds {value!r:.40} where a word or label is due; correct it")
    return value
