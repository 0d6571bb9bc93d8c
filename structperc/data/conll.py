"""CoNLL column files: a strict reader and an atomic writer.

One token per line, fields separated by ASCII spaces or tabs (other white space belongs to the token), an
empty line after each sentence, documents opened by -DOCSTART- lines.
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
from structperc.data.reading import DOCSTART, HEADER, PREDICTED
from structperc.data.rows import rows
from structperc.data.text import read_lines
from structperc.errors import InputError
from structperc.progress import bar

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


class Above(NamedTuple):
    """What the lines of a file say of some lines that follow them."""

    lines: int = 0  # how many there are
    width: int = 0  # fields of the first line with a token; 0: there is none yet
    first: int = 0  # the number of that line
    marked: bool = False  # whether documents are marked in this file; False: some of the lines may say so


_NO_FIELD = re.compile(r"[ \t\r\n]|^$")
_NO_NAME = re.compile(r"[ \t\r\n,]|^$")


def read_conll(
    path: str | Path,
    columns: Columns,
    *,
    comments: bool = False,
    docstart: str | None = DOCSTART,
    encoding: str = "utf-8",
    progress: bool = True,
) -> "Dataset":
    """Return a CoNLL file as rows of sentences (see `rows`), with labels as they stand in the file.

    `columns` names the roles of the fields in their order, None or "_" for a field to skip, or maps each role
    to its position, negative from the right; further fields are ignored. Lines with `docstart` as first field
    open a document and are dropped; in a file without any each sentence is its own document. With `comments`,
    lines that begin with "#" are dropped where a sentence could begin. A first line that names the columns, see
    `header_line`, is no token; labels that are predictions by it are read with a warning.

    Raises InputError with file:line for a line with more or fewer fields than the first token line, too few for
    `columns`, or not in the encoding; with the path for a missing or empty file.
    """
    lines = read_lines(path, encoding)
    found = _read(lines, columns, str(path), comments=comments, docstart=docstart, progress=progress)
    return rows(*_some(found, str(path)))


def conll_corpus(lines: Sequence[str], columns: Columns, name: str, unit: str = "sentence") -> Corpus:
    """Return lines that are read already as a corpus; `name` is that of their file.

    It is the corpus of the rows that `read_conll` gives, and needs no data set. Raises InputError as `read_conll` does.
    """
    found = _some(_read(lines, columns, name, progress=True), name)
    return Corpus.from_columns(found.columns, found.sentences, found.documents, unit, name, found.lines)


def conll_part(lines: Sequence[str], columns: Columns, name: str, unit: str, above: Above) -> Corpus:
    """Return some of the lines of a file, with or without tokens, as a corpus; documents are numbered anew."""
    found = _read(lines, columns, name, above=above)
    return Corpus.from_columns(found.columns, found.sentences, found.documents, unit, name, found.lines)


def _some(found: _Read, name: str) -> _Read:
    if not found.lines:
        raise InputError(f"{name}: there are no tokens in this file")
    return found


def _read(
    lines: Sequence[str],
    columns: Columns,
    name: str,
    *,
    comments: bool = False,
    docstart: str | None = DOCSTART,
    above: Above = Above(),  # noqa: B008  # immutable
    progress: bool = False,
) -> _Read:
    if broken := next((number for number, line in enumerate(lines, above.lines + 1) if "\r" in line), None):
        raise InputError(f"{name}:{broken}: a carriage return inside a line; end all lines of the file alike")
    numbers: list[int] = []
    values: list[str] = []  # line by line, as many of each
    documents: list[int] = []
    sentences, document, marked, width, first = [0], 0, above.marked, above.width, above.first
    for block in _blocks(bar(lines, name, show=progress), docstart, comments, above.lines + 1):
        if not block:
            marked = True
            document += bool(documents) and documents[-1] == document
            continue
        if not width:
            first, width = block[0][0], len(block[0][1])
        for number, fields in block:
            if len(fields) != width:
                raise InputError(f"{name}:{number}: {len(fields)} fields, but line {first} has {width}")
            numbers.append(number)
            values += fields
        sentences.append(len(numbers))
        documents.append(document)
    positions = _positions(columns, f"{name}:{first}", width) if width else {}
    names = named_columns(lines[0]) if lines and not above.lines else None
    if names and "label" in positions and names[positions["label"]].startswith(PREDICTED):
        logger.warning("%s: the labels are predictions by the first line of the file", name)
    flat = {role: values[i % width :: width] for role, i in positions.items()} or {"word": []}
    return _Read(flat, sentences, documents if marked else range(len(documents)), numbers)


def above(lines: Iterable[str], docstart: str = DOCSTART) -> Above:
    """Return what the first lines of a file say of all of its lines, these included."""
    first, width, marked = 0, 0, False
    for block in _blocks(lines, docstart, comments=False):
        marked = marked or not block
        if block and not width:
            first, width = block[0][0], len(block[0][1])
    return Above(0, width, first, marked)


def field_count(lines: Iterable[str], docstart: str | None = DOCSTART) -> int:
    """Return the number of fields of the first line with a token; 0 where there is none."""
    return next((len(block[0][1]) for block in _blocks(lines, docstart, comments=False) if block), 0)


def distinct_fields(lines: Iterable[str], docstart: str | None = DOCSTART) -> list[set[str]]:
    """Return the distinct strings of each column; fields that the first line with a token lacks are left out."""
    found: list[set[str]] = []
    for block in _blocks(lines, docstart, comments=False):
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


def named_columns(line: str) -> list[str] | None:
    """Return the names of columns that the first line of a file gives, see `header_line`; None for any other line."""
    if not line.startswith(HEADER):
        return None
    fields = _fields(line)
    names = fields[0].removeprefix(HEADER).split(",")
    return names if len(names) == len(fields) else None


def first_mark(lines: Sequence[str], docstart: str = DOCSTART) -> int | None:
    """Return the position of the first line that opens a document."""
    return next((at for at, line in enumerate(lines) if docstart in line and _fields(line)[:1] == [docstart]), None)


def with_fields(
    lines: Sequence[str], added: Mapping[int, Sequence[str]], count: int, first: int = 1, docstart: str = DOCSTART
) -> Iterator[str]:
    """Yield lines as they stand, with `count` further fields after the tokens of the lines numbered in `added`.

    `first` is the number of the first line. What separates fields in a line, tabs or spaces, separates these, too.
    Lines that open documents get as many.
    """
    opening = ["-X-"] * (count - 1) + ["O"]
    for number, line in enumerate(lines[:-1] if lines and not lines[-1] else lines, first):
        more = added.get(number)
        if more is None:
            more = opening if _fields(line)[:1] == [docstart] else ()
        if more:
            text = line.rstrip(" \t")
            gap = "\t" if "\t" in text else " "
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

    With predictions it begins with a `header_line` and an empty line.
    """
    lines = conll_lines(corpus, roles, predicted, docstart)
    if predicted is not None:
        lines = chain([f"{header_line([*(corpus.columns if roles is None else roles), PREDICTED])}\n\n"], lines)
    write_lines(path, lines)


def conll_lines(
    corpus: Corpus,
    roles: Sequence[str] | None = None,
    predicted: Sequence[str] | None = None,
    docstart: str = DOCSTART,
    opened: Collection[int] | None = None,
) -> Iterator[str]:
    """Yield the lines of a CoNLL file: the columns of the roles (all by default), and last `predicted` (N labels).

    Documents are opened by a `docstart` line before the tokens `opened`, which begin sentences; by default before the
    first token of each document, unless each sentence is its own document. Raises InputError for a role
    that the corpus lacks, another number of predictions than N, and values that no field can hold.
    """
    chosen = _chosen(corpus, corpus.columns if roles is None else roles, predicted)
    labels = (predicted is not None) + ("label" in (corpus.columns if roles is None else roles))
    opening = " ".join([docstart, *["-X-"] * (len(chosen) - labels - 1), *["O"] * labels][: len(chosen)])
    tokens = list(zip(*chosen, strict=True))
    starts = _document_starts(corpus) if opened is None else opened
    for first, end in pairwise(corpus.sentences.tolist()):
        if first in starts and first < end:
            yield f"{opening}\n\n"
        for token in tokens[first:end]:
            yield " ".join(token) + "\n"
        if first < end:
            yield "\n"


def _blocks(
    lines: Iterable[str], docstart: str | None, comments: bool, first: int = 1
) -> Iterator[list[tuple[int, list[str]]]]:
    """Sentences as lists of (line number, fields); an empty list where a document is opened."""
    block: list[tuple[int, list[str]]] = []
    for number, line in enumerate(lines, first):
        fields = [] if number == 1 and named_columns(line) else _fields(line)
        if fields and fields[0] != docstart:
            if block or not (comments and line.startswith("#")):
                block.append((number, fields))
            continue
        if block:
            yield block
        if fields:
            yield []
        block = []
    if block:
        yield block


def _fields(line: str) -> list[str]:
    fields = line.replace("\t", " ").split(" ")
    return [field for field in fields if field] if "" in fields else fields


def _positions(columns: Columns, place: str, width: int) -> dict[str, int]:
    """Role -> position, after a check that so many fields, those of the line at `place`, are enough."""
    positions = _roles(columns)
    reach = [i + 1 if i >= 0 else -i for i in positions.values()]
    wanted = max(reach) if isinstance(columns, Mapping) else len(columns)
    if wanted > width:
        names = ", ".join(positions)
        raise InputError(f"{place}: {width} fields, but columns ({names}) need {wanted}")
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


def _chosen(corpus: Corpus, roles: Iterable[str], predicted: Sequence[str] | None) -> list[Sequence[str]]:
    """The columns to write, after a check that each value can stand in a column file."""
    if missing := [role for role in roles if role not in corpus.columns]:
        raise InputError(f"{corpus.name}: no columns {missing} among {list(corpus.columns)}")
    chosen: list[Sequence[str]] = [corpus.columns[role] for role in roles]
    if predicted is not None:
        chosen.append(predicted)
    for column in chosen:
        if len(column) != corpus.tokens:
            raise InputError(f"{corpus.name}: {len(column)} predicted labels for {corpus.tokens} tokens")
        for value in set(column):
            if _NO_FIELD.search(value):
                place = corpus.where(list(column).index(value))
                raise InputError(f"{place}: {value!r} cannot be a CoNLL field (empty, or white space in it)")
    return chosen


def _document_starts(corpus: Corpus) -> set[int]:
    """First token of each document; none when each sentence is its own document."""
    first = corpus.starts[:-1][np.diff(corpus.documents, prepend=-1) != 0]
    return set(first.tolist()) if len(first) < np.count_nonzero(np.diff(corpus.sentences)) else set()
