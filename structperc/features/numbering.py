"""How features get numbers: the face of an index, and of what makes one."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np

from structperc.features.bag import WeightedFeatures
from structperc.features.id_lists import IdLists
from structperc.features.sources import Attributes
from structperc.features.templates import Template
from structperc.features.windows import View
from structperc.process_pool import Workers

Arrays = Mapping[str, np.ndarray]


class Index(ABC):
    """The features of a list of templates, and their ids 0, 1, ..."""

    templates: tuple[Template, ...]

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def encode(self, view: View, progress: bool = False) -> IdLists:
        """Return the ids of the features at each token of a view."""

    @abstractmethod
    def names(self, rows: np.ndarray) -> list[str]:
        """Return the features with these ids, ascending (n,), as "wl[-1]=the|wl[0]=cat"; the bias is "bias"."""

    @abstractmethod
    def subset(self, keep: np.ndarray) -> Self:
        """Return the index of the features for which keep (F,) bool is true, renumbered in the same order."""

    @abstractmethod
    def same(self, other: "Index") -> bool:
        """Tell whether both give the same ids to the same features."""

    @abstractmethod
    def sizes(self) -> list[int]:
        """Return how many ids the features of each template have, which are neighbours; none where templates mix."""

    @abstractmethod
    def summary(self) -> str:
        """Return what is to be known about the ids, as one line; nothing where each feature has its own."""

    @abstractmethod
    def arrays(self) -> dict[str, np.ndarray]:
        """Return the numbers of the state by name."""

    @abstractmethod
    def strings(self) -> dict[str, Any]:
        """Return the strings of the state as plain JSON types."""


class Numbering(ABC):
    """A way to number features."""

    @abstractmethod
    def fit(self, reading: Attributes, cutoff: int, max_offset: int) -> Self:
        """Return the numbering with codes for the values of a training corpus."""

    @abstractmethod
    def codes(self, attribute: str, values: Sequence[str]) -> np.ndarray:
        """Return the codes of the places beyond the boundaries, then of values of an attribute."""

    @abstractmethod
    def count(
        self,
        view: View,
        reading: Attributes,
        templates: Sequence[Template],
        cutoff: int,
        progress: bool,
        workers: Workers,
    ) -> Index:
        """Index what occurs at least `cutoff` times in a view, which shows what was read."""

    @abstractmethod
    def bag(self, column: str) -> WeightedFeatures:
        """Return a bag of the features that a column lists, without any yet."""

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """Return "vocabularies", the values of attributes, and "hash", the options of hashed features or None."""

    @abstractmethod
    def restore(self, strings: Mapping[str, Any], attributes: Sequence[str], max_offset: int) -> Self:
        """Return the numbering that `to_json` told of. Raises InputError for anything else."""

    @abstractmethod
    def index(self, templates: Sequence[Template], strings: Mapping[str, Any], arrays: Arrays, place: str) -> Index:
        """Return the index that told these strings and arrays. Raises InputError, naming the place, for others."""
