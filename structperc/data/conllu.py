"""CoNLL-U treebanks: words with their part-of-speech tags."""

import re
from pathlib import Path
from typing import TYPE_CHECKING

from structperc.data.corpus import Corpus
from structperc.data.text_files import BYTE_ORDER_MARK, read_lines
from structperc.errors import InputError
from structperc.spelling import counted, is_blank

if TYPE_CHECKING:
    from datasets import Dataset

_RANGE = re.compile(r"([0-9]{1,9})-([0-9]{1,9})")
_EMPTY_NODE = re.compile(r"([0-9]{1,9})\.[0-9]+")


def read_conllu(path: str | Path, label: str = "upos", encoding: str = "utf-8") -> "Dataset":
    """Read a CoNLL-U file as rows of sentences, see `conllu_corpus` and `Corpus.to_dataset`."""
    return conllu_corpus(path, label, encoding=encoding).to_dataset()


def conllu_corpus(path: str | Path, label: str = "upos", unit: str = "sentence", encoding: str = "utf-8") -> Corpus:
    """Read a CoNLL-U file: columns `word` (FORM), `upos`, `xpos` and one of these two as `label`.

    Multiword ranges (1-2), empty nodes (1.1) and comments are skipped; "# newdoc" opens a document, and without any
    each sentence is its own document. There is no `label` if all labels are "_".

    Raises InputError with file:line for lines without 10 fields between tabs or out of order, and words with an empty
    form or tag; with the path for a missing or empty file.
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
    ids = documents if marked else range(len(documents))
    return Corpus.from_columns(columns, sentences, ids, unit, str(path), numbers)


def _fields(line: str, place: str, expected: int) -> tuple[str, str, str] | None:
    """FORM, UPOS and XPOS of a word line; None for multiword ranges and empty nodes."""
    fields = line.split("\t")
    if len(fields) != 10:
        raise InputError(f"{place}: {counted(len(fields), 'field')} between tabs, but CoNLL-U has 10")
    if (found := _RANGE.fullmatch(fields[0])) and expected == int(found[1]) < int(found[2]):
        return None
    if (found := _EMPTY_NODE.fullmatch(fields[0])) and int(found[1]) == expected - 1:
        return None
    if fields[0] != str(expected):
        raise InputError(f"{place}: expected word id {expected}, got {fields[0]!r}; is an empty line missing?")
    for name, i in (("FORM", 1), ("UPOS", 3), ("XPOS", 4)):
        if not fields[i].strip():
            raise InputError(f"{place}: {name} of word {fields[0]} is empty; write _ for an unknown value")
    return fields[1], fields[3], fields[4]
