"""Attributes that read whole documents."""

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from structperc.data.corpus import Corpus
from structperc.data.distinct import DistinctStrings
from structperc.public_names import CLASS, OPTIONS, path_of

Lookup = Callable[[str], DistinctStrings]  # from the name of an attribute to its value at each token


class DocumentAttribute(ABC):
    """A string for each token of a corpus, which all of its document decides.

    Subclasses keep their options under the names of their arguments, so that a saved model can say what it reads.
    Labels are never read: text without labels has the same attributes.
    """

    attributes: tuple[str, ...] = ()  # the names of those that `read` looks up

    @abstractmethod
    def read(self, corpus: Corpus, lookup: Lookup) -> DistinctStrings:
        """Return the value at each token of a corpus, "" where there is none.

        lookup: gives the values of the attributes that `attributes` names.
        """

    def to_json(self) -> dict[str, Any]:
        """Return class and options as plain JSON types: {"class_path": ..., "init_args": {...}}."""
        options = {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}
        return {CLASS: path_of(type(self)), OPTIONS: options}
