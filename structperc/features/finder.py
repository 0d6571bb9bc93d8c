"""Where the features of templates are found, however they are numbered: the face of an index for its lookups."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np


class Finder(ABC):
    """Base of what gives ids to the conjunctions of J templates."""

    code: ClassVar[type[np.integer]]  # the type of the codes of values

    @property
    @abstractmethod
    def look_up(self) -> Callable[..., int]:
        """What `gather.gathering` calls, an inner kernel."""

    @abstractmethod
    def table(self, numbers: Sequence[int]) -> Any:
        """Return what `look_up` reads for the templates of these numbers, as a NamedTuple of arrays."""

    @abstractmethod
    def ids(self, number: int, codes: np.ndarray) -> np.ndarray:
        """Return the ids (n,) int32 of values with these codes (n,) in a template of one part.

        NO_FEATURE where they are no feature.
        """
