"""CoNLL column files: a strict reader and an atomic writer.

One token per line, fields separated by ASCII spaces or tabs (other white space belongs to the token) or by tabs alone,
an empty line after each sentence, documents opened by -DOCSTART- lines. A line of nothing but white space and invisible
characters is empty, a byte-order mark at the beginning of a line does not count, and the names of the columns may stand
in the first line.
"""

import logging
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from structperc.data.corpus import Corpus
from structperc.data.output import write_lines
from structperc.data.read_options import DOCSTART, HEADER, PREDICTED, LineFormat, Separator
from structperc.data.rows import rows
from structperc.data.text_files import read_lines
from structperc.errors import InputError
from structperc.progress import bar
from structperc.spelling import counted, is_blank, quoted

if TYPE_CHECKING:
    from datasets import Dataset

logger = logging.getLogger("pytorch_lightning.structperc")

Columns = Sequence[str | None] | Mapping[str, int]


class _Read(NamedTuple):
    """What a file holds: the arguments of `rows`."""

    columns: dict[str, list[str]]  # role -> N strings
    sentences: list[int]  # R + 1 boundaries
    documents: Sequence[int]  # R ids
    lines: list[int]  # N line numbers


class FileContext(NamedTuple):
    """What the lines of a file say of some lines that follow them."""

    lines: int = 0  # how many there are
    first: int = 0  # number of the first line with a token; 0: there is none yet
    token: str = ""  # that line
    marked: bool = False  # whether documents are marked in this file; False: some of the lines may say so


PLAIN = LineFormat()
SPACE, TAB = " ", "\t"
BYTE_ORDER_MARK = "\ufeff"  # byte-order mark: in the middle of a file where files were joined
_HEADER = re.compile(  # names of columns, as letters in lower case
    r"words?|tokens?|form|text|lemma|sent(ence)?|doc(ument)?|(sent|sentence|token|doc|document)?(id|idx)|index|[ux]?pos"
    r"|chunks?|ner|entit(y|ies)|iob|bio|gold|(pos|upos|xpos|chunk|ner|entity|iob|bio|gold)?(tag|label)s?"
)
_NO_FIELD = re.compile(r"[ \t\r\n]|^$")
_NO_TAB_FIELD = re.compile(r"[\t\r\n]|^ | $|^$")
_NO_NAME = re.compile(r"[ \t\r\n,]|^$")


def read_conll(
    path: str | Path,
    columns: Columns,
    *,
    comments: bool = False,
    docstart: str | None = DOCSTART,
    encoding: str = "utf-8",
    progress: bool = True,
    separator: Separator = "whitespace",
) -> "Dataset":
    """Return a CoNLL file as rows of sentences (see `rows`), with labels as they stand in the file.

    `columns` names the roles of the fields in their order, None or "_" for a field to skip, or maps each role
    to its position, negative from the right; further fields are ignored. Lines with `docstart` as first field
    open a document and are dropped; in a file without any each sentence is its own document. With `comments`,
    lines are dropped that begin with "#" and have another number of fields than the tokens. `separator` is
    "whitespace", or "tab" for fields that hold spaces. A first line that names the columns is dropped, see
    `header_row`; labels that are predictions by it are read with a warning.

    Raises InputError with file:line for a line with more or fewer fields than the first token line, too few for
    `columns`, an empty field, or not in the encoding; with the path for a missing or empty file.
    """
    lines, how = read_lines(path, encoding), LineFormat(separator, comments, docstart)
    return rows(*_some(_read(lines, columns, str(path), how, progress=progress), str(path)))


def conll_corpus(
    lines: Sequence[str], columns: Columns, name: str, unit: str = "sentence", how: LineFormat = PLAIN
) -> Corpus:
    """Return lines that are read already as a corpus; `name` is that of their file.

    It is the corpus of the rows that `read_conll` gives, and needs no data set. Raises InputError as `read_conll` does.
    """
    found = _some(_read(lines, columns, name, how, progress=True), name)
    return Corpus.from_columns(found.columns, found.sentences, found.documents, unit, name, found.lines)


def conll_part(
    lines: Sequence[str], columns: Columns, name: str, unit: str, scan_context: FileContext, how: LineFormat = PLAIN
) -> Corpus:
    """Return some of the lines of a file, with or without tokens, as a corpus; documents are numbered anew."""
    found = _read(lines, columns, name, how, scan_context=scan_context)
    return Corpus.from_columns(found.columns, found.sentences, found.documents, unit, name, found.lines)


def _some(found: _Read, name: str) -> _Read:
    if not found.lines:
        raise InputError(f"{name}: there are no tokens in this file")
    return found


def _read(
    lines: Sequence[str],
    columns: Columns,
    name: str,
    how: LineFormat = PLAIN,
    *,
    scan_context: FileContext = FileContext(),  # noqa: B008  # immutable
    progress: bool = False,
) -> _Read:
    if broken := next((number for number, line in enumerate(lines, scan_context.lines + 1) if "\r" in line), None):
        raise InputError(f"{name}:{broken}: a carriage return inside a line; end all lines of the file alike")
    numbers: list[int] = []
    values: list[str] = []  # line by line, as many of each
    documents: list[int] = []
    sentences, document, marked = [0], 0, scan_context.marked
    first, token = (
        (scan_context.first, scan_context.token)
        if scan_context.first
        else _first_token(lines, how, scan_context.lines + 1)
    )
    header = header_row(lines, how) if not scan_context.lines else 0
    width, doubtful = len(_fields(token, how.separator)), []
    for block in _blocks(bar(lines, name, show=progress), how, token, scan_context.lines + 1, header):
        if not block:
            marked = True
            document += bool(documents) and documents[-1] == document
            continue
        if how.comments and block[0][1][0] == "#":
            doubtful.append(block[0][0])
        for number, fields in block:
            if len(fields) != width:
                raise _uneven(f"{name}:{number}", lines[number - scan_context.lines - 1], first, token, how)
            numbers.append(number)
            values += fields
        sentences.append(len(numbers))
        documents.append(document)
    if doubtful:
        _say_doubtful(name, doubtful)
    positions = _positions(columns, f"{name}:{first}", width) if width else {}
    names = header_names(lines[0]) if header == 1 else None
    if names and "label" in positions and names[positions["label"]].startswith(PREDICTED):
        logger.warning("%s: the labels are predictions by the first line of the file", name)
    flat = {role: values[i % width :: width] for role, i in positions.items()} or {"word": []}
    _check_filled(flat, numbers, name)
    return _Read(flat, sentences, documents if marked else range(len(documents)), numbers)


def _uneven(place: str, line: str, first: int, token: str, how: LineFormat) -> InputError:
    """The error for a line with another number of fields than the first token, and what may be the reason."""
    found, width = (len(_fields(one, how.separator)) for one in (line, token))
    advice = ""
    if not how.comments and (line.startswith("#") or token.startswith("#")):
        advice = f"; if {'this' if line.startswith('#') else f'line {first}'} is a comment, set comments: true"
    elif how.separator != "tab" and 1 < len(_fields(line, "tab")) == len(_fields(token, "tab")):
        advice = "; if fields hold spaces, set separator: tab"
    return InputError(f"{place}: {counted(found, 'field')}, but line {first} has {width}: {quoted(line)}{advice}")


def _say_doubtful(name: str, lines: Sequence[int]) -> None:
    more = f", as do {counted(len(lines) - 1, 'further line')}" if len(lines) > 1 else ""
    logger.warning(
        "%s:%d: begins with # and has as many fields as a token, so it is read as a token%s", name, lines[0], more
    )


def _check_filled(columns: Mapping[str, Sequence[str]], lines: Sequence[int], name: str) -> None:
    """Raise InputError for an empty field, which can stand between tabs."""
    for role, values in columns.items():
        if "" in values:
            raise InputError(f"{name}:{lines[values.index('')]}: field {role!r} is empty; fill it in")


def scan_context(lines: Sequence[str], how: LineFormat = PLAIN) -> FileContext:
    """Return what the first lines of a file say of all of its lines, these included."""
    first, token = _first_token(lines, how)
    return FileContext(0, first, token, not all(_blocks(lines, how, token, 1, header_row(lines, how))))


def field_count(lines: Sequence[str], how: LineFormat = PLAIN) -> int:
    """Return the number of fields of the first line with a token; 0 where there is none."""
    return len(_fields(_first_token(lines, how)[1], how.separator))


def distinct_fields(lines: Sequence[str], how: LineFormat = PLAIN) -> list[set[str]]:
    """Return the distinct strings of each column; fields that the first line with a token lacks are left out."""
    found: list[set[str]] = []
    for block in _blocks(lines, how, _first_token(lines, how)[1], 1, header_row(lines, how)):
        found = found or [set() for _ in block[0][1]] if block else found
        for _, fields in block:
            for distinct, field in zip(found, fields, strict=False):
                distinct.add(field)
    return found


def header_line(names: Sequence[str], gap: str = " ") -> str:
    """Return a first line of a file that names its columns, such as "#columns=word,pos,label,predicted -X- O O".

    It has as many fields as the lines of tokens, with O for labels, so that programs that do not know of it, such as
    the conlleval script, read a token outside of segments. Names that cannot stand there become "_".
    """
    first = HEADER + ",".join("_" if _NO_NAME.search(name) else name for name in names)
    return gap.join([first, *("O" if name == "label" or name.startswith(PREDICTED) else "-X-" for name in names[1:])])


def header_names(line: str) -> list[str] | None:
    """Return the names of columns that the first line of a file gives, see `header_line`; None for any other line."""
    if not line.startswith(HEADER):
        return None
    fields = _fields(line)
    names = fields[0].removeprefix(HEADER).split(",")
    return names if len(names) == len(fields) else None


def first_docstart(lines: Sequence[str], docstart: str = DOCSTART) -> int | None:
    """Return the position of the first line that opens a document."""
    return next((at for at, line in enumerate(lines) if docstart in line and _fields(line)[:1] == [docstart]), None)


def append_fields(
    lines: Sequence[str], added: Mapping[int, Sequence[str]], count: int, first: int = 1, how: LineFormat = PLAIN
) -> Iterator[str]:
    """Yield lines as they stand, with `count` further fields after the tokens of the lines numbered in `added`.

    `first` is the number of the first line. What separates fields in a line, tabs or spaces, separates these, too.
    Lines that open documents get as many.
    """
    opening = ["-X-"] * (count - 1) + ["O"]
    for number, line in enumerate(lines[:-1] if lines and not lines[-1] else lines, first):
        more = added.get(number)
        if more is None:
            more = opening if how.docstart in _fields(line, how.separator)[:1] else ()
        if more:
            text = line.rstrip(" \t")
            gap = "\t" if how.separator == "tab" or "\t" in text else " "
            yield f"{text}{gap}{gap.join(more)}\n"
        else:
            yield f"{line}\n"


def write_conll(
    path: str | Path,
    corpus: Corpus,
    roles: Sequence[str] | None = None,
    predicted: Sequence[str] | None = None,
    docstart: str = DOCSTART,
) -> None:
    """Write `conll_lines` as UTF-8; the file appears under its name only when it is complete.

    With predictions it begins with a `header_line` and an empty line. Fields are separated by tabs where one of them
    holds a space, see `detect_separator`.
    """
    held = list(corpus.columns if roles is None else roles)
    spaces = any(" " in value for role in held if role in corpus.columns for value in corpus.numbered(role).distinct)
    lines = conll_lines(corpus, roles, predicted, docstart, separator="tab" if spaces else "whitespace")
    if predicted is not None:
        lines = chain([f"{header_line([*held, PREDICTED], TAB if spaces else SPACE)}\n\n"], lines)
    write_lines(path, lines)


def conll_lines(
    corpus: Corpus,
    roles: Sequence[str] | None = None,
    predicted: Sequence[str] | None = None,
    docstart: str = DOCSTART,
    opened: Collection[int] | None = None,
    separator: Separator = "whitespace",
) -> Iterator[str]:
    """Yield the lines of a CoNLL file: the columns of the roles (all by default), and last `predicted` (N labels).

    Documents are opened by a `docstart` line before the tokens `opened`, which begin sentences; by default before the
    first token of each document, unless each sentence is its own document. Between fields stands a space or, with the
    `separator` "tab", a tab. Raises InputError for a role that the corpus lacks, another number of predictions than N,
    and values that no field can hold.
    """
    gap = TAB if separator == "tab" else SPACE
    chosen = _chosen(corpus, corpus.columns if roles is None else roles, predicted, separator)
    labels = (predicted is not None) + ("label" in (corpus.columns if roles is None else roles))
    opening = gap.join([docstart, *["-X-"] * (len(chosen) - labels - 1), *["O"] * labels][: len(chosen)])
    tokens = list(zip(*chosen, strict=True))
    starts = _document_starts(corpus) if opened is None else opened
    for first, end in pairwise(corpus.sentences.tolist()):
        if first in starts and first < end:
            yield f"{opening}\n\n"
        for token in tokens[first:end]:
            yield gap.join(token) + "\n"
        if first < end:
            yield "\n"


def _blocks(
    lines: Iterable[str], how: LineFormat, token: str, first: int = 1, header: int = 0
) -> Iterator[list[tuple[int, list[str]]]]:
    """Sentences as lists of (line number, fields); an empty list where a document is opened.

    `token` is the first line with a token, which tells comments; `header` the number of a line of names of columns.
    """
    block: list[tuple[int, list[str]]] = []
    for number, line in enumerate(lines, first):
        fields = _fields(line, how.separator)
        if fields and fields[0] != how.docstart:
            comment = how.comments and _is_comment(line, fields, token, how, not block)
            if number != header and not comment:
                block.append((number, fields))
            continue
        if block:
            yield block
        if fields:
            yield []
        block = []
    if block:
        yield block


def _first_token(lines: Sequence[str], how: LineFormat, first: int = 1) -> tuple[int, str]:
    """Number and text of the first line with a token; 0 and "" for none.

    With comments, that is a hashtag only if all lines begin with "#".
    """
    header, doubtful = header_row(lines, how) if first == 1 else 0, (0, "")
    for number, line in enumerate(lines, first):
        fields = _fields(line, how.separator)
        if not fields or fields[0] == how.docstart or number == header:
            continue
        if not (how.comments and line.lstrip(BYTE_ORDER_MARK).startswith("#")):
            return number, line
        doubtful = (number, line) if doubtful[0] == 0 and fields[0] != "#" else doubtful
    return doubtful


def header_row(lines: Iterable[str], how: LineFormat = PLAIN) -> int:
    """Return the number of the first line, from 1, if it holds names of columns; else 0.

    It may be a `header_line`, or hold usual names such as "word" and "label".
    """
    for number, line in enumerate(lines, 1):
        if number == 1 and header_names(line):
            return number
        fields = _fields(line, how.separator)
        if fields and not (how.comments and line.lstrip(BYTE_ORDER_MARK).startswith("#")):
            return number if is_header(fields) else 0
    return 0


def is_header(fields: Sequence[str]) -> bool:
    """Return whether the fields of a first line are names of columns, such as "word" and "label"."""
    names = [re.sub(r"[\W\d_]+", "", field).lower() for field in fields]
    return len(names) > 1 and all(_HEADER.fullmatch(name) for name in [*filter(None, names[:-1]), names[-1]])


def _is_comment(line: str, fields: Sequence[str], token: str, how: LineFormat, begins: bool) -> bool:
    """Whether a line is a comment: it begins with "#" and has another number of fields than the line of a token.

    Where a sentence begins, "# id 7<tab>train" is one among tokens of four fields between spaces, too.
    """
    if not line.lstrip(BYTE_ORDER_MARK).startswith("#"):
        return False
    width = len(_fields(token, how.separator))
    if len(fields) != width:
        return True
    gaps = set(token.strip()) & {" ", "\t"}
    if how.separator == "tab" or not begins or fields[0] != "#" or len(gaps) != 1:
        return False
    return len(list(filter(None, line.split(gaps.pop())))) != width


def _fields(line: str, separator: Separator = "whitespace") -> list[str]:
    if not line:
        return []
    if not "!" <= line[0] <= "~":
        if is_blank(line):
            return []
        line = line.lstrip(BYTE_ORDER_MARK)
    if separator == "tab":
        return [field.strip(" ") for field in line.rstrip(" \t").split("\t")]
    fields = line.replace("\t", " ").split(" ")
    return [field for field in fields if field] if "" in fields else fields


def detect_line_format(
    lines: Sequence[str], separator: Separator | None = None, comments: bool | None = None
) -> LineFormat:
    """Return how lines are divided, which is found out as far as it is not given.

    There are comments if a line begins with "#" and has another number of fields than the first one that does not.
    """
    found = LineFormat(separator or detect_separator(lines, comments is not False), comments is not False)
    if comments is None:
        found = found._replace(comments=bool(comment_line_numbers(lines, found)))
        if not (found.comments or separator):
            found = found._replace(separator=detect_separator(lines))
    return found


def comment_line_numbers(lines: Sequence[str], how: LineFormat = PLAIN) -> list[int]:
    """Return the numbers of the lines that are comments, from 1; none where `how` has none."""
    if not how.comments:
        return []
    token, begins, found, header = _first_token(lines, how)[1], True, [], header_row(lines, how)
    for number, line in enumerate(lines, 1):
        fields = _fields(line, how.separator)
        if fields and number != header and _is_comment(line, fields, token, how, begins):
            found.append(number)
        else:
            begins = not fields or fields[0] == how.docstart
    return found


def detect_separator(lines: Iterable[str], comments: bool = False) -> Separator:
    """Return what separates the fields: tabs if there are some in all lines and spaces in a field; else white space.

    With `comments`, lines that begin with "#" are not looked at.
    """
    spaces = False
    for line in lines:
        if is_blank(line) or line.startswith((DOCSTART, HEADER)) or (comments and line.startswith("#")):
            continue
        text = line.strip(" \t")
        if "\t" not in text:
            return "whitespace"
        spaces = spaces or (" " in text and any(" " in field.strip(" ") for field in text.split("\t")))
    return "tab" if spaces else "whitespace"


def _positions(columns: Columns, place: str, width: int) -> dict[str, int]:
    """Role -> position, after a check that so many fields, those of the line at `place`, are enough."""
    positions = _roles(columns)
    reach = [i + 1 if i >= 0 else -i for i in positions.values()]
    wanted = max(reach) if isinstance(columns, Mapping) else len(columns)
    if wanted > width:
        names = ", ".join(positions)
        raise InputError(f"{place}: {counted(width, 'field')}, but columns ({names}) need {wanted}")
    return positions


def _roles(columns: Columns) -> dict[str, int]:
    """Role -> position as the option `columns` asks for."""
    if isinstance(columns, Mapping):
        named = list(columns.items())
    else:
        named = [(role, i) for i, role in enumerate(columns) if role is not None and role != "_"]
    roles = [role for role, _ in named]
    if "word" not in roles or len(set(roles)) < len(roles) or not {"document", "sentence", "line"}.isdisjoint(roles):
        raise InputError(
            f"columns must name 'word' and each role once, none 'document', 'sentence' or 'line'; not {roles}"
        )
    return dict(named)


def _chosen(
    corpus: Corpus, roles: Iterable[str], predicted: Sequence[str] | None, separator: Separator
) -> list[Sequence[str]]:
    """The columns to write, after a check that each value can stand in a column file."""
    if missing := [role for role in roles if role not in corpus.columns]:
        raise InputError(f"{corpus.name}: no columns {missing} among {list(corpus.columns)}")
    chosen: list[Sequence[str]] = [corpus.columns[role] for role in roles]
    if predicted is not None:
        chosen.append(predicted)
    for column in chosen:
        if len(column) != corpus.tokens:
            raise InputError(
                f"{corpus.name}: {counted(len(column), 'predicted label')} for {counted(corpus.tokens, 'token')}"
            )
        for value in set(column):
            if (_NO_TAB_FIELD if separator == "tab" else _NO_FIELD).search(value):
                place = corpus.where(list(column).index(value))
                raise InputError(f"{place}: {value!r} cannot be a CoNLL field (empty, or white space in it)")
    return chosen


def _document_starts(corpus: Corpus) -> set[int]:
    """First token of each document; none when each sentence is its own document."""
    first = corpus.starts[:-1][np.diff(corpus.documents, prepend=-1) != 0]
    return set(first.tolist()) if len(first) < np.count_nonzero(np.diff(corpus.sentences)) else set()
