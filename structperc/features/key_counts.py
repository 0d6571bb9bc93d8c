"""How often keys occur, counted piece by piece: exact, in memory that grows with the number of different keys alone."""

import numpy as np


class KeyCounts:
    """Counts keys by sorting. What pieces have counted is merged when it is as much as all before."""

    def __init__(self) -> None:
        self._keys, self._counts = np.empty(0, np.int64), np.empty(0, np.int64)
        self._more: list[tuple[np.ndarray, np.ndarray]] = []

    def add(self, keys: np.ndarray) -> None:
        """Count keys (n,) int64."""
        self._more.append(np.unique(keys, return_counts=True))
        if sum(len(keys) for keys, _ in self._more) > len(self._keys):
            self._merge()

    def total(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the different keys, sorted (m,) int64, and how often each was met (m,) int64."""
        self._merge()
        return self._keys, self._counts

    def _merge(self) -> None:
        parts, self._more = [(self._keys, self._counts), *self._more], []
        keys, counts = (np.concatenate(one) for one in zip(*parts, strict=True))
        order = keys.argsort(kind="stable")
        keys, counts = keys[order], counts[order]
        first = np.flatnonzero(np.diff(keys, prepend=keys[:1] - 1))
        self._keys, self._counts = keys[first], np.add.reduceat(counts, first) if len(first) else counts
