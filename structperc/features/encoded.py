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

    def cut(self, starts: np.ndarray, ends: np.ndarray) -> SparseFeatures:
        """Return the features of the tokens starts[i], ..., ends[i] - 1, for one i after the other."""
        first, last = self.offsets[starts], self.offsets[ends]
        ids = [self.ids[a:b] for a, b in zip(first.tolist(), last.tolist(), strict=True)]
        stops = [self.offsets[a:b] for a, b in zip((starts + 1).tolist(), (ends + 1).tolist(), strict=True)]
        offsets = np.concatenate([np.zeros(1, np.int64), *stops])
        before = (last - first).cumsum() - last  # what the cut moves the offsets of a span by, less their end
        offsets[1:] += before.repeat(ends - starts)
        return SparseFeatures(
            torch.from_numpy(np.concatenate([np.empty(0, np.int32), *ids])), torch.from_numpy(offsets.astype(np.int32))
        )


class EncodedFeatures(NamedTuple):
    """Features of S sequences; `edges` is the same object as `nodes` where they are the same features."""

    nodes: Ragged
    edges: Ragged | None  # None when no template asks for edges
    starts: np.ndarray  # (S + 1,) int64, sequence s is the tokens starts[s]:starts[s + 1]

    def cut(self, rows: Sequence[int] | np.ndarray) -> tuple[SparseFeatures, SparseFeatures | None]:
        """Return node and edge features of some sequences in the order of `rows`, as `Batch` holds them."""
        order = np.asarray(rows, dtype=np.int64)
        span = self.starts[order], self.starts[order + 1]
        nodes = self.nodes.cut(*span)
        if self.edges is None:
            return nodes, None
        return nodes, nodes if self.edges is self.nodes else self.edges.cut(*span)
