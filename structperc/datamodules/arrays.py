"""A corpus as arrays of numbers, in memory or in files."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from copy import copy
from functools import partial
from itertools import pairwise
from typing import NamedTuple, Protocol

import numpy as np
import torch

from structperc.data.arrays import ArrayFolder, ArraySource, ArrayWriter, MemoryArray
from structperc.data.corpus import Corpus
from structperc.data.labels import LabelSet
from structperc.data.splits import chunk_bounds
from structperc.data.words import word_numbers
from structperc.features import FeatureExtractor
from structperc.features.arrays import IdLists
from structperc.process_pool import Workers
from structperc.progress import bar
from structperc.ragged import Ragged

PIECE = 2**17  # tokens whose features are found at a time where they go to a file
WORTH = 4  # such pieces take longer than a worker takes to start

NODES, EDGES, TOKENS, LOOKS, LABELLED = "nodes", "edges", "tokens", "looks", "labelled"


class IdListSource(Protocol):
    """Lists of ids, one for each token of a corpus."""

    def take(self, starts: np.ndarray, stops: np.ndarray) -> Ragged:
        """Return the lists starts[i], ..., stops[i] - 1, for one i after the other, as a mini-batch holds them."""


class CorpusArrays(NamedTuple):
    """A corpus of N tokens, of V distinct words, with the features of a tagger."""

    nodes: IdListSource
    edges: IdListSource | None  # the same object as `nodes` where these are the same features; None without templates
    tokens: ArraySource  # (N, 3) int32: number of the label, of the sentence within its sequence, of the word
    looks: np.ndarray  # (4, V) int64, see `word_numbers`
    labelled: bool  # whether there are gold labels, which are 0 else


class StoredIdLists(NamedTuple):
    """Lists of ids that lie in files: list i is ids[ends[i]:ends[i + 1]]."""

    ids: ArraySource  # (M,) int32
    ends: ArraySource  # (N + 1,) int64
    weights: ArraySource | None  # (M,) float32; None: each id counts 1

    def take(self, starts: np.ndarray, stops: np.ndarray) -> Ragged:
        """Return the lists starts[i], ..., stops[i] - 1, for one i after the other, as a mini-batch holds them."""
        from structperc.kernels.slices import copy_offsets  # needs a compiler

        ends, lengths = self.ends.take(starts, stops + 1), stops - starts
        closing = (lengths + 1).cumsum() - 1  # where the stretches close in `ends`
        opening = closing - lengths
        first, last = ends[opening], ends[closing]
        taken, longest = copy_offsets(ends, opening, closing)
        return Ragged(
            torch.from_numpy(self.ids.take(first, last)),
            torch.from_numpy(taken),
            longest=longest,
            weights=None if self.weights is None else torch.from_numpy(self.weights.take(first, last)),
        )


def encode_arrays(corpus: Corpus, features: FeatureExtractor, labels: LabelSet) -> CorpusArrays:
    """Return a corpus as arrays in memory. Raises InputError for labels that are unknown, and for missing columns."""
    encoded = features.encode(corpus)
    tokens = _numbers(corpus, corpus.factorize("word").numbers, _gold(corpus, labels))
    looks = word_numbers(corpus.factorize("word").distinct)
    return CorpusArrays(encoded.nodes, encoded.edges, MemoryArray(tokens), looks, "label" in corpus.columns)


def write_arrays(
    writer: ArrayWriter,
    corpus: Corpus,
    features: FeatureExtractor,
    labels: LabelSet,
    workers: Workers = Workers(),  # noqa: B008  # immutable
) -> None:
    """Write a corpus as arrays, piece by piece, in constant memory. Raises as `encode_arrays` does.

    Each worker extracts the features of a piece. Features that read the whole corpus are extracted in one piece.
    """
    bounds = chunk_bounds(corpus, PIECE, features.extent)
    nodes, edges, kind = _ListWriter(writer, NODES), _ListWriter(writer, EDGES), None
    silent = copy(features)
    silent.progress = False
    found_in = partial(getattr, silent, "ids")  # which workers can be sent
    pieces = _written_tokens(writer, corpus, labels, bounds)
    with (
        closing(workers.at_most(len(bounds) // WORTH).each(found_in, pieces)) as each,
        bar(None, "encoding features", corpus.tokens, features.progress) as shown,
    ):
        for found in each:
            nodes.append(found.nodes)
            if found.edges is not None:
                kind = NODES if found.edges is found.nodes else EDGES
                if kind == EDGES:
                    edges.append(found.edges)
            shown.update(len(found.nodes.ends) - 1)
    writer.append(LOOKS, word_numbers(corpus.factorize("word").distinct))
    writer.finish({LABELLED: "label" in corpus.columns, EDGES: kind})


def load_arrays(folder: ArrayFolder) -> CorpusArrays:
    """Return the arrays that `write_arrays` has written."""
    nodes, kind = _filed(folder, NODES), folder.about[EDGES]
    edges = None if kind is None else nodes if kind == NODES else _filed(folder, EDGES)
    return CorpusArrays(nodes, edges, folder.array(TOKENS), folder.array(LOOKS).whole(), folder.about[LABELLED])


class _ListWriter:
    """Writes lists of ids as arrays NAME.ids, NAME.ends and, once an id does not count 1, NAME.weights."""

    def __init__(self, writer: ArrayWriter, name: str) -> None:
        self.writer, self.ids, self.ends, self.weights = writer, f"{name}.ids", f"{name}.ends", f"{name}.weights"
        self.written = 0

    def append(self, lists: IdLists) -> None:
        """Add the lists of some more tokens."""
        if self.ends not in self.writer:
            self.writer.append(self.ends, np.zeros(1, np.int64))
        self.writer.append(self.ids, lists.ids)
        self.writer.append(self.ends, lists.ends[1:] + self.written)
        if lists.weights is not None and self.weights not in self.writer:
            self.writer.append(self.weights, np.ones(self.written, np.float32))
        if self.weights in self.writer:
            own = np.ones(len(lists.ids), np.float32) if lists.weights is None else lists.weights
            self.writer.append(self.weights, own)
        self.written += len(lists.ids)


def _written_tokens(writer: ArrayWriter, corpus: Corpus, labels: LabelSet, bounds: Sequence[int]) -> Iterator[Corpus]:
    """Yield the pieces of a corpus between bounds, once the numbers of their tokens are written."""
    words, gold = corpus.factorize("word").numbers, _gold(corpus, labels)
    for first, stop in pairwise(bounds):
        piece = corpus if len(bounds) == 2 else corpus.slice(first, stop)
        own = slice(int(corpus.starts[first]), int(corpus.starts[stop]))
        writer.append(TOKENS, _numbers(piece, words[own], gold[own]))
        yield piece


def _numbers(corpus: Corpus, words: np.ndarray, gold: np.ndarray) -> np.ndarray:
    """The `tokens` of `CorpusArrays`, (N, 3) int32."""
    return np.stack([gold, _sentences(corpus), words], 1).astype(np.int32)


def _gold(corpus: Corpus, labels: LabelSet) -> np.ndarray:
    """The number of the label of each token, (N,) int32; all 0 for a corpus without labels."""
    if "label" not in corpus.columns:
        return np.broadcast_to(np.int32(0), corpus.tokens)
    distinct, numbers = corpus.factorize("label")
    ids = labels.encode(distinct, lambda i: corpus.where(int(np.flatnonzero(numbers == i)[0])))
    return ids.astype(np.int32)[numbers]


def _sentences(corpus: Corpus) -> np.ndarray:
    """The number of the sentence of each token within its sequence, (N,) int32."""
    sentence = np.repeat(np.arange(len(corpus.sentences) - 1, dtype=np.int32), np.diff(corpus.sentences))
    first = sentence[np.minimum(corpus.starts[:-1], max(0, corpus.tokens - 1))] if len(sentence) else sentence
    return sentence - np.repeat(first, corpus.lengths)


def _filed(folder: ArrayFolder, kind: str) -> StoredIdLists:
    weights = f"{kind}.weights"
    return StoredIdLists(
        folder.array(f"{kind}.ids"),
        folder.array(f"{kind}.ends"),
        folder.array(weights) if weights in folder else None,
    )
