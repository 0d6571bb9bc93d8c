"""Features that are numbered by an index of all of them."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from structperc.errors import InputError
from structperc.features.bag import WeightedFeatures
from structperc.features.index import ExactIndex
from structperc.features.keys import ValueCodes
from structperc.features.listed_names import ExplicitVocabulary
from structperc.features.numbering import Arrays, Numbering
from structperc.features.sources import Attributes
from structperc.features.templates import Template
from structperc.features.windows import View
from structperc.process_pool import Workers


class ExactNumbering(Numbering):
    """Each value and each feature has a number of its own.

    Args:
        vocabularies: of all attributes, once they are known.
    """

    def __init__(self, vocabularies: Mapping[str, ValueCodes] = MappingProxyType({})) -> None:
        self._vocabularies = dict(vocabularies)

    def fit(self, reading: Attributes, cutoff: int, max_offset: int) -> "ExactNumbering":
        """Return the numbering with codes for the frequent values of a training corpus."""
        return ExactNumbering({name: _vocabulary(name, reading, cutoff, max_offset) for name in reading.values})

    def codes(self, attribute: str, values: Sequence[str]) -> np.ndarray:
        """Return the codes of the places beyond the boundaries, then of values of an attribute, int64."""
        return self._vocabularies[attribute].encode(values)

    def count(
        self,
        view: View,
        reading: Attributes,
        templates: Sequence[Template],
        cutoff: int,
        progress: bool,
        workers: Workers,
    ) -> ExactIndex:
        """Index what occurs at least `cutoff` times in a view."""
        return ExactIndex.count(view, templates, self._vocabularies, cutoff, progress, workers)

    def bag(self, column: str) -> WeightedFeatures:
        """Return a bag that keeps all names."""
        return WeightedFeatures(column, ExplicitVocabulary())

    def to_json(self) -> dict[str, Any]:
        """Return the values of attributes in the order of their codes."""
        values = {name: vocabulary.values for name, vocabulary in self._vocabularies.items()}
        return {"vocabularies": values, "hash": None}

    def restore(self, strings: Mapping[str, Any], attributes: Sequence[str], max_offset: int) -> "ExactNumbering":
        """Return the numbering with the values that were saved."""
        vocabularies = {
            name: ValueCodes.from_json(values, max_offset, f"features.vocabularies.{name}")
            for name, values in strings["vocabularies"].items()
        }
        if missing := [name for name in attributes if name not in vocabularies]:
            raise InputError(f"features.vocabularies: there is no {missing[0]!r}, which a template reads")
        return ExactNumbering(vocabularies)

    def index(
        self, templates: Sequence[Template], strings: Mapping[str, Any], arrays: Arrays, place: str
    ) -> ExactIndex:
        """Return the index with the keys that were saved."""
        return ExactIndex.from_arrays(templates, self._vocabularies, arrays["keys"], arrays["sizes"])


def _vocabulary(name: str, reading: Attributes, cutoff: int, max_offset: int) -> ValueCodes:
    values, numbers = reading.values[name], reading.numbers[reading.columns[name]]
    counts = np.bincount(numbers, minlength=2 * max_offset + len(values))[2 * max_offset :]
    return ValueCodes.frequent(values, counts, cutoff, max_offset)
