"""Rows of a table -> rows of sentences: a sentence, a token or a text with marked spans in each of them.

What a row holds shows in the columns that are named: `text` (and `spans`) are running text, a document in each row,
which is cut into tokens; `sentence` tells which tokens, one in each row, are of one sentence; otherwise a row is a
sentence, with lists or with strings that are split at white space.
"""

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from structperc.data.annotations import (
    Annotated,
    Cutting,
    Labelled,
    SpanReport,
    Tell,
    label_texts,
    read_spans,
    refuse_misfits,
)
from structperc.data.exports import Row
from structperc.data.rows import rows
from structperc.data.segments import convert
from structperc.data.table_names import FOLDER
from structperc.data.tags import label_of
from structperc.errors import InputError
from structperc.text import TextSpan

if TYPE_CHECKING:
    from datasets import Dataset

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


class Reader(NamedTuple):
    """How rows are read.

    Args:
        columns: the column of each role.
        names: the names of labels kept as numbers, by role.
        cutting: how running text becomes tokens, and its spans labels.
        scheme: in which spans become labels.
        heading: whether the first row of CSV names its columns; else these are called "1", "2", ...
    """

    columns: Mapping[str, str]
    names: Mapping[str, Sequence[str]] = {}
    cutting: Cutting = Cutting()
    scheme: str = "IOB2"
    heading: bool = True

    def options(self) -> dict[str, Any]:
        """Return all options by name, those of the cutting among them."""
        own = self._asdict()
        return {**own.pop("cutting")._asdict(), **own}

    def check(self, name: str) -> None:
        """Raise InputError for roles that cannot be read together, and unknown ways to cut a text."""
        given = set(self.columns)
        if TEXT in given and not given <= {TEXT, SPANS, DOCUMENT}:
            raise InputError(f"{name}: columns name text and {sorted(given - {TEXT, SPANS, DOCUMENT})}; leave out one")
        if not given & {TEXT, "word"} or "line" in given or (SPANS in given and TEXT not in given):
            raise InputError(f"{name}: columns must name word, or text and spans, and no line; not {sorted(given)}")
        self.cutting.check()
        if SPANS in given and self.scheme == "none":
            raise InputError(f"{name}: spans are segments; set scheme to IOB2, IOBES, ...")


class TableSurvey(NamedTuple):
    """How a table is read."""

    kind: str  # of its name, see `kind_of_table`
    reader: Reader
    tool: str | None  # that has exported it, where that shows
    row: str  # "line" or "row": what places in it are
    spans: SpanReport | None  # for texts with spans
    others: list[str]  # columns without a role

    def joined(self, other: "TableSurvey") -> "TableSurvey":
        """Return how this table and another one, that of a further split, are read in the same way."""
        names = max(self.reader.names, other.reader.names, key=lambda one: len(one.get("label", ())))
        reader, spans = self.reader._replace(names=names), self.spans
        if spans is not None and other.spans is not None:
            of = other.spans if spans.cutting.offsets == "characters" else spans
            texts, misfits = [*spans.texts, *other.spans.texts], [*spans.misfits, *other.spans.misfits]
            spans = SpanReport(spans.name, of.cutting, texts, misfits, spans.joined)
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


def table_rows(found: Iterable[Row], reader: Reader, name: str, tell: Tell = refuse_misfits) -> "Dataset":
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


def _sentences(found: Iterable[Row], reader: Reader) -> Iterator[Sentence]:
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


def _tokens(found: Iterable[Row], reader: Reader) -> Iterator[Sentence]:
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


def _sentence(row: Mapping[str, Any], place: str, reader: Reader) -> Any:
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


def _texts(found: Iterable[Row], reader: Reader, name: str, tell: Tell) -> Iterator[Sentence]:
    """A text in each row, which is a document unless rows say otherwise."""
    texts, documents = [], []
    for number, (place, row) in enumerate(found):
        column = reader.columns[TEXT]
        value = _value(row, column, place)
        if not isinstance(value, str):
            raise InputError(f"{place}: column {column!r} holds {value!r:.40}, no text; change columns")
        documents.append(_document(row, place, reader) if DOCUMENT in reader.columns else number)
        texts.append(Annotated(place, value, _spans(row, place, reader) if SPANS in reader.columns else None))
    labelled = label_texts(texts, reader.cutting, name, tell)
    for (place, _, spans), document, (text, found_spans) in zip(texts, documents, labelled, strict=True):
        words = text.words
        labels = None if spans is None else _labels(Labelled(text, found_spans))
        for a, b in pairwise(text.sentences):
            own = {} if labels is None else {"label": convert(labels[a:b], "IOB2", reader.scheme)}
            yield Sentence(place, document, {"word": words[a:b], **own}, _line(place) * (b - a))


def _labels(found: Labelled) -> list[str]:
    """Labels of the tokens of a text in IOB2."""
    labels = ["O"] * len(found.text.tokens)
    for first, end, kind in found.spans:
        labels[first:end] = [label_of("B", kind), *[label_of("I", kind)] * (end - first - 1)]
    return labels


def _spans(row: Mapping[str, Any], place: str, reader: Reader) -> list[TextSpan]:
    """The spans of a row."""
    column = reader.columns[SPANS]
    if column in row and row[column] is None:
        raise InputError(f"{place}: column {column!r} holds nothing; write [] for no spans, or leave out the row")
    named = partial(_string, role=SPANS, column=column, place=place, reader=reader)
    value = _value(row, column, place)
    return read_spans([] if value == "" else value, column, place, named)  # an empty cell of CSV


def _of_tokens(reader: Reader) -> list[tuple[str, str]]:
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


def _document(row: Mapping[str, Any], place: str, reader: Reader) -> Any:
    if DOCUMENT not in reader.columns:
        return None
    value = _value(row, reader.columns[DOCUMENT], place)
    if not isinstance(value, str | int):
        raise InputError(f"{place}: column {reader.columns[DOCUMENT]!r} holds {value!r:.40}, no name or number")
    return value


def _string(value: Any, role: str, column: str, place: str, reader: Reader) -> str:
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
