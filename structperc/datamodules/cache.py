"""Corpora, their features and arrays, in memory or cached in a folder for later runs.

The name of a cached folder is a checksum of everything that it depends on: content of the data, reading options,
templates, resources, labels and version of the library. One process writes the folder while others wait; it appears
when it is complete. Damaged folders are written again.
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
from structperc.data.label_sets import ALLOWED
from structperc.data.labels import LabelSet
from structperc.data.output import atomic_folder, write_errors
from structperc.data.text_files import expand_path
from structperc.data.weights import WEIGHT
from structperc.datamodules.encoded import CorpusArrays, encode_arrays, load_arrays, write_arrays
from structperc.errors import InputError
from structperc.features import DocumentAttribute, FeatureExtractor
from structperc.process_pool import Workers
from structperc.version import __version__

FORMAT = 4  # version of the folders, and of the checksums that are their names
LIBRARY = __name__.partition(".")[0]
NAME, ROLES = "name", "roles"  # entries of a cached corpus
BOUNDARIES = ("starts", "sentences", "documents")
PLACE = "features.documents."  # prefix of a document attribute in the state of a `FeatureExtractor`
STRINGS = "strings"
FITTED = ("vocabularies", "buckets", "weighted")  # state of features that is fitted to a corpus

logger = logging.getLogger("pytorch_lightning.structperc")


class CorpusStore:
    """Keeps corpora in memory, for this process only; base class of `CorpusCache`."""

    def corpus(self, key: Callable[[], Any], read: Callable[[], Corpus]) -> Corpus:
        """Return the result of `read`, which depends on the plain JSON types that `key` returns."""
        return read()

    def fit_features(self, features: FeatureExtractor, corpus: Corpus) -> FeatureExtractor:
        """Return features fitted to a training corpus. Raises InputError as `FeatureExtractor.fit` does."""
        features.fit(corpus)
        return features

    def arrays(self, corpus: Corpus, features: FeatureExtractor, labels: LabelSet) -> CorpusArrays:
        """Return a corpus as arrays. Raises InputError for unknown labels and missing columns."""
        return encode_arrays(corpus, features, labels)


class CorpusCache(CorpusStore):
    """Keeps corpora in files, for all processes and later runs.

    Features for which `is_cacheable` is False are fitted in each run, and their arrays stay in memory.

    Args:
        folder: created when it is needed; environment variables are expanded.
        workers: processes for large corpora; the files do not depend on their number.
    """

    def __init__(self, folder: str, workers: Workers = Workers()) -> None:  # noqa: B008  # immutable
        self.folder, self.workers = expand_path(folder), workers

    def corpus(self, key: Callable[[], Any], read: Callable[[], Corpus]) -> Corpus:
        """Return the result of `read`, or a cached one.

        Raises InputError as `read` does, and if the cache cannot be written.
        """
        source = key()

        def write(writer: ArrayWriter) -> None:
            corpus = read()
            if key() != source:
                raise InputError(f"{corpus.name}: this file was changed while it was read; start again")
            write_corpus(writer, corpus)

        return load_corpus(self._cached("corpus", source, write))

    def fit_features(self, features: FeatureExtractor, corpus: Corpus) -> FeatureExtractor:
        """Return features fitted to a training corpus; a new object if they were cached."""
        if not is_cacheable(features):
            return super().fit_features(features, corpus)

        def write(writer: ArrayWriter) -> None:
            features.fit(corpus, self._workers(writer))
            write_features(writer, features)

        state = {name: value for name, value in features.state_dict_json().items() if name not in FITTED}
        column = None if features.index.weighted is None else features.index.weighted.column
        source = [corpus_digest(corpus, features.columns), state, column]
        return load_features(self._cached("features", source, write), features)

    def arrays(self, corpus: Corpus, features: FeatureExtractor, labels: LabelSet) -> CorpusArrays:
        """Return a corpus as arrays in files."""
        if not is_cacheable(features):
            return super().arrays(corpus, features, labels)

        def write(writer: ArrayWriter) -> None:
            write_arrays(writer, corpus, features, labels, self._workers(writer))

        digest = corpus_digest(corpus, [*features.columns, "label", ALLOWED, WEIGHT])
        folder = self._cached("arrays", [digest, features_digest(features), labels.names, labels.scheme], write)
        release_memory(corpus)
        return load_arrays(folder)

    def _cached(self, kind: str, source: Any, write: Callable[[ArrayWriter], None]) -> ArrayFolder:
        """Return the cached folder for a source; `write` fills it if it is missing or damaged."""
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
                logger.warning("%s; writing it again", error)
            with write_errors(place), atomic_folder(place) as folder, ArrayWriter(folder) as writer:
                write(writer)
        return ArrayFolder(place)

    def _workers(self, writer: ArrayWriter) -> Workers:
        """Return workers whose files are next to those of a writer, and are removed with them."""
        return self.workers._replace(folder=writer.folder.parent)

    @contextmanager
    def _locked(self, place: Path) -> Iterator[None]:
        """Hold the lock of a folder, which is released if the process ends."""
        with write_errors(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            lock = FileLock(place.with_name(f".{place.name}.lock"))
            try:
                lock.acquire(timeout=0)
            except Timeout:
                logger.info("%s: waiting for another process that writes it", place)
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
    """Return a checksum of the boundaries of a corpus and of those columns among `roles` that it has."""
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
    """Write a corpus: the distinct strings of each column, and their numbers."""
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
    """Return the corpus written by `write_corpus`; columns are memory-mapped."""
    columns = {
        role: Column(Factorized(folder.strings(f"strings.{i}"), folder.array(f"numbers.{i}").memory_map()))
        for i, role in enumerate(folder.metadata[ROLES])
    }
    lines = folder.array("lines").memory_map() if "lines" in folder else None
    starts, sentences, documents = (folder.array(name).read() for name in BOUNDARIES)
    return Corpus(columns, starts, sentences, documents, folder.metadata[NAME], lines)


def release_memory(corpus: Corpus) -> None:
    """Release the memory of mapped files, which are read again on use."""
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
    """A builder that returns existing document attributes."""

    trusted: tuple[str, ...] = ()

    def __init__(self, attributes: Mapping[str, DocumentAttribute]) -> None:
        self._attributes = attributes

    def part(self, described: Any, base: type, place: str) -> Any:
        return self._attributes[place.removeprefix(PLACE)]

    def function(self, path: Any, place: str) -> Any:
        raise InputError(f"{place}: {path} is not cached")  # see `is_cacheable`


def is_cacheable(features: FeatureExtractor) -> bool:
    """Return True if the state of features, a corpus and the version of the library determine all ids.

    Trainable document attributes, such as the labels of first models, those of other packages and user functions may
    depend on anything else.
    """
    return not features.attributes and all(
        type(one).fit is DocumentAttribute.fit and class_path_of(type(one)).partition(".")[0] == LIBRARY
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
    """Return the features written by `write_features`, with document attributes and progress bar of `like`."""
    arrays = {name: folder.array(name).read() for name in folder.metadata["arrays"]}
    found = FeatureExtractor.from_state(json.loads(folder.text(STRINGS)), arrays, _FixedParts(like.documents))
    found.progress = like.progress
    return found
