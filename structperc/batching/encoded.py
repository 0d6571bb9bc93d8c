"""A corpus as arrays: features extracted once, mini-batches cut from them."""

from collections.abc import Sequence

import numpy as np
import torch
from torch.utils.data import Dataset

from structperc.batching.processes import WHOLE, Share
from structperc.batching.sampler import LengthBatches
from structperc.data.corpus import Corpus
from structperc.data.labels import LabelSet
from structperc.data.words import word_numbers
from structperc.features import FeatureExtractor
from structperc.ragged import Ragged, spread
from structperc.structures import Batch, Words


class EncodedCorpus(Dataset[Batch]):
    """A corpus whose features were extracted once, as a data set that maps a list of row numbers to their Batch.

    Gold labels are None when the corpus has no `label` column. `inputs` is what encoders read of the corpus.
    """

    def __init__(
        self, corpus: Corpus, features: FeatureExtractor, labels: LabelSet, inputs: Sequence[Ragged] = ()
    ) -> None:
        self.corpus, self.inputs = corpus, inputs
        self.features = features.encode(corpus)
        gold = corpus.columns.get("label")
        self.labelled = gold is not None
        ids = np.zeros(corpus.tokens, np.int64) if gold is None else labels.encode(gold, corpus.where)
        words = corpus.numbered("word")
        looks = word_numbers(words.distinct).take(words.numbers, 1)
        self.tokens = np.stack([ids, *_sentences(corpus), *looks])  # (8, N), so that one call pads them all

    def __len__(self) -> int:
        return len(self.corpus)

    def __getitem__(self, rows: Sequence[int]) -> Batch:
        from structperc.batching.padding import side_by_side  # which needs a compiler

        order = np.asarray(rows, dtype=np.int64)
        nodes, edges = self.features.cut(order)
        starts, ends = self.corpus.starts[order], self.corpus.starts[order + 1]
        padded = torch.from_numpy(side_by_side(self.tokens, starts, ends))
        gold, sentences, first, last, *words = padded.unbind()
        return Batch(
            nodes,
            edges,
            torch.from_numpy(ends - starts),
            gold if self.labelled else None,
            sentences,
            first.bool(),
            last.bool(),
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


def _sentences(corpus: Corpus) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(N,) each: number of a token's sentence within its sequence; 1 where a sentence begins; 1 where one ends."""
    lengths = np.diff(corpus.sentences)
    sentence, place = (x.numpy() for x in spread(torch.from_numpy(lengths)))
    sequence, _ = spread(torch.from_numpy(corpus.lengths))
    number = sentence - sentence[corpus.starts[sequence]]
    return number, (place == 0).astype(np.int64), (place == lengths[sentence] - 1).astype(np.int64)
