"""The names of features that data list, and their ids."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

import numpy as np

from structperc.errors import InputError
from structperc.features.keys import NO_FEATURE

Times = Iterable[tuple[Sequence[str], int]]  # names that stand together, and how often they do


class FeatureNames(ABC):
    """Names that have ids 0, 1, ..."""

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def find(self, name: str) -> int:
        """Return the id of a name, NO_FEATURE where it has none."""

    @abstractmethod
    def count(self, times: Times, cutoff: int) -> Self:
        """Return the names that stand somewhere at least `cutoff` times."""

    @abstractmethod
    def names(self, rows: np.ndarray) -> list[str]:
        """Return the names with these ids (n,)."""

    @abstractmethod
    def subset(self, keep: np.ndarray) -> Self:
        """Return the names for which keep (F,) bool is true, renumbered in the same order."""

    @abstractmethod
    def summary(self) -> str:
        """Return what is to be known about the ids, as one line; nothing where each name has its own."""

    @property
    @abstractmethod
    def listed(self) -> list[str]:
        """All names in the order of their ids; none where they are not kept."""

    @abstractmethod
    def arrays(self) -> dict[str, np.ndarray]:
        """Return the numbers of the state by name."""

    @abstractmethod
    def strings(self) -> dict[str, Any]:
        """Return the strings of the state, beside those that are listed, as plain JSON types."""

    @abstractmethod
    def restore(
        self, listed: list[str], strings: Mapping[str, Any], arrays: Mapping[str, np.ndarray], place: str
    ) -> Self:
        """Return the names that told this state. Raises InputError, naming the place, for any other."""


class ExplicitVocabulary(FeatureNames):
    """Names that are kept.

    Args:
        names: in the order of their ids.
    """

    def __init__(self, names: Sequence[str] = ()) -> None:
        self._names = list(names)
        self._ids = {name: i for i, name in enumerate(self._names)}

    def __len__(self) -> int:
        return len(self._names)

    def find(self, name: str) -> int:
        """Return the id of a name, NO_FEATURE where it has none."""
        return self._ids.get(name, NO_FEATURE)

    def count(self, times: Times, cutoff: int) -> "ExplicitVocabulary":
        """Return the names that stand somewhere at least `cutoff` times."""
        counts: Counter[str] = Counter()
        for names, number in times:
            for name in names:
                counts[name] += number
        return ExplicitVocabulary([name for name, number in counts.items() if number >= cutoff])

    def names(self, rows: np.ndarray) -> list[str]:
        """Return the names with these ids (n,)."""
        return [self._names[row] for row in rows.tolist()]

    def subset(self, keep: np.ndarray) -> "ExplicitVocabulary":
        """Return the names for which keep (F,) bool is true, renumbered in the same order."""
        return ExplicitVocabulary([name for name, kept in zip(self._names, keep.tolist(), strict=True) if kept])

    def summary(self) -> str:
        """Return nothing: each name has an id of its own."""
        return ""

    @property
    def listed(self) -> list[str]:
        """All names in the order of their ids."""
        return self._names

    def arrays(self) -> dict[str, np.ndarray]:
        """Return nothing: strings are all there is."""
        return {}

    def strings(self) -> dict[str, Any]:
        """Return nothing beside the list."""
        return {}

    def restore(
        self, listed: list[str], strings: Mapping[str, Any], arrays: Mapping[str, np.ndarray], place: str
    ) -> "ExplicitVocabulary":
        """Return the names of a list. Raises InputError for one that stands twice."""
        if len(set(listed)) < len(listed):
            raise InputError(f"{place}.names: a name stands twice")
        return ExplicitVocabulary(listed)
