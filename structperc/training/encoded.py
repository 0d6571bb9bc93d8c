"""A corpus as arrays: features extracted once, mini-batches cut from them."""

from collections.abc import Sequence

import numpy as np
import torch
from torch.utils.data import Dataset

from structperc.data.corpus import Corpus
from structperc.data.labels import LabelSet
from structperc.features import FeatureExtractor
from structperc.structures import Batch


class EncodedCorpus(Dataset[Batch]):
    """Maps a list of row numbers to their Batch. Gold labels are None when the corpus has no `label` column."""

    def __init__(self, corpus: Corpus, features: FeatureExtractor, labels: LabelSet) -> None:
        self.corpus = corpus
        self.features = features.encode(corpus)
        gold = corpus.columns.get("label")
        self.gold = None if gold is None else labels.encode(gold, corpus.where)
        sentence = np.repeat(np.arange(len(corpus.sentences) - 1), np.diff(corpus.sentences))
        first = np.repeat(corpus.starts[:-1], corpus.lengths)  # first token of each token's sequence
        self.sentences = sentence - sentence[first]

    def __len__(self) -> int:
        return len(self.corpus)

    def __getitem__(self, rows: Sequence[int]) -> Batch:
        order = np.asarray(rows, dtype=np.int64)
        nodes, edges = self.features.cut(order.tolist())
        lengths = self.corpus.lengths[order]
        steps = np.arange(lengths.max(initial=0))
        live = steps < lengths[:, None]
        tokens = np.where(live, self.corpus.starts[order][:, None] + steps, 0)
        return Batch(
            nodes,
            edges,
            torch.from_numpy(lengths),
            None if self.gold is None else torch.from_numpy(np.where(live, self.gold[tokens], 0)),
            torch.from_numpy(np.where(live, self.sentences[tokens], 0)),
            torch.from_numpy(order),
        )
