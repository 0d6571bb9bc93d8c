"""Feature ids of a whole corpus, and the cut of a mini-batch out of them."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch

from structperc.structures import SparseFeatures


class Ragged(NamedTuple):
    """Feature ids of N tokens: token i has ids[offsets[i]:offsets[i+1]], in no particular order."""

    ids: np.ndarray  # (M,) int32
    offsets: np.ndarray  # (N + 1,) int64

    @classmethod
    def join(cls, pieces: Sequence[tuple[np.ndarray, np.ndarray]]) -> "Ragged":
        """Join pieces of (ids, number of ids of each token), one after the other."""
        ids = np.concatenate([np.empty(0, np.int32), *(ids for ids, _ in pieces)])
        counts = np.concatenate([np.zeros(1, np.int64), *(counts for _, counts in pieces)])
        return cls(ids, np.cumsum(counts))

    def cut(self, spans: Sequence[tuple[int, int]]) -> SparseFeatures:
        """Return the features of the tokens a, ..., b - 1 of each span (a, b), one span after the other."""
        ids = [self.ids[self.offsets[a] : self.offsets[b]] for a, b in spans]
        counts = [self.offsets[a + 1 : b + 1] - self.offsets[a:b] for a, b in spans]
        offsets = np.cumsum(np.concatenate([np.zeros(1, np.int64), *counts]), dtype=np.int32)
        return SparseFeatures(
            torch.from_numpy(np.concatenate([np.empty(0, np.int32), *ids])), torch.from_numpy(offsets)
        )


class EncodedFeatures(NamedTuple):
    """Features of S sequences; `edges` is the same object as `nodes` where they are the same features."""

    nodes: Ragged
    edges: Ragged | None  # None when no template asks for edges
    starts: np.ndarray  # (S + 1,) int64, sequence s is the tokens starts[s]:starts[s + 1]

    def cut(self, rows: Sequence[int]) -> tuple[SparseFeatures, SparseFeatures | None]:
        """Return node and edge features of some sequences in the order of `rows`, as `Batch` holds them."""
        spans = [(int(self.starts[row]), int(self.starts[row + 1])) for row in rows]
        nodes = self.nodes.cut(spans)
        if self.edges is None:
            return nodes, None
        return nodes, nodes if self.edges is self.nodes else self.edges.cut(spans)
