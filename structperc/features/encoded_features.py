"""Feature ids of a corpus as tensors, from which mini-batches are cut."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch

from structperc.features.string_arrays import FeatureIds, IdLists
from structperc.ragged import Ragged


class EncodedFeatures(NamedTuple):
    """Features of S sequences, a list for each token; `edges` is `nodes` if edges have the features of the nodes.

    Example:
        >>> from structperc import Corpus, FeatureExtractor
        >>> corpus = Corpus.from_sentences([{"word": ["Anna", "left"]}, {"word": ["Anna"]}])
        >>> encoded = FeatureExtractor(["w[0]"], cutoff=1).fit_encode(corpus)
        >>> encoded.nodes.ids.tolist(), encoded.starts.tolist()  # one feature for each token
        ([0, 1, 0], [0, 2, 3])
        >>> nodes, edges = encoded.cut([1])  # the second sequence
        >>> nodes.ids.tolist(), edges
        ([0], None)
    """

    nodes: Ragged
    edges: Ragged | None  # None without edge templates
    starts: np.ndarray  # (S + 1,) int64, sequence s is the tokens starts[s]:starts[s + 1]

    @classmethod
    def from_ids(cls, ids: FeatureIds, starts: np.ndarray) -> "EncodedFeatures":
        """Return ids as tensors that share the memory of the arrays."""
        nodes = _ragged(ids.nodes)
        if ids.edges is None:
            return cls(nodes, None, starts)
        return cls(nodes, nodes if ids.edges is ids.nodes else _ragged(ids.edges), starts)

    def cut(self, rows: Sequence[int] | np.ndarray) -> tuple[Ragged, Ragged | None]:
        """Return node and edge features of the sequences `rows` in this order, as in `Batch`."""
        order = np.asarray(rows, dtype=np.int64)
        span = self.starts[order], self.starts[order + 1]
        nodes = self.nodes.take(*span)
        if self.edges is None:
            return nodes, None
        return nodes, nodes if self.edges is self.nodes else self.edges.take(*span)


def _ragged(lists: IdLists) -> Ragged:
    weights = None if lists.weights is None else torch.from_numpy(lists.weights)
    return Ragged(torch.from_numpy(lists.ids), torch.from_numpy(lists.ends), weights=weights)
