"""Corpora in files: what tells one from another, how they are written, and read as far as they are looked at."""

import hashlib
import mmap
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import xxhash

from structperc.data.array_folder import ArrayFolder, ArrayWriter
from structperc.data.column import Column
from structperc.data.corpus import Corpus
from structperc.data.distinct import DistinctStrings

NAME, ROLES = "name", "roles"  # what is known of a corpus beside its arrays
BOUNDARIES = ("starts", "sentences", "documents")


def content(path: Path) -> str:
    """Return a checksum of a file, or of the names and content of the files in a folder. Raises OSError."""
    if not path.is_dir():
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    total = hashlib.sha256()
    for own in sorted(own for own in path.rglob("*") if own.is_file()):
        total.update(f"{own.relative_to(path)}\0{content(own)}\0".encode("utf-8", "surrogateescape"))
    return total.hexdigest()


def digest(corpus: Corpus, roles: Iterable[str]) -> str:
    """Return a checksum of some columns of a corpus, as far as it has them, and of all its boundaries."""
    total = xxhash.xxh3_128()
    for role in sorted(corpus.columns.keys() & set(roles)):
        distinct, numbers = corpus.numbered(role)
        told = "".join(f"{len(string)} {string}" for string in distinct)
        total.update(f"{role}\0{len(distinct)} {told}".encode("utf-8", "surrogatepass"))
        total.update(np.ascontiguousarray(numbers))  # type: ignore[arg-type]
    for name in BOUNDARIES:
        boundaries = np.asarray(getattr(corpus, name), np.int64)
        total.update(f"{name} {len(boundaries)}".encode())
        total.update(boundaries)  # type: ignore[arg-type]
    release(corpus)
    return total.hexdigest()


def write_corpus(writer: ArrayWriter, corpus: Corpus) -> None:
    """Write a corpus: of each column the distinct strings and their numbers."""
    for i, role in enumerate(corpus.columns):
        distinct, numbers = corpus.numbered(role)
        writer.append_strings(f"strings.{i}", distinct)
        writer.append(f"numbers.{i}", numbers)
    for name in BOUNDARIES:
        writer.append(name, np.asarray(getattr(corpus, name), np.int64))
    if corpus.lines is not None:
        writer.append("lines", corpus.lines.astype(np.int32))
    writer.finish({NAME: corpus.name, ROLES: list(corpus.columns)})


def filed_corpus(folder: ArrayFolder) -> Corpus:
    """Return the corpus that `write_corpus` has written; what belongs to each token is read when it is looked at."""
    columns = {
        role: Column(DistinctStrings(folder.strings(f"strings.{i}"), folder.array(f"numbers.{i}").mapped()))
        for i, role in enumerate(folder.about[ROLES])
    }
    lines = folder.array("lines").mapped() if "lines" in folder else None
    starts, sentences, documents = (folder.array(name).whole() for name in BOUNDARIES)
    return Corpus(columns, starts, sentences, documents, folder.about[NAME], lines)


def release(corpus: Corpus) -> None:
    """Let go of the memory of what was looked at in files; it is read again where it is needed."""
    for array in _mapped(corpus):
        if isinstance(array.base, np.memmap) and hasattr(mmap, "MADV_DONTNEED"):
            array.base._mmap.madvise(mmap.MADV_DONTNEED)  # type: ignore[attr-defined]


def _mapped(corpus: Corpus) -> Iterator[np.ndarray]:
    yield from (column.strings.numbers for column in corpus.columns.values() if isinstance(column, Column))
    if corpus.lines is not None:
        yield corpus.lines
