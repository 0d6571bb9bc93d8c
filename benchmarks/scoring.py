"""Scores of surface features: tokens a second, and the share of the memory's bandwidth that weight rows take.

All training documents are scored once with node and edge features of Kazama & Torisawa 2007. The bandwidth is that of
adding up a large table, read in order; rows of weights are read at random places.
"""

import time

import torch

from benchmarks.documents import documents
from benchmarks.timing import interleaved
from structperc.datamodules import EncodedCorpus
from structperc.features import FeatureExtractor
from structperc.scorers import SparseLinear
from structperc.structures import Batch

BATCH = 8  # documents


def run(smoke: bool) -> list[dict]:
    """Return one row, tokens a second."""
    data, name = documents(smoke)
    corpus, labels = data.corpus("train"), data.label_set()
    features = FeatureExtractor(["kazama2007"], ["kazama2007"], progress=False)
    features.fit(corpus)
    scorer = SparseLinear(False)
    scorer.allocate(features.n_node_features, features.n_edge_features, len(labels))
    encoded = EncodedCorpus(corpus, features, labels)
    seconds, read = 0.0, 0
    for rows in torch.arange(len(corpus)).split(BATCH):
        batch = encoded[rows]
        seconds += _seconds(scorer, batch)
        read += 4 * len(labels) * (len(batch.nodes.ids) + len(labels) * len(batch.edges.ids) if batch.edges else 0)
    share = read / seconds / _bandwidth(2**20 if smoke else 2**27)
    weights = sum(p.numel() for p in scorer.parameters())
    return [
        {
            "what": f"scores of node and edge features, {100 * share:.0f} % of the memory's bandwidth",
            "size": f"{corpus.tokens} tokens of {name} in documents, {weights / 1e6:.1f} M weights",
            "ours": corpus.tokens / seconds,
            "peer": None,
            "ratio": None,
            "unit": "tokens/s",
            "target": None,
        }
    ]


@torch.no_grad()
def _seconds(scorer: SparseLinear, batch: Batch) -> float:
    start = time.perf_counter()
    scorer(batch)
    return time.perf_counter() - start


def _bandwidth(numbers: int) -> float:
    """Bytes a second of adding up a table of so many float32 numbers."""
    table = torch.ones(numbers)
    (milliseconds,) = interleaved(5, table.sum)
    return 4 * numbers / milliseconds * 1000
