"""An encoded corpus: arrays in memory or in files, and the mini-batches cut from them."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from copy import copy
from functools import partial
from itertools import pairwise
from typing import NamedTuple, Protocol

import numpy as np
import torch
from torch.utils.data import Dataset

from structperc.data.arrays import ArrayFolder, ArraySource, ArrayWriter, MemoryArray
from structperc.data.corpus import Corpus
from structperc.data.label_sets import ALLOWED, allowed_labels
from structperc.data.labels import LabelSet
from structperc.data.splits import chunk_bounds
from structperc.data.weights import sequence_weights, token_weights
from structperc.data.words import word_numbers
from structperc.errors import InputError
from structperc.features import FeatureExtractor
from structperc.features.string_arrays import IdLists
from structperc.process_pool import Workers
from structperc.progress import bar
from structperc.ragged import Ragged, boundaries
from structperc.structures import Batch, FlatBatch, Words

PIECE = 2**17  # tokens per piece when features are written to a file
PIECES_PER_WORKER = 4  # at least; starting a worker takes as long as some pieces
MAX_PLACES = 2**22  # sequences x candidates x tokens: 32 MiB for the labels, about ten times that in all
NODES, EDGES, TOKENS, WORD_IDS, LABELLED = "nodes", "edges", "tokens", "word_ids", "labelled"
LABEL_SETS, WEIGHTS = "label_sets", "weights"
PER_SEQUENCE = ("lengths", "rows")  # tensors of a FlatBatch with a number for each sequence


class IdListSource(Protocol):
    """Lists of ids, one for each token of a corpus."""

    def take(self, starts: np.ndarray, stops: np.ndarray) -> Ragged:
        """Return the lists starts[i], ..., stops[i] - 1, concatenated over i."""


class CorpusArrays(NamedTuple):
    """A corpus of N tokens and V distinct words, with the features of a tagger."""

    nodes: IdListSource
    edges: IdListSource | None  # the same object as `nodes` for the same features; None without templates
    tokens: ArraySource  # (N, 3) int32: numbers of the label, of the sentence within its sequence, and of the word
    word_ids: np.ndarray  # (4, V) int64, see `word_numbers`
    labelled: bool  # False: there are no gold labels, and those in `tokens` are 0
    label_sets: np.ndarray | None = None  # (S, L) bool: label number L + i is any label of set i; None: no sets
    weights: ArraySource | None = None  # (N,) float32; None: 1 each


Encode = Callable[[Corpus, FeatureExtractor, LabelSet], CorpusArrays]


class StoredIdLists(NamedTuple):
    """Lists of ids in files: list i is ids[ends[i]:ends[i + 1]]."""

    ids: ArraySource  # (M,) int32
    ends: ArraySource  # (N + 1,) int64
    weights: ArraySource | None  # (M,) float32; None: each id counts 1

    def take(self, starts: np.ndarray, stops: np.ndarray) -> Ragged:
        """Return the lists starts[i], ..., stops[i] - 1, concatenated over i."""
        from structperc.kernels.slices import copy_offsets  # needs a compiler

        ends, lengths = self.ends.take(starts, stops + 1), stops - starts
        final = (lengths + 1).cumsum() - 1  # indices in `ends` of the last ends of the slices
        initial = final - lengths
        first, last = ends[initial], ends[final]
        taken, longest = copy_offsets(ends, initial, final)
        return Ragged(
            torch.from_numpy(self.ids.take(first, last)),
            torch.from_numpy(taken),
            longest=longest,
            weights=None if self.weights is None else torch.from_numpy(self.weights.take(first, last)),
        )


def encode_arrays(corpus: Corpus, features: FeatureExtractor, labels: LabelSet) -> CorpusArrays:
    """Return a corpus as arrays in memory. Raises InputError for unknown labels and missing columns."""
    encoded = features.encode(corpus)
    words = corpus.factorize("word")
    gold, label_sets = _gold(corpus, labels)
    tokens = MemoryArray(_token_array(corpus, words.numbers, gold))
    labelled, weights = "label" in corpus.columns, token_weights(corpus)
    return CorpusArrays(
        encoded.nodes,
        encoded.edges,
        tokens,
        word_numbers(words.distinct),
        labelled,
        label_sets,
        None if weights is None else MemoryArray(weights),
    )


def write_arrays(
    writer: ArrayWriter,
    corpus: Corpus,
    features: FeatureExtractor,
    labels: LabelSet,
    workers: Workers = Workers(),  # noqa: B008  # immutable
) -> None:
    """Write a corpus as arrays, piece by piece, in constant memory. Raises InputError as `encode_arrays` does.

    Features that depend on the whole corpus are extracted in one piece.
    """
    bounds = chunk_bounds(corpus, PIECE, features.extent)
    nodes, edges, kind = _ListWriter(writer, NODES), _ListWriter(writer, EDGES), None
    silent = copy(features)
    silent.progress = False
    extract = partial(getattr, silent, "ids")  # can be pickled
    pieces = _write_tokens(writer, corpus, labels, bounds)
    with (
        closing(workers.at_most(len(bounds) // PIECES_PER_WORKER).each(extract, pieces)) as each,
        bar(None, "encoding features", corpus.tokens, features.progress) as shown,
    ):
        for found in each:
            nodes.append(found.nodes)
            if found.edges is not None:
                kind = NODES if found.edges is found.nodes else EDGES
                if kind == EDGES:
                    edges.append(found.edges)
            shown.update(len(found.nodes.ends) - 1)
    writer.append(WORD_IDS, word_numbers(corpus.factorize("word").distinct))
    if (label_sets := _gold(corpus, labels)[1]) is not None:
        writer.append(LABEL_SETS, label_sets.astype(np.uint8))
    if (weights := token_weights(corpus)) is not None:
        writer.append(WEIGHTS, weights)
    writer.finish({LABELLED: "label" in corpus.columns, EDGES: kind})


def load_arrays(folder: ArrayFolder) -> CorpusArrays:
    """Return the arrays written by `write_arrays`."""
    nodes, kind = _load_lists(folder, NODES), folder.metadata[EDGES]
    edges = None if kind is None else nodes if kind == NODES else _load_lists(folder, EDGES)
    label_sets = folder.array(LABEL_SETS).read().astype(bool) if LABEL_SETS in folder else None
    words, labelled = folder.array(WORD_IDS).read(), folder.metadata[LABELLED]
    weights = folder.array(WEIGHTS) if WEIGHTS in folder else None
    return CorpusArrays(nodes, edges, folder.array(TOKENS), words, labelled, label_sets, weights)


class _ListWriter:
    """Writes lists of ids as arrays NAME.ids, NAME.ends and, if some weights are not 1, NAME.weights."""

    def __init__(self, writer: ArrayWriter, name: str) -> None:
        self.writer, self.ids, self.ends, self.weights = writer, f"{name}.ids", f"{name}.ends", f"{name}.weights"
        self.written = 0

    def append(self, lists: IdLists) -> None:
        """Add the lists of further tokens."""
        if self.ends not in self.writer:
            self.writer.append(self.ends, np.zeros(1, np.int64))
        self.writer.append(self.ids, lists.ids)
        self.writer.append(self.ends, lists.ends[1:] + self.written)
        if lists.weights is not None and self.weights not in self.writer:
            self.writer.append(self.weights, np.ones(self.written, np.float32))
        if self.weights in self.writer:
            weights = np.ones(len(lists.ids), np.float32) if lists.weights is None else lists.weights
            self.writer.append(self.weights, weights)
        self.written += len(lists.ids)


def _write_tokens(writer: ArrayWriter, corpus: Corpus, labels: LabelSet, bounds: Sequence[int]) -> Iterator[Corpus]:
    """Write the token arrays of the pieces of a corpus between bounds, and yield each piece."""
    words, (gold, _) = corpus.factorize("word").numbers, _gold(corpus, labels)
    for first, stop in pairwise(bounds):
        piece = corpus if len(bounds) == 2 else corpus.slice(first, stop)
        tokens = slice(int(corpus.starts[first]), int(corpus.starts[stop]))
        writer.append(TOKENS, _token_array(piece, words[tokens], gold[tokens]))
        yield piece


def _token_array(corpus: Corpus, words: np.ndarray, gold: np.ndarray) -> np.ndarray:
    """Return `CorpusArrays.tokens`, (N, 3) int32."""
    sentence = np.repeat(np.arange(len(corpus.sentences) - 1, dtype=np.int32), np.diff(corpus.sentences))
    first = sentence[np.minimum(corpus.starts[:-1], max(0, corpus.tokens - 1))] if len(sentence) else sentence
    return np.stack([gold, sentence - np.repeat(first, corpus.lengths), words], 1).astype(np.int32)


def _gold(corpus: Corpus, labels: LabelSet) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the label id of each token, (N,) int32, and the sets of labels of `CorpusArrays`.

    Ids are 0 for a corpus without labels, and L + i for tokens with any label of set i.
    """
    if "label" not in corpus.columns:
        return np.broadcast_to(np.int32(0), corpus.tokens), None
    distinct, numbers = corpus.factorize(ALLOWED if ALLOWED in corpus.columns else "label")

    def where(i: int) -> str:
        return corpus.where(int(np.flatnonzero(numbers == i)[0]))

    if ALLOWED not in corpus.columns:
        return labels.encode(distinct, where).astype(np.int32)[numbers], None
    masks = np.array([allowed_labels(one, labels, lambda i=i: where(i)) for i, one in enumerate(distinct)])  # type: ignore[misc]
    several = masks.sum(1) > 1
    ids = np.where(several, len(labels) - 1 + several.cumsum(), masks.argmax(1))
    return ids.astype(np.int32)[numbers], masks[several] if several.any() else None


def _load_lists(folder: ArrayFolder, kind: str) -> StoredIdLists:
    weights = f"{kind}.weights"
    return StoredIdLists(
        folder.array(f"{kind}.ids"),
        folder.array(f"{kind}.ends"),
        folder.array(weights) if weights in folder else None,
    )


# -- mini-batches ------------------------------------------------------------------------------------------


class EncodedCorpus(Dataset[Batch]):
    """A corpus with extracted features: a data set that maps a list of row numbers to their Batch.

    The gold labels of a Batch are None if the corpus has no column `label`.

    Args:
        corpus: The corpus.
        features: A fitted extractor.
        labels: The label set.
        inputs: Inputs of encoders.
        encode: Returns the arrays of the corpus, in memory or in the files of a cache.
        piece_counts: Number of sub-word tokens of each token, (N,) int64; None: 1 each.

    Example:
        >>> from structperc import Corpus, FeatureExtractor, LabelSet
        >>> sentences = [{"word": ["Anna", "left"], "label": ["B-PER", "O"]}, {"word": ["Yes"], "label": ["O"]}]
        >>> corpus, features = Corpus.from_sentences(sentences), FeatureExtractor(["w[0]"], cutoff=1)
        >>> features.fit(corpus)
        >>> batch = EncodedCorpus(corpus, features, LabelSet.from_corpus(["B-PER", "O"], "IOB2"))[[0, 1]]
        >>> batch.lengths.tolist(), batch.gold.tolist()
        ([2, 1], [[1, 0], [0, 0]])
        >>> batch.nodes.ids.tolist()  # one feature for each token
        [0, 1, 2]
    """

    def __init__(
        self,
        corpus: Corpus,
        features: FeatureExtractor,
        labels: LabelSet,
        inputs: Sequence[Ragged] = (),
        encode: Encode = encode_arrays,
        piece_counts: torch.Tensor | None = None,
    ) -> None:
        self.corpus, self.inputs, self.lengths = corpus, inputs, corpus.lengths
        if piece_counts is not None:
            before = boundaries(piece_counts).numpy()
            self.lengths = np.diff(before[corpus.starts])
        self.arrays = encode(corpus, features, labels)

    def __len__(self) -> int:
        return len(self.corpus)

    def __getitem__(self, rows: Sequence[int]) -> Batch:
        flat = self.flat(rows)
        lengths = flat.lengths.numpy()
        B, T = len(lengths), int(lengths.max(initial=0))
        places = np.arange(len(flat.gold)) + np.repeat(np.arange(B) * T - (lengths.cumsum() - lengths), lengths)
        numbers, bounds = np.zeros((6, B * T), np.int64), np.zeros((2, B * T), bool)
        for row, values in zip(numbers, (flat.gold, flat.sentences, *flat.words), strict=True):
            row[places] = values.numpy()
        for row, values in zip(bounds, (flat.first, flat.last), strict=True):
            row[places] = values.numpy()
        gold, sentences, *words = torch.from_numpy(numbers).view(6, B, T).unbind()
        first, last = torch.from_numpy(bounds).view(2, B, T).unbind()
        allowed = flat.allowed
        if allowed is not None:
            table = torch.ones(B * T, allowed.shape[1], dtype=torch.bool)
            table[torch.from_numpy(places)] = allowed
            allowed = table.view(B, T, -1)
        weights = flat.weights
        if weights is not None:
            weights = torch.zeros(B * T).index_copy(0, torch.from_numpy(places), weights).view(B, T)
        padded = flat._replace(
            gold=gold,
            sentences=sentences,
            first=first,
            last=last,
            words=Words(*words),
            allowed=allowed,
            weights=weights,
        )
        return Batch(*padded) if self.arrays.labelled else Batch(*padded)._replace(gold=None)

    __getitems__ = __getitem__  # of the mini-batches of a loader

    def flat(self, rows: Sequence[int]) -> FlatBatch:
        """Return sequences without padding; labels are 0 if there are no gold labels."""
        order = np.asarray(rows, dtype=np.int64)
        starts, ends = self.corpus.starts[order], self.corpus.starts[order + 1]
        nodes, edges = self.arrays.nodes.take(starts, ends), self.arrays.edges
        if edges is not None:
            edges = nodes if edges is self.arrays.nodes else edges.take(starts, ends)
        numbers, sentences, words = np.ascontiguousarray(self.arrays.tokens.take(starts, ends).T, np.int64)
        gold, allowed = expand_sets(numbers, self.arrays.label_sets)
        weights = self.arrays.weights
        first = np.ones(len(gold) + 1, bool)  # True where a sentence begins, and at the end of the batch
        first[1:-1] = sentences[1:] != sentences[:-1]
        first[(ends - starts).cumsum()] = True
        return FlatBatch(
            nodes,
            edges,
            torch.from_numpy(ends - starts),
            torch.from_numpy(gold),
            torch.from_numpy(sentences),
            torch.from_numpy(first[:-1]),
            torch.from_numpy(first[1:]),
            torch.from_numpy(order),
            Words(*torch.from_numpy(self.arrays.word_ids[:, words])),
            tuple(one.take(starts, ends) for one in self.inputs),
            allowed,
            None if weights is None else torch.from_numpy(weights.take(starts, ends)),
        )


def expand_sets(numbers: np.ndarray, label_sets: np.ndarray | None) -> tuple[np.ndarray, torch.Tensor | None]:
    """Return an allowed label of each token, and the masks of allowed labels unless all labels are known.

    Args:
        numbers: (n,) numbers of labels, L + i for any label of set i.
        label_sets: (S, L) bool, or None without sets.

    Returns:
        Labels (n,) and masks (n, L) bool, or None.
    """
    L = 0 if label_sets is None else label_sets.shape[1]
    if label_sets is None or not (numbers >= L).any():
        return numbers, None
    allowed = np.concatenate([np.eye(L, dtype=bool), label_sets])[numbers]
    return allowed.argmax(1), torch.from_numpy(allowed)


class FlatSequences(Dataset[FlatBatch]):
    """The sequences of an encoded corpus whose weight is not 0; maps a list of their numbers to their FlatBatch.

    Raises InputError if all weights are 0.
    """

    def __init__(self, rows: EncodedCorpus) -> None:
        weights = sequence_weights(rows.corpus)
        kept = np.arange(len(rows)) if weights is None else np.flatnonzero(weights)
        if len(rows) and not len(kept):
            raise InputError(f"{rows.corpus.name}: all weights are 0; give sequences to learn a larger weight")
        self.rows, self.kept, self.lengths = rows, kept, rows.corpus.lengths[kept]

    def __len__(self) -> int:
        return len(self.kept)

    def __getitem__(self, rows: Sequence[int]) -> FlatBatch:
        return self.rows.flat(self.kept[rows].tolist())


class PrecomputedBatches(Dataset[Batch]):
    """The same mini-batches in every epoch, with transposed features, for full-batch training.

    Transposed features make dense gradients of feature weights several times faster, and take about twice the memory of
    the features of the corpus.

    Args:
        rows: The encoded corpus.
        order: The row numbers of each batch.
    """

    def __init__(self, rows: EncodedCorpus, order: Iterable[Sequence[int]]) -> None:
        self.batches: list[Batch] = []
        for batch in map(rows.__getitem__, order):
            nodes, edges = batch.nodes.transpose(), batch.edges
            if edges is not None:
                edges = nodes if edges is batch.nodes else edges.transpose()
            self.batches.append(batch._replace(nodes=nodes, edges=edges))

    def __len__(self) -> int:
        return len(self.batches)

    def __getitem__(self, index: int) -> Batch:
        return self.batches[index]


def split_batch(batch: Batch, k: int) -> Iterator[Batch]:
    """Yield parts of a batch that are small enough for k candidates of each sequence, at least one sequence each."""
    B, T = batch.sentences.shape
    size = max(1, MAX_PLACES // max(1, k * T))
    if size >= B:
        yield batch
        return
    ends = boundaries(batch.lengths).tolist()  # in tokens
    for start in range(0, B, size):
        rows = slice(start, min(start + size, B))
        nodes, edges, inputs = _slice_tokens(batch, ends[rows.start], ends[rows.stop])
        places = rows, slice(0, int(batch.lengths[rows].max()))
        tensors = {name: x for name, x in batch._asdict().items() if isinstance(x, torch.Tensor)}
        yield batch._replace(
            **{name: x[places if x.dim() > 1 else rows] for name, x in tensors.items()},
            nodes=nodes,
            edges=edges,
            words=Words(*(numbers[places] for numbers in batch.words)),
            inputs=inputs,
            restriction=None if batch.restriction is None else batch.restriction.take(places),
        )


def split_flat(batch: FlatBatch, n: int) -> Iterator[FlatBatch]:
    """Yield n <= B parts of a batch whose numbers of sequences differ by at most one."""
    if n == 1:
        yield batch
        return
    B, ends = len(batch.lengths), boundaries(batch.lengths).tolist()
    for start, stop in pairwise(i * B // n for i in range(n + 1)):
        tokens = slice(ends[start], ends[stop])
        nodes, edges, inputs = _slice_tokens(batch, tokens.start, tokens.stop)
        tensors = {name: x for name, x in batch._asdict().items() if isinstance(x, torch.Tensor)}
        yield batch._replace(
            **{name: x[slice(start, stop) if name in PER_SEQUENCE else tokens] for name, x in tensors.items()},
            nodes=nodes,
            edges=edges,
            words=Words(*(values[tokens] for values in batch.words)),
            inputs=inputs,
        )


def single_sequence(batch: FlatBatch) -> Batch:
    """Return a FlatBatch of one sequence as a Batch without padding; nothing is copied."""
    tokens = {name: getattr(batch, name)[None] for name in ("gold", "sentences", "first", "last")}
    tokens |= {name: None if (x := getattr(batch, name)) is None else x[None] for name in ("allowed", "weights")}
    return Batch(*batch)._replace(**tokens, words=Words(*(values[None] for values in batch.words)))


def _slice_tokens(batch: Batch | FlatBatch, start: int, stop: int) -> tuple[Ragged, Ragged | None, tuple[Ragged, ...]]:
    """Return features and inputs of the tokens start, ..., stop - 1."""
    nodes, edges = batch.nodes.slice(start, stop), batch.edges
    if edges is not None:
        edges = nodes if edges is batch.nodes else edges.slice(start, stop)
    return nodes, edges, tuple(one.slice(start, stop) for one in batch.inputs)
