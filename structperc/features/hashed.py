"""Features that are numbered by hashes: no index of values or keys, any number of features in fixed memory."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from structperc.errors import InputError
from structperc.features.bag import WeightedFeatures
from structperc.features.hashed_index import HashedIndex
from structperc.features.hashed_names import HashedVocabulary
from structperc.features.hashing import BITS, MAX_COUNT, HashedValues
from structperc.features.numbering import Arrays, Numbering
from structperc.features.sources import Attributes
from structperc.features.templates import Template
from structperc.features.windows import View
from structperc.process_pool import Workers


class HashedNumbering(Numbering):
    """Features share 2**bits buckets, those in the same one have the same id.

    Args:
        bits: from 4 to 28.
        max_offset: the largest offset of any template.
    """

    def __init__(self, bits: int, max_offset: int) -> None:
        if bits not in BITS:
            raise InputError(f"hash_bits: {bits} is not among {BITS[0]}, ..., {BITS[-1]}")
        self._bits, self._values = bits, HashedValues(max_offset)

    def fit(self, reading: Attributes, cutoff: int, max_offset: int) -> "HashedNumbering":
        """Return the same numbering: values are not learned."""
        if cutoff > MAX_COUNT:
            raise InputError(f"cutoff: with hash_bits it is at most {MAX_COUNT}, got {cutoff}")
        return self

    def codes(self, attribute: str, values: Sequence[str]) -> np.ndarray:
        """Return the hashes of the places beyond the boundaries, then of values, uint64."""
        return self._values.encode(values)

    def count(
        self,
        view: View,
        reading: Attributes,
        templates: Sequence[Template],
        cutoff: int,
        progress: bool,
        workers: Workers,
    ) -> HashedIndex:
        """Take the buckets that features of a view fall into at least `cutoff` times."""
        return HashedIndex.count(view, reading, templates, self._bits, cutoff, progress, workers)

    def bag(self, column: str) -> WeightedFeatures:
        """Return a bag whose names are in buckets, too."""
        return WeightedFeatures(column, HashedVocabulary.none(self._bits))

    def to_json(self) -> dict[str, Any]:
        """Return the number of bits."""
        return {"vocabularies": {}, "hash": {"bits": self._bits}}

    def restore(self, strings: Mapping[str, Any], attributes: Sequence[str], max_offset: int) -> "HashedNumbering":
        """Return the same numbering, which has learned nothing."""
        return self

    def index(
        self, templates: Sequence[Template], strings: Mapping[str, Any], arrays: Arrays, place: str
    ) -> HashedIndex:
        """Return the index with the buckets that were saved."""
        return HashedIndex.restore(templates, self._bits, strings, arrays, place)
