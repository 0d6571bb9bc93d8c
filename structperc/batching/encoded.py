"""A corpus as arrays: features extracted once, mini-batches cut from them."""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch.utils.data import Dataset

from structperc.batching.arrays import Arrays, held_arrays
from structperc.batching.processes import WHOLE, Share
from structperc.batching.sampler import LengthBatches
from structperc.data.corpus import Corpus
from structperc.data.labels import LabelSet
from structperc.features import FeatureExtractor
from structperc.ragged import Ragged
from structperc.structures import Batch, Words

Encode = Callable[[Corpus, FeatureExtractor, LabelSet], Arrays]


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
        encode: Encode = held_arrays,
    ) -> None:
        self.corpus, self.inputs = corpus, inputs
        self.arrays = encode(corpus, features, labels)

    def __len__(self) -> int:
        return len(self.corpus)

    def __getitem__(self, rows: Sequence[int]) -> Batch:
        from structperc.batching.padding import side_by_side  # which needs a compiler

        order = np.asarray(rows, dtype=np.int64)
        starts, ends = self.corpus.starts[order], self.corpus.starts[order + 1]
        arrays = self.arrays
        nodes, edges = arrays.nodes.take(starts, ends), None
        if arrays.edges is not None:
            edges = nodes if arrays.edges is arrays.nodes else arrays.edges.take(starts, ends)
        tokens, lengths = arrays.tokens.take(starts, ends), ends - starts
        numbers, bounds = side_by_side(tokens, arrays.looks, lengths)
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


class FixedBatches(Dataset[Batch]):
    """The same mini-batches in every epoch, cut once and kept, with their features transposed.

    Full-batch training sees them a hundred times. Transposed features make dense gradients of feature weights several
    times faster, and take about twice the memory of the corpus' features.
    """

    def __init__(self, rows: EncodedCorpus, batch_size: int, share: Share = WHOLE) -> None:
        order = LengthBatches(rows.corpus.lengths, batch_size, shuffle=False, share=share)
        self.batches = [_transposed(rows[batch]) for batch in order]

    def __len__(self) -> int:
        return len(self.batches)

    def __getitem__(self, index: int) -> Batch:
        return self.batches[index]


def _transposed(batch: Batch) -> Batch:
    nodes = batch.nodes.transpose()
    same = batch.edges is batch.nodes
    return batch._replace(nodes=nodes, edges=nodes if same else batch.edges and batch.edges.transpose())
