"""Feature ids of a whole corpus as arrays."""

from typing import NamedTuple

import numpy as np


class IdLists(NamedTuple):
    """The ids of features at each of N tokens: those of token t are ids[ends[t]:ends[t + 1]]."""

    ids: np.ndarray  # (M,) int32
    ends: np.ndarray  # (N + 1,) int64
    weights: np.ndarray | None = None  # (M,) float32, how much each counts where it stands; None: 1

    @classmethod
    def of_counts(cls, ids: np.ndarray, counts: np.ndarray, weights: np.ndarray | None = None) -> "IdLists":
        """Cut ids (M,) into lists of so many ids, counts (N,)."""
        return cls(ids, np.concatenate([np.zeros(1, np.int64), counts.cumsum()]), weights)

    def select(self, lists: np.ndarray) -> "IdLists":
        """Return some lists (m,), which may repeat, in this order."""
        counts = np.diff(self.ends)[lists]
        places = np.arange(counts.sum()) + np.repeat(self.ends[lists] - counts.cumsum() + counts, counts)
        weights = None if self.weights is None else self.weights[places]
        return IdLists.of_counts(self.ids[places], counts, weights)

    def beside(self, other: "IdLists") -> "IdLists":
        """Return as many lists, each of them that of self and then the one of the other."""
        counts = np.diff(self.ends), np.diff(other.ends)
        row_ids = [np.repeat(np.arange(len(one)), one) for one in counts]
        order = np.concatenate(row_ids).argsort(kind="stable")
        weights = None
        if self.weights is not None or other.weights is not None:
            weights = np.concatenate([self._counting(), other._counting()])[order]
        return IdLists.of_counts(np.concatenate([self.ids, other.ids])[order], counts[0] + counts[1], weights)

    def _counting(self) -> np.ndarray:
        return np.ones(len(self.ids), np.float32) if self.weights is None else self.weights


class FeatureIds(NamedTuple):
    """Node and edge features of a corpus; `edges` is the same object as `nodes` where they are the same."""

    nodes: IdLists
    edges: IdLists | None  # None when no template asks for edges
