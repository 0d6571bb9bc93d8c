"""A corpus as arrays: features extracted once, mini-batches cut from them.

Parts of a batch, so that the candidates of many long sequences fit into memory.
"""

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
from structperc.structures import Batch, Words

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
        from structperc.datamodules.padding import pad_tokens  # which needs a compiler

        order = np.asarray(rows, dtype=np.int64)
        starts, ends = self.corpus.starts[order], self.corpus.starts[order + 1]
        arrays = self.arrays
        nodes, edges = arrays.nodes.take(starts, ends), None
        if arrays.edges is not None:
            edges = nodes if arrays.edges is arrays.nodes else arrays.edges.take(starts, ends)
        tokens, lengths = arrays.tokens.take(starts, ends), ends - starts
        numbers, bounds = pad_tokens(tokens, arrays.looks, lengths)
        gold, sentences, *words = torch.from_numpy(numbers).unbind()
        first, last = torch.from_numpy(bounds).unbind()
        return Batch(
            nodes,
            edges,
            torch.from_numpy(lengths),
            gold if arrays.labelled else None,
            sentences,
            first,
            last,
            torch.from_numpy(order),
            Words(*words),
            tuple(one.take(starts, ends) for one in self.inputs),
        )


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


PLACES = 2**22  # sequences x candidates x tokens at a time: 32 MiB for their labels, some ten times that in all


def parts(batch: Batch, k: int) -> Iterator[Batch]:
    """Yield the sequences of a batch in their order, as many at a time as k candidates of each allow, at least one."""
    B, T = batch.sentences.shape
    size = max(1, PLACES // max(1, k * T))
    if size >= B:
        yield batch
        return
    ends = boundaries(batch.lengths).tolist()  # in tokens
    for start in range(0, B, size):
        stop = min(start + size, B)
        yield _cut(batch, slice(start, stop), (ends[start], ends[stop]))


def split_sequences(batch: Batch) -> Iterator[Batch]:
    """Yield the sequences of a batch in their order, each as a batch of its own."""
    ends = boundaries(batch.lengths).tolist()
    for row, tokens in enumerate(pairwise(ends)):
        yield _cut(batch, slice(row, row + 1), tokens)


def split_evenly(batch: Batch, n: int) -> Iterator[Batch]:
    """Yield the sequences of a batch in their order in n parts that differ by one at most, n <= B."""
    B, ends = len(batch.lengths), boundaries(batch.lengths).tolist()
    for start, stop in pairwise(i * B // n for i in range(n + 1)):
        yield batch if n == 1 else _cut(batch, slice(start, stop), (ends[start], ends[stop]))


def _cut(batch: Batch, rows: slice, tokens: tuple[int, int]) -> Batch:
    """Some rows of a batch, whose tokens are those from the first to the second of `tokens`."""
    places = rows, slice(0, int(batch.lengths[rows].max()))
    return Batch(
        batch.nodes.slice(*tokens),
        None if batch.edges is None else batch.edges.slice(*tokens),
        batch.lengths[rows],
        None if batch.gold is None else batch.gold[places],
        batch.sentences[places],
        batch.first[places],
        batch.last[places],
        batch.rows[rows],
        Words(*(numbers[places] for numbers in batch.words)),
        tuple(one.slice(*tokens) for one in batch.inputs),
    )
