"""Weights by name, as a mapping that is computed when it is used."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property

import numpy as np


class NamedWeights(Mapping[tuple[str, str], float]):
    """The weights other than 0 of a table, {(name of the row, name of the column): weight}.

    Args:
        weights: (R, C).
        rows: Returns the names of the R rows; called when they are first needed.
        columns: Names of the C columns.

    Example:
        >>> weights = NamedWeights(np.array([[0.5, 0.0]]), lambda: ["w:the"], ["DET", "NOUN"])
        >>> weights["w:the", "DET"], ("w:the", "NOUN") in weights, dict(weights)
        (0.5, False, {('w:the', 'DET'): 0.5})
    """

    def __init__(self, weights: np.ndarray, rows: Callable[[], Sequence[str]], columns: Sequence[str]) -> None:
        self._weights, self._rows = weights, rows
        self._columns = {name: i for i, name in enumerate(columns)}

    def __getitem__(self, key: tuple[str, str]) -> float:
        row, column = key
        weight = float(self._weights[self._row_ids[row], self._columns[column]])
        if not weight:
            raise KeyError(key)
        return weight

    def __iter__(self) -> Iterator[tuple[str, str]]:
        rows, columns = list(self._row_ids), list(self._columns)
        for i, j in np.argwhere(self._weights).tolist():
            yield rows[i], columns[j]

    def __len__(self) -> int:
        return int(np.count_nonzero(self._weights))

    def __repr__(self) -> str:
        return repr(dict(self))

    @cached_property
    def _row_ids(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self._rows())}
