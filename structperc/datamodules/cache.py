"""Corpora, features and arrays kept in a folder, so that they are made once.

What is kept has a name that stands for all that it was made from: the content of the data and the options of reading,
templates and resources, labels, the library's version. It appears when it is complete, is made by one process while
others that need it wait, and is made anew where its files are damaged.

Corpora in files: what tells one from another, how they are written, and read as far as they are looked at.

Learned features in files.
"""

import hashlib
import json
import logging
import mmap
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import xxhash
from filelock import FileLock, Timeout

from structperc.constructors import class_path_of
from structperc.data.arrays import ArrayFolder, ArrayWriter
from structperc.data.corpus import Column, Corpus, Factorized
from structperc.data.labels import LabelSet
from structperc.data.output import atomic_folder, write_errors
from structperc.data.text_files import expand
from structperc.datamodules.arrays import CorpusArrays, encode_arrays, load_arrays, write_arrays
from structperc.errors import InputError
from structperc.features import DocumentAttribute, FeatureExtractor
from structperc.process_pool import Workers
from structperc.version import __version__

NAME, ROLES = "name", "roles"  # what is known of a corpus beside its arrays
BOUNDARIES = ("starts", "sentences", "documents")


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


def load_corpus(folder: ArrayFolder) -> Corpus:
    """Return the corpus that `write_corpus` has written; what belongs to each token is read when it is looked at."""
    columns = {
        role: Column(Factorized(folder.strings(f"strings.{i}"), folder.array(f"numbers.{i}").mapped()))
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


LIBRARY = __name__.partition(".")[0]
PLACE = "features.documents."  # of an attribute of documents in what `FeatureExtractor.from_state` reads
STRINGS = "strings"
COUNTED = ("vocabularies", "buckets", "bag")  # of the state of features what they have from a corpus


class _Given:
    """Gives attributes of documents, which have learned nothing, in place of building them anew."""

    trusted: tuple[str, ...] = ()

    def __init__(self, attributes: Mapping[str, DocumentAttribute]) -> None:
        self._attributes = attributes

    def part(self, described: Any, base: type, place: str) -> Any:
        """Return the one that a place names."""
        return self._attributes[place.removeprefix(PLACE)]

    def function(self, path: Any, place: str) -> Any:
        """Refuse: features with functions of a user's own are not kept."""
        raise InputError(f"{place}: {path} is not kept")


def is_cacheable(features: FeatureExtractor) -> bool:
    """Return whether the state of features, a corpus and the version of the library decide all ids.

    Attributes of documents that learn, such as the labels of first models, and those of other packages may look at
    anything else; so may functions of a user's own.
    """
    return not features.attributes and all(
        type(one).learn is DocumentAttribute.learn and class_path_of(type(one)).partition(".")[0] == LIBRARY
        for one in features.documents.values()
    )


def feature_config(features: FeatureExtractor) -> list[Any]:
    """Return all that decides what features learn of a corpus, plain JSON types."""
    told = {name: value for name, value in features.state_dict_json().items() if name not in COUNTED}
    return [told, None if features.bag is None else features.bag.column]


def features_digest(features: FeatureExtractor) -> str:
    """Return a checksum of features and their ids."""
    total = xxhash.xxh3_128(_told(features).encode("utf-8", "surrogatepass"))
    for name, array in sorted(features.state_arrays().items()):
        total.update(f"{name} {array.dtype} {array.shape}".encode())
        total.update(array)  # type: ignore[arg-type]
    return total.hexdigest()


def write_features(writer: ArrayWriter, features: FeatureExtractor) -> None:
    """Write features and their ids."""
    writer.append_text(STRINGS, _told(features))
    arrays = features.state_arrays()
    for name, array in arrays.items():
        writer.append(name, array)
    writer.finish({"arrays": list(arrays)})


def load_features(folder: ArrayFolder, like: FeatureExtractor) -> FeatureExtractor:
    """Return the features that `write_features` has written; what they show of progress is as of `like`."""
    arrays = {name: folder.array(name).whole() for name in folder.about["arrays"]}
    found = FeatureExtractor.from_state(json.loads(folder.text(STRINGS)), arrays, _Given(like.documents))
    found.progress = like.progress
    return found


def _told(features: FeatureExtractor) -> str:
    return json.dumps(features.state_dict_json())


FORMAT = 2  # of the folders, and of what their names are made from

logger = logging.getLogger("pytorch_lightning.structperc")


class CorpusStore(Protocol):
    """Where corpora are kept as training reads them."""

    def corpus(self, made_from: Callable[[], Any], read: Callable[[], Corpus]) -> Corpus:
        """Return the corpus that `read` reads.

        made_from: gives plain JSON types that say all that it depends on.
        """

    def fit_features(self, features: FeatureExtractor, corpus: Corpus) -> FeatureExtractor:
        """Return features whose ids are those of this training corpus. Raises InputError as their `fit` does."""

    def arrays(self, corpus: Corpus, features: FeatureExtractor, labels: LabelSet) -> CorpusArrays:
        """Return a corpus as arrays. Raises InputError for labels that are unknown, and for missing columns."""


class InMemoryStore:
    """Keeps corpora in memory, for this process alone."""

    def corpus(self, made_from: Callable[[], Any], read: Callable[[], Corpus]) -> Corpus:
        """Return the corpus that `read` reads."""
        return read()

    def fit_features(self, features: FeatureExtractor, corpus: Corpus) -> FeatureExtractor:
        """Return the features, which are learned now."""
        features.fit(corpus)
        return features

    def arrays(self, corpus: Corpus, features: FeatureExtractor, labels: LabelSet) -> CorpusArrays:
        """Return a corpus as arrays in memory."""
        return encode_arrays(corpus, features, labels)


class CorpusCache:
    """Keeps corpora in files, for all processes and later runs.

    Features with attributes of documents that learn, or that are not of this library, are learned by each run, and
    arrays of theirs are in memory: what such attributes look at beside the corpus is not known.

    Args:
        folder: the folder, which is made when it is needed; environment variables are expanded.
        workers: that make what large corpora need; the files do not depend on how many they are.
    """

    def __init__(self, folder: str, workers: Workers = Workers()) -> None:  # noqa: B008  # immutable
        self.folder, self.workers = expand(folder), workers

    def corpus(self, made_from: Callable[[], Any], read: Callable[[], Corpus]) -> Corpus:
        """Return the corpus that `read` reads, or one that is made from the same.

        Raises InputError as `read` does, and where the cache cannot be written.
        """
        told = made_from()

        def write(writer: ArrayWriter) -> None:
            corpus = read()
            if made_from() != told:
                raise InputError(f"{corpus.name}: this file was changed while it was read; start again")
            write_corpus(writer, corpus)

        return load_corpus(self._kept("corpus", told, write))

    def fit_features(self, features: FeatureExtractor, corpus: Corpus) -> FeatureExtractor:
        """Return the features as they are after this training corpus: others than those given, if they were kept."""
        if not is_cacheable(features):
            return InMemoryStore().fit_features(features, corpus)
        made_from = [corpus_digest(corpus, features.columns), feature_config(features)]

        def learn(writer: ArrayWriter) -> None:
            features.fit(corpus, self._workers(writer))
            write_features(writer, features)

        return load_features(self._kept("features", made_from, learn), features)

    def arrays(self, corpus: Corpus, features: FeatureExtractor, labels: LabelSet) -> CorpusArrays:
        """Return a corpus as arrays in files."""
        if not is_cacheable(features):
            return encode_arrays(corpus, features, labels)
        made_from = [
            corpus_digest(corpus, [*features.columns, "label"]),
            features_digest(features),
            labels.names,
            labels.scheme,
        ]

        def write(writer: ArrayWriter) -> None:
            write_arrays(writer, corpus, features, labels, self._workers(writer))

        kept = self._kept("arrays", made_from, write)
        release(corpus)
        return load_arrays(kept)

    def _kept(self, kind: str, made_from: Any, write: Callable[[ArrayWriter], None]) -> ArrayFolder:
        """The folder of what is made from this, which `write` fills if it is not there or damaged."""
        told = json.dumps([FORMAT, __version__, kind, made_from], sort_keys=True)
        place = self.folder / f"{kind}-{hashlib.sha256(told.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"
        with suppress(InputError):
            if place.exists():
                return ArrayFolder(place)
        with self._alone(place):
            try:
                if place.exists():  # another process has made it in the meantime, or it is damaged
                    return ArrayFolder(place)
            except InputError as error:
                logger.warning("%s; it is made anew", error)
            with write_errors(place), atomic_folder(place) as folder, ArrayWriter(folder) as writer:
                write(writer)
        return ArrayFolder(place)

    def _workers(self, writer: ArrayWriter) -> Workers:
        """The workers, whose files lie beside what is written, and are swept with it."""
        return self.workers._replace(folder=writer.folder.parent)

    @contextmanager
    def _alone(self, place: Path) -> Iterator[None]:
        """Hold the lock of what is made at a place, once no other process does. It ends with the process."""
        with write_errors(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            lock = FileLock(place.with_name(f".{place.name}.lock"))
            try:
                lock.acquire(timeout=0)
            except Timeout:
                logger.info("%s: another process makes it; waiting", place)
                lock.acquire()
        try:
            yield
        finally:
            lock.release()
