"""Rows of a table -> rows of sentences: a sentence, a token or a text with marked spans in each of them.

What a row holds shows in the columns that are named: `text` (and `spans`) are running text, a document in each row,
which is cut into tokens; `sentence` tells which tokens, one in each row, are of one sentence; otherwise a row is a
sentence, with lists or with strings that are split at white space.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from structperc.data.rows import rows
from structperc.data.segments import convert
from structperc.data.tags import label_of
from structperc.errors import InputError
from structperc.text import TextSpan, TokenizedText, to_tokens, tokenized
from structperc.text.sentences import SENTENCES
from structperc.text.tokenizer import TOKENIZERS

if TYPE_CHECKING:
    from datasets import Dataset

TEXT, SPANS, SENTENCE, DOCUMENT = "text", "spans", "sentence", "document"  # roles that are no columns of tokens
TYPES = ("label", "type", "entity_group")  # how records call the type of a span
Row = tuple[str, Mapping[str, Any]]  # its place, for messages, and its values by the names of its columns


class Reader(NamedTuple):
    """How rows are read.

    Args:
        columns: the column of each role.
        names: the names of labels kept as numbers, by role.
        tokens: how running text is cut, a name of `text.tokenizer.TOKENIZERS`.
        sentences: where its sentences begin, a name of `text.sentences.SENTENCES`.
        scheme: in which spans become labels.
    """

    columns: Mapping[str, str]
    names: Mapping[str, Sequence[str]] = {}
    tokens: str = "conll"
    sentences: str = "rules"
    scheme: str = "IOB2"

    def check(self, name: str) -> None:
        """Raise InputError for roles that cannot be read together, and unknown ways to cut a text."""
        given = set(self.columns)
        if TEXT in given and not given <= {TEXT, SPANS, DOCUMENT}:
            raise InputError(f"{name}: columns name text and {sorted(given - {TEXT, SPANS, DOCUMENT})}; leave out one")
        if not given & {TEXT, "word"} or "line" in given or (SPANS in given and TEXT not in given):
            raise InputError(f"{name}: columns must name word, or text and spans, and no line; not {sorted(given)}")
        for option, value, known in (("tokens", self.tokens, TOKENIZERS), ("sentences", self.sentences, SENTENCES)):
            if value not in known:
                raise InputError(f"{option} must be one of {', '.join(known)}, not {value!r}")
        if SPANS in given and self.scheme == "none":
            raise InputError(f"{name}: spans are segments; set scheme to IOB2, IOBES, ...")


class Sentence(NamedTuple):
    """A sentence of a table."""

    place: str
    document: Any  # what tells its document from others; None: it is one by itself
    columns: dict[str, list[str]]  # by role


def table_rows(found: Iterable[Row], reader: Reader, name: str) -> "Dataset":
    """Return the rows of the table `name` as rows of sentences, see `rows.rows`.

    Raises InputError with the place of a row for columns that it lacks, values that are no words or labels, columns of
    different lengths, spans that do not fit the tokens, and documents that are not in one piece; for a table without
    tokens it begins with the name.
    """
    reader.check(name)
    read = _texts if TEXT in reader.columns else _tokens if SENTENCE in reader.columns else _sentences
    flat: dict[str, list[str]] = {}
    boundaries, documents = [0], []
    seen: dict[tuple[str, Any], int] = {}
    for number, (place, document, columns) in enumerate(read(found, reader)):
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
    if not flat.get("word"):
        raise InputError(f"{name}: there are no tokens in it")
    return rows(flat, boundaries, documents)


def _sentences(found: Iterable[Row], reader: Reader) -> Iterator[Sentence]:
    """A sentence in each row."""
    for place, row in found:
        columns = {}
        for role, column in _of_tokens(reader):
            value = _value(row, column, place)
            values = value.split() if isinstance(value, str) else value
            if not isinstance(values, Sequence):
                raise InputError(f"{place}: column {column!r} holds {value!r:.40}, no list of strings; change columns")
            columns[role] = [_string(one, role, column, place, reader) for one in values]
        yield Sentence(place, _document(row, place, reader), columns)


def _tokens(found: Iterable[Row], reader: Reader) -> Iterator[Sentence]:
    """A token in each row; a sentence ends where the column of sentences holds something new, not nothing."""
    current: Sentence | None = None
    last = None
    for place, row in found:
        told = row.get(reader.columns[SENTENCE])
        if current is None or (told not in (None, "") and told != last):
            if current is not None:
                yield current
            current, last = Sentence(place, _document(row, place, reader), {r: [] for r, _ in _of_tokens(reader)}), told
        for role, column in _of_tokens(reader):
            current.columns[role].append(_string(_value(row, column, place), role, column, place, reader))
    if current is not None:
        yield current


def _texts(found: Iterable[Row], reader: Reader) -> Iterator[Sentence]:
    """A text in each row, which is a document unless rows say otherwise."""
    for number, (place, row) in enumerate(found):
        value = _value(row, reader.columns[TEXT], place)
        if not isinstance(value, str):
            raise InputError(f"{place}: column {reader.columns[TEXT]!r} holds {value!r:.40}, no text; change columns")
        text = tokenized(value, TOKENIZERS[reader.tokens], SENTENCES[reader.sentences])
        words = text.words
        labels = _labels(text, _spans(row, place, reader), place) if SPANS in reader.columns else None
        document = _document(row, place, reader) if DOCUMENT in reader.columns else number
        for a, b in pairwise(text.sentences):
            own = {} if labels is None else {"label": convert(labels[a:b], "IOB2", reader.scheme)}
            yield Sentence(place, document, {"word": words[a:b], **own})


def _labels(text: TokenizedText, spans: Iterable[TextSpan], place: str) -> list[str]:
    """Labels of the tokens of a text in IOB2."""
    labels = ["O"] * len(text.tokens)
    for first, end, kind in to_tokens(text, spans, place):
        labels[first:end] = [label_of("B", kind), *[label_of("I", kind)] * (end - first - 1)]
    return labels


def _spans(row: Mapping[str, Any], place: str, reader: Reader) -> Iterator[TextSpan]:
    """Spans as records with start, end and label (or type), as lists of these three, or as a record of lists."""
    column = reader.columns[SPANS]
    value = _value(row, column, place)
    if isinstance(value, Mapping) and all(isinstance(one, Sequence) for one in value.values()):
        value = [dict(zip(value, one, strict=False)) for one in zip(*value.values(), strict=False)]
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise InputError(f"{place}: column {column!r} holds {value!r:.40}, no list of spans; change columns")
    for i, one in enumerate(value):
        parts = list(one) if isinstance(one, Sequence) and not isinstance(one, str) else []
        if isinstance(one, Mapping):
            kind = next((one[key] for key in TYPES if one.get(key) is not None), None)
            parts = [one.get("start"), one.get("end"), kind]
        if len(parts) == 3 and isinstance(parts[2], int):
            parts[2] = _string(parts[2], SPANS, column, place, reader)
        if [type(part) for part in parts] != [int, int, str] or not parts[2] or parts[2].split() != [parts[2]]:
            raise InputError(f"{place}: {column}[{i}] must have start, end and label, without spaces; not {one!r:.80}")
        yield TextSpan(*parts)


def _of_tokens(reader: Reader) -> list[tuple[str, str]]:
    return [(role, column) for role, column in reader.columns.items() if role not in (SENTENCE, DOCUMENT)]


def _value(row: Mapping[str, Any], column: str, place: str) -> Any:
    if column not in row:
        raise InputError(f"{place}: no column {column!r} among {list(row)}; change columns")
    if row[column] is None:
        raise InputError(f"{place}: column {column!r} holds nothing; fill it in, or leave out the row")
    return row[column]


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
