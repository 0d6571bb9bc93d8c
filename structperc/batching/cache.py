"""Corpora, features and arrays kept in a folder, so that they are made once.

What is kept has a name that stands for all that it was made from: the content of the data and the options of reading,
templates and resources, labels, the library's version. It appears when it is complete, is made by one process while
others that need it wait, and is made anew where its files are damaged.
"""

import hashlib
import json
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

from filelock import FileLock, Timeout

from structperc.batching.arrays import Arrays, filed_arrays, held_arrays, write_arrays
from structperc.batching.kept_corpus import digest, filed_corpus, release, write_corpus
from structperc.batching.kept_features import can_be_kept, filed_features, learned_digest, unlearned, write_features
from structperc.data.array_folder import ArrayFolder, ArrayWriter
from structperc.data.corpus import Corpus
from structperc.data.labels import LabelSet
from structperc.data.output import complaints
from structperc.data.text import expand
from structperc.data.unfinished import whole_folder
from structperc.errors import InputError
from structperc.features import FeatureExtractor
from structperc.version import __version__
from structperc.workers import Workers

FORMAT = 2  # of the folders, and of what their names are made from

logger = logging.getLogger("pytorch_lightning.structperc")


class Store(Protocol):
    """Where corpora are kept as training reads them."""

    def corpus(self, made_from: Callable[[], Any], read: Callable[[], Corpus]) -> Corpus:
        """Return the corpus that `read` reads.

        made_from: gives plain JSON types that say all that it depends on.
        """

    def learned(self, features: FeatureExtractor, corpus: Corpus) -> FeatureExtractor:
        """Return features whose ids are those of this training corpus. Raises InputError as their `fit` does."""

    def arrays(self, corpus: Corpus, features: FeatureExtractor, labels: LabelSet) -> Arrays:
        """Return a corpus as arrays. Raises InputError for labels that are unknown, and for missing columns."""


class Memory:
    """Keeps corpora in memory, for this process alone."""

    def corpus(self, made_from: Callable[[], Any], read: Callable[[], Corpus]) -> Corpus:
        """Return the corpus that `read` reads."""
        return read()

    def learned(self, features: FeatureExtractor, corpus: Corpus) -> FeatureExtractor:
        """Return the features, which are learned now."""
        features.fit(corpus)
        return features

    def arrays(self, corpus: Corpus, features: FeatureExtractor, labels: LabelSet) -> Arrays:
        """Return a corpus as arrays in memory."""
        return held_arrays(corpus, features, labels)


class Cache:
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

        return filed_corpus(self._kept("corpus", told, write))

    def learned(self, features: FeatureExtractor, corpus: Corpus) -> FeatureExtractor:
        """Return the features as they are after this training corpus: others than those given, if they were kept."""
        if not can_be_kept(features):
            return Memory().learned(features, corpus)
        made_from = [digest(corpus, features.columns), unlearned(features)]

        def learn(writer: ArrayWriter) -> None:
            features.fit(corpus, self._workers(writer))
            write_features(writer, features)

        return filed_features(self._kept("features", made_from, learn), features)

    def arrays(self, corpus: Corpus, features: FeatureExtractor, labels: LabelSet) -> Arrays:
        """Return a corpus as arrays in files."""
        if not can_be_kept(features):
            return held_arrays(corpus, features, labels)
        made_from = [
            digest(corpus, [*features.columns, "label"]),
            learned_digest(features),
            labels.names,
            labels.scheme,
        ]

        def write(writer: ArrayWriter) -> None:
            write_arrays(writer, corpus, features, labels, self._workers(writer))

        kept = self._kept("arrays", made_from, write)
        release(corpus)
        return filed_arrays(kept)

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
            with complaints(place), whole_folder(place) as folder, ArrayWriter(folder) as writer:
                write(writer)
        return ArrayFolder(place)

    def _workers(self, writer: ArrayWriter) -> Workers:
        """The workers, whose files lie beside what is written, and are swept with it."""
        return self.workers._replace(folder=writer.folder.parent)

    @contextmanager
    def _alone(self, place: Path) -> Iterator[None]:
        """Hold the lock of what is made at a place, once no other process does. It ends with the process."""
        with complaints(self.folder):
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
