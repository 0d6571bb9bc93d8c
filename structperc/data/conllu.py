"""CoNLL-U treebanks: words with their part-of-speech tags."""

import re
from pathlib import Path
from typing import TYPE_CHECKING

from structperc.data.conll import BYTE_ORDER_MARK
from structperc.data.rows import rows
from structperc.data.text_files import read_lines
from structperc.errors import InputError
from structperc.spelling import counted, is_blank

if TYPE_CHECKING:
    from datasets import Dataset

_RANGE = re.compile(r"([0-9]{1,9})-([0-9]{1,9})")
_EMPTY_NODE = re.compile(r"([0-9]{1,9})\.[0-9]+")


def read_conllu(path: str | Path, label: str = "upos", encoding: str = "utf-8") -> "Dataset":
    """Return a CoNLL-U file as rows of sentences: `word` (FORM), `upos`, `xpos` and one of these two as `label`.

    Multiword ranges (1-2) and empty nodes (1.1) are skipped; "# newdoc" opens a document, without any each
    sentence is its own document; other comments are dropped. A file whose labels are all "_" is an unlabelled one:
    there is no `label`.

    Raises InputError with file:line for lines without 10 fields between tabs or out of order, and words whose form or
    tags are empty; with the path for a missing or empty file.
    """
    if label not in ("upos", "xpos"):
        raise InputError(f"label must be upos or xpos, not {label!r}")
    columns: dict[str, list[str]] = {"word": [], "upos": [], "xpos": []}
    numbers: list[int] = []
    documents: list[int] = []
    sentences, document, marked = [0], 0, False
    for number, line in enumerate([*read_lines(path, encoding), ""], 1):
        line = line.removeprefix(BYTE_ORDER_MARK)
        if line.startswith("#"):
            opens = re.match(r"#\s*newdoc\b", line) is not None
            marked |= opens
            document += opens and documents[-1:] == [document]
        elif not is_blank(line):
            fields = _fields(line, f"{path}:{number}", expected=len(numbers) - sentences[-1] + 1)
            if fields:
                for role, value in zip(columns, fields, strict=True):
                    columns[role].append(value)
                numbers.append(number)
        elif len(numbers) > sentences[-1]:
            sentences.append(len(numbers))
            documents.append(document)
    if not numbers:
        raise InputError(f"{path}: there are no words in this file")
    if set(columns[label]) != {"_"}:
        columns["label"] = columns[label]
    return rows(columns, sentences, documents if marked else range(len(documents)), numbers)


def _fields(line: str, place: str, expected: int) -> tuple[str, str, str] | None:
    """FORM, UPOS and XPOS of a word line; None for multiword ranges and empty nodes."""
    fields = line.split("\t")
    if len(fields) != 10:
        raise InputError(f"{place}: {counted(len(fields), 'field')} between tabs, but CoNLL-U has 10")
    if _is_no_word(fields[0], expected):
        return None
    if fields[0] != str(expected):
        raise InputError(f"{place}: word id {fields[0]!r} where {expected} is due; is an empty line missing?")
    for name, i in (("FORM", 1), ("UPOS", 3), ("XPOS", 4)):
        if not fields[i].strip():
            raise InputError(f"{place}: {name} of word {fields[0]} is empty; write _ for what is not known")
    return fields[1], fields[3], fields[4]


def _is_no_word(number: str, expected: int) -> bool:
    """Whether this is the id of a range that begins with the word that is due, or of a node that stands before it."""
    if found := _RANGE.fullmatch(number):
        return expected == int(found[1]) < int(found[2])
    found = _EMPTY_NODE.fullmatch(number)
    return found is not None and int(found[1]) == expected - 1
