"""Mini-batches: cut from the arrays of a corpus, and split into smaller ones."""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

import numpy as np
import torch
from torch.utils.data import Dataset

from structperc.data.corpus import Corpus
from structperc.data.labels import LabelSet
from structperc.datamodules.arrays import CorpusArrays, encode_arrays
from structperc.datamodules.distributed import WHOLE, Share
from structperc.datamodules.sampler import LengthBatchSampler
from structperc.features import FeatureExtractor
from structperc.ragged import Ragged, boundaries
from structperc.structures import Batch, FlatBatch, Words

Encode = Callable[[Corpus, FeatureExtractor, LabelSet], CorpusArrays]


class EncodedCorpus(Dataset[Batch]):
    """A corpus whose features were extracted once, as a data set that maps a list of row numbers to their Batch.

    Gold labels are None when the corpus has no `label` column.

    Args:
        corpus: the corpus.
        features: whose ids are known, see `FeatureExtractor.fit`.
        labels: which numbers labels have.
        inputs: what encoders read of the corpus.
        encode: makes the arrays, or finds them where they are kept: in memory, or in the files of a cache.
    """

    def __init__(
        self,
        corpus: Corpus,
        features: FeatureExtractor,
        labels: LabelSet,
        inputs: Sequence[Ragged] = (),
        encode: Encode = encode_arrays,
    ) -> None:
        self.corpus, self.inputs = corpus, inputs
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
        own = flat._replace(gold=gold, sentences=sentences, first=first, last=last, words=Words(*words))
        return Batch(*own) if self.arrays.labelled else Batch(*own)._replace(gold=None)

    def flat(self, rows: Sequence[int]) -> FlatBatch:
        """Return sequences one after the other, without padding; labels are 0 where there is no gold."""
        order = np.asarray(rows, dtype=np.int64)
        starts, ends = self.corpus.starts[order], self.corpus.starts[order + 1]
        nodes, edges = self.arrays.nodes.take(starts, ends), self.arrays.edges
        if edges is not None:
            edges = nodes if edges is self.arrays.nodes else edges.take(starts, ends)
        gold, sentences, words = np.ascontiguousarray(self.arrays.tokens.take(starts, ends).T, np.int64)
        first = np.ones(len(gold) + 1, bool)  # whether a sentence begins here; the last one is the end of the batch
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
            Words(*torch.from_numpy(self.arrays.looks[:, words])),
            tuple(one.take(starts, ends) for one in self.inputs),
        )


class FlatSequences(Dataset[FlatBatch]):
    """Maps a list of row numbers of an encoded corpus to their FlatBatch."""

    def __init__(self, rows: EncodedCorpus) -> None:
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, rows: Sequence[int]) -> FlatBatch:
        return self.rows.flat(rows)


class PrecomputedBatches(Dataset[Batch]):
    """The same mini-batches in every epoch, cut once and kept, with their features transposed.

    Full-batch training sees them a hundred times. Transposed features make dense gradients of feature weights several
    times faster, and take about twice the memory of the corpus' features.
    """

    def __init__(self, rows: EncodedCorpus, batch_size: int, share: Share = WHOLE) -> None:
        order = LengthBatchSampler(rows.corpus.lengths, batch_size, shuffle=False, share=share)
        self.batches = [_transposed(rows[batch]) for batch in order]

    def __len__(self) -> int:
        return len(self.batches)

    def __getitem__(self, index: int) -> Batch:
        return self.batches[index]


def _transposed(batch: Batch) -> Batch:
    nodes = batch.nodes.transpose()
    same = batch.edges is batch.nodes
    return batch._replace(nodes=nodes, edges=nodes if same else batch.edges and batch.edges.transpose())


MAX_PLACES = 2**22  # sequences x candidates x tokens: 32 MiB for the labels, about ten times that in all


def split_batch(batch: Batch, k: int) -> Iterator[Batch]:
    """Yield the sequences of a batch in their order, as many at a time as k candidates of each allow, at least one."""
    B, T = batch.sentences.shape
    size = max(1, MAX_PLACES // max(1, k * T))
    if size >= B:
        yield batch
        return
    ends = boundaries(batch.lengths).tolist()  # in tokens
    for start in range(0, B, size):
        rows = slice(start, min(start + size, B))
        nodes, edges, inputs = _sliced(batch, ends[rows.start], ends[rows.stop])
        places = rows, slice(0, int(batch.lengths[rows].max()))
        yield Batch(
            nodes,
            edges,
            batch.lengths[rows],
            None if batch.gold is None else batch.gold[places],
            batch.sentences[places],
            batch.first[places],
            batch.last[places],
            batch.rows[rows],
            Words(*(numbers[places] for numbers in batch.words)),
            inputs,
        )


def split_flat(batch: FlatBatch, n: int) -> Iterator[FlatBatch]:
    """Yield the sequences of a batch in their order in n parts that differ by at most one sequence, n <= B."""
    if n == 1:
        yield batch
        return
    B, ends = len(batch.lengths), boundaries(batch.lengths).tolist()
    for start, stop in pairwise(i * B // n for i in range(n + 1)):
        tokens = slice(ends[start], ends[stop])
        nodes, edges, inputs = _sliced(batch, tokens.start, tokens.stop)
        yield FlatBatch(
            nodes,
            edges,
            batch.lengths[start:stop],
            batch.gold[tokens],
            batch.sentences[tokens],
            batch.first[tokens],
            batch.last[tokens],
            batch.rows[start:stop],
            Words(*(values[tokens] for values in batch.words)),
            inputs,
        )


def single_sequence(batch: FlatBatch) -> Batch:
    """Return a FlatBatch of one sequence as a Batch, which has no padding; nothing is copied."""
    tokens = {name: getattr(batch, name)[None] for name in ("gold", "sentences", "first", "last")}
    return Batch(*batch)._replace(**tokens, words=Words(*(values[None] for values in batch.words)))


def _sliced(batch: Batch | FlatBatch, start: int, stop: int) -> tuple[Ragged, Ragged | None, tuple[Ragged, ...]]:
    """Features and inputs of the tokens start, ..., stop - 1."""
    nodes, edges = batch.nodes.slice(start, stop), batch.edges
    if edges is not None:
        edges = nodes if edges is batch.nodes else edges.slice(start, stop)
    return nodes, edges, tuple(one.slice(start, stop) for one in batch.inputs)
