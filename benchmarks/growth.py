"""Corpora of any size: the documents of a corpus again and again, some of their words new each time."""

from itertools import cycle
from pathlib import Path
from typing import NamedTuple

from structperc.data import Corpus, write_conll
from structperc.data.synthetic import synthetic_splits

COLUMNS = ("word", "pos", "chunk", "label")
DOCUMENT = "-DOCSTART-"
NEW = 20  # one of so many words is new


class Grown(NamedTuple):
    """A file of columns with marked documents."""

    path: Path
    tokens: int


def grown(path: Path, least: int, source: Path | None = None) -> Grown:
    """Write a corpus of whole documents and at least so many tokens, in memory that does not grow with it.

    Its documents are those of a source, a file of columns with marked documents, else those of the embedded corpus.
    """
    if source is None:
        source = path
        write_conll(path, Corpus.from_dataset(synthetic_splits()["train"]), COLUMNS)
    lines, tokens = source.read_text(encoding="utf-8").splitlines(keepends=True), 0
    with path.open("w", encoding="utf-8") as file:
        for line in cycle(lines):
            if line.startswith(DOCUMENT):
                if tokens >= least:
                    break
            elif line.strip():
                tokens += 1
                line = line if tokens % NEW else line.replace(" ", f"{tokens} ", 1)
            file.write(line)
    return Grown(path, tokens)
