"""Corpora, their features and arrays, in memory or cached in a folder for later runs.

The name of a cached folder is a checksum of all that it depends on: the content of the data, the options of reading,
templates and resources, labels and the library's version. The folder appears when it is complete, is written by one
process while others wait for it, and is written again if its files are damaged.
"""

import hashlib
import json
import logging
import mmap
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import xxhash
from filelock import FileLock, Timeout

from structperc.constructors import class_path_of
from structperc.data.arrays import ArrayFolder, ArrayWriter
from structperc.data.corpus import Column, Corpus, Factorized
from structperc.data.labels import LabelSet
from structperc.data.output import atomic_folder, write_errors
from structperc.data.text_files import expand_path
from structperc.datamodules.arrays import CorpusArrays, encode_arrays, load_arrays, write_arrays
from structperc.errors import InputError
from structperc.features import DocumentAttribute, FeatureExtractor
from structperc.process_pool import Workers
from structperc.version import __version__

FORMAT = 3  # of the folders, and of the checksums that are their names
LIBRARY = __name__.partition(".")[0]
NAME, ROLES = "name", "roles"  # of a corpus
BOUNDARIES = ("starts", "sentences", "documents")
PLACE = "features.documents."  # of an attribute of documents in what `FeatureExtractor.from_state` reads
STRINGS = "strings"
COUNTED = ("vocabularies", "buckets", "weighted")  # what features have from a corpus

logger = logging.getLogger("pytorch_lightning.structperc")


class CorpusStore:
    """Keeps corpora in memory, for this process only."""

    def corpus(self, made_from: Callable[[], Any], read: Callable[[], Corpus]) -> Corpus:
        """Return the corpus that `read` reads.

        made_from: returns plain JSON types that the corpus depends on.
        """
        return read()

    def fit_features(self, features: FeatureExtractor, corpus: Corpus) -> FeatureExtractor:
        """Return features whose ids are those of this training corpus. Raises InputError as their `fit` does."""
        features.fit(corpus)
        return features

    def arrays(self, corpus: Corpus, features: FeatureExtractor, labels: LabelSet) -> CorpusArrays:
        """Return a corpus as arrays. Raises InputError for labels that are unknown, and for missing columns."""
        return encode_arrays(corpus, features, labels)


class CorpusCache(CorpusStore):
    """Keeps corpora in files, for all processes and later runs.

    Features with attributes of documents that learn, or that are not of this library, are learned by each run, and
    their arrays stay in memory: what such attributes depend on besides the corpus is not known.

    Args:
        folder: the folder, which is created when it is needed; environment variables are expanded.
        workers: for large corpora; the files do not depend on how many there are.
    """

    def __init__(self, folder: str, workers: Workers = Workers()) -> None:  # noqa: B008  # immutable
        self.folder, self.workers = expand_path(folder), workers

    def corpus(self, made_from: Callable[[], Any], read: Callable[[], Corpus]) -> Corpus:
        """Return the corpus that `read` reads, or a cached one.

        Raises InputError as `read` does, and if the cache cannot be written.
        """
        source = made_from()

        def write(writer: ArrayWriter) -> None:
            corpus = read()
            if made_from() != source:
                raise InputError(f"{corpus.name}: this file was changed while it was read; start again")
            write_corpus(writer, corpus)

        return load_corpus(self._cached("corpus", source, write))

    def fit_features(self, features: FeatureExtractor, corpus: Corpus) -> FeatureExtractor:
        """Return the features as they are after this training corpus: another object if they were cached."""
        if not is_cacheable(features):
            return super().fit_features(features, corpus)

        def write(writer: ArrayWriter) -> None:
            features.fit(corpus, self._workers(writer))
            write_features(writer, features)

        state = {name: value for name, value in features.state_dict_json().items() if name not in COUNTED}
        column = None if features.weighted is None else features.weighted.column
        source = [corpus_digest(corpus, features.columns), state, column]
        return load_features(self._cached("features", source, write), features)

    def arrays(self, corpus: Corpus, features: FeatureExtractor, labels: LabelSet) -> CorpusArrays:
        """Return a corpus as arrays in files."""
        if not is_cacheable(features):
            return super().arrays(corpus, features, labels)

        def write(writer: ArrayWriter) -> None:
            write_arrays(writer, corpus, features, labels, self._workers(writer))

        digest = corpus_digest(corpus, [*features.columns, "label"])
        folder = self._cached("arrays", [digest, features_digest(features), labels.names, labels.scheme], write)
        release_memory(corpus)
        return load_arrays(folder)

    def _cached(self, kind: str, source: Any, write: Callable[[ArrayWriter], None]) -> ArrayFolder:
        """The folder of what depends on `source`, which `write` fills if it is missing or damaged."""
        text = json.dumps([FORMAT, __version__, kind, source], sort_keys=True).encode("utf-8", "surrogatepass")
        place = self.folder / f"{kind}-{hashlib.sha256(text).hexdigest()[:32]}"
        with suppress(InputError):
            if place.exists():
                return ArrayFolder(place)
        with self._locked(place):
            try:
                if place.exists():  # another process has written it in the meantime, or it is damaged
                    return ArrayFolder(place)
            except InputError as error:
                logger.warning("%s; it is written again", error)
            with write_errors(place), atomic_folder(place) as folder, ArrayWriter(folder) as writer:
                write(writer)
        return ArrayFolder(place)

    def _workers(self, writer: ArrayWriter) -> Workers:
        """The workers, whose files are next to what is written, and are removed with it."""
        return self.workers._replace(folder=writer.folder.parent)

    @contextmanager
    def _locked(self, place: Path) -> Iterator[None]:
        """Hold the lock of a folder, after waiting for other processes; it ends with the process."""
        with write_errors(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            lock = FileLock(place.with_name(f".{place.name}.lock"))
            try:
                lock.acquire(timeout=0)
            except Timeout:
                logger.info("%s: another process writes it; waiting", place)
                lock.acquire()
        try:
            yield
        finally:
            lock.release()


# -- corpora -------------------------------------------------------------------------------------------------


def file_digest(path: Path) -> str:
    """Return a checksum of a file, or of the names and content of the files in a folder. Raises OSError."""
    if not path.is_dir():
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    total = hashlib.sha256()
    for own in sorted(own for own in path.rglob("*") if own.is_file()):
        total.update(f"{own.relative_to(path)}\0{file_digest(own)}\0".encode("utf-8", "surrogateescape"))
    return total.hexdigest()


def corpus_digest(corpus: Corpus, roles: Iterable[str]) -> str:
    """Return a checksum of some columns of a corpus, as far as it has them, and of all its boundaries."""
    total = xxhash.xxh3_128()
    for role in sorted(corpus.columns.keys() & set(roles)):
        distinct, numbers = corpus.factorize(role)
        text = "".join(f"{len(string)} {string}" for string in distinct)
        total.update(f"{role}\0{len(distinct)} {text}".encode("utf-8", "surrogatepass"))
        _update(total, numbers)
    for name in BOUNDARIES:
        boundaries = np.asarray(getattr(corpus, name), np.int64)
        total.update(f"{name} {len(boundaries)}".encode())
        _update(total, boundaries)
    release_memory(corpus)
    return total.hexdigest()


def _update(total: xxhash.xxh3_128, array: np.ndarray) -> None:
    total.update(np.ascontiguousarray(array).data.cast("B") if array.size else b"")


def write_corpus(writer: ArrayWriter, corpus: Corpus) -> None:
    """Write a corpus: of each column the distinct strings and their numbers."""
    for i, role in enumerate(corpus.columns):
        distinct, numbers = corpus.factorize(role)
        writer.append_strings(f"strings.{i}", distinct)
        writer.append(f"numbers.{i}", numbers)
    for name in BOUNDARIES:
        writer.append(name, np.asarray(getattr(corpus, name), np.int64))
    if corpus.lines is not None:
        writer.append("lines", corpus.lines.astype(np.int32))
    writer.finish({NAME: corpus.name, ROLES: list(corpus.columns)})


def load_corpus(folder: ArrayFolder) -> Corpus:
    """Return the corpus that `write_corpus` has written; the values of tokens are read when they are used."""
    columns = {
        role: Column(Factorized(folder.strings(f"strings.{i}"), folder.array(f"numbers.{i}").mapped()))
        for i, role in enumerate(folder.about[ROLES])
    }
    lines = folder.array("lines").mapped() if "lines" in folder else None
    starts, sentences, documents = (folder.array(name).whole() for name in BOUNDARIES)
    return Corpus(columns, starts, sentences, documents, folder.about[NAME], lines)


def release_memory(corpus: Corpus) -> None:
    """Release the memory of mapped files; they are read again when they are used."""
    arrays = [column.strings.numbers for column in corpus.columns.values() if isinstance(column, Column)]
    for array in arrays if corpus.lines is None else [*arrays, corpus.lines]:
        base: Any = array
        while isinstance(base, np.ndarray):
            base = base.base
        base = base.obj if isinstance(base, memoryview) else base
        if isinstance(base, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
            base.madvise(mmap.MADV_DONTNEED)


# -- features ------------------------------------------------------------------------------------------------


class _FixedParts:
    """Returns attributes of documents that exist already, in the place of a builder."""

    trusted: tuple[str, ...] = ()

    def __init__(self, attributes: Mapping[str, DocumentAttribute]) -> None:
        self._attributes = attributes

    def part(self, described: Any, base: type, place: str) -> Any:
        """Return the attribute of a place."""
        return self._attributes[place.removeprefix(PLACE)]

    def function(self, path: Any, place: str) -> Any:
        """Raise InputError: features with a user's functions are not cached."""
        raise InputError(f"{place}: {path} is not cached")


def is_cacheable(features: FeatureExtractor) -> bool:
    """Return whether the state of features, a corpus and the version of the library determine all ids.

    Attributes of documents that learn, such as the labels of first models, and those of other packages may depend on
    anything else; so may a user's functions.
    """
    return not features.attributes and all(
        type(one).learn is DocumentAttribute.learn and class_path_of(type(one)).partition(".")[0] == LIBRARY
        for one in features.documents.values()
    )


def features_digest(features: FeatureExtractor) -> str:
    """Return a checksum of features and their ids."""
    total = xxhash.xxh3_128(json.dumps(features.state_dict_json()).encode("utf-8", "surrogatepass"))
    for name, array in sorted(features.state_arrays().items()):
        total.update(f"{name} {array.dtype} {array.shape}".encode())
        _update(total, array)
    return total.hexdigest()


def write_features(writer: ArrayWriter, features: FeatureExtractor) -> None:
    """Write features and their ids."""
    writer.append_text(STRINGS, json.dumps(features.state_dict_json()))
    arrays = features.state_arrays()
    for name, array in arrays.items():
        writer.append(name, array)
    writer.finish({"arrays": list(arrays)})


def load_features(folder: ArrayFolder, like: FeatureExtractor) -> FeatureExtractor:
    """Return the features that `write_features` has written; they show progress as `like` does."""
    arrays = {name: folder.array(name).whole() for name in folder.about["arrays"]}
    found = FeatureExtractor.from_state(json.loads(folder.text(STRINGS)), arrays, _FixedParts(like.documents))
    found.progress = like.progress
    return found
