"""Features that are numbered by hashes: no index of values or keys, any number of features in fixed memory."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from structperc.errors import InputError
from structperc.features.bag import Bag
from structperc.features.buckets import BITS, MET
from structperc.features.hashed_index import HashedIndex
from structperc.features.hashed_names import HashedNames
from structperc.features.hashed_values import HashedValues
from structperc.features.numbering import Arrays, Numbering
from structperc.features.sources import Attributes
from structperc.features.templates import Template
from structperc.features.windows import View
from structperc.process_pool import Workers


class Hashed(Numbering):
    """Features share 2**bits buckets, those in the same one have the same id.

    Args:
        bits: from 4 to 28.
        reach: the largest offset of any template.
    """

    def __init__(self, bits: int, reach: int) -> None:
        if bits not in BITS:
            raise InputError(f"hash_bits: {bits} is not among {BITS[0]}, ..., {BITS[-1]}")
        self._bits, self._values = bits, HashedValues(reach)

    def learned(self, reading: Attributes, cutoff: int, reach: int) -> "Hashed":
        """Return the same numbering: values are not learned."""
        if cutoff > MET:
            raise InputError(f"cutoff: with hash_bits it is at most {MET}, got {cutoff}")
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

    def bag(self, column: str) -> Bag:
        """Return a bag whose names are in buckets, too."""
        return Bag(column, HashedNames.none(self._bits))

    def to_json(self) -> dict[str, Any]:
        """Return the number of bits."""
        return {"vocabularies": {}, "hash": {"bits": self._bits}}

    def restored(self, strings: Mapping[str, Any], attributes: Sequence[str], reach: int) -> "Hashed":
        """Return the same numbering, which has learned nothing."""
        return self

    def index(
        self, templates: Sequence[Template], strings: Mapping[str, Any], arrays: Arrays, place: str
    ) -> HashedIndex:
        """Return the index with the buckets that were saved."""
        return HashedIndex.restored(templates, self._bits, strings, arrays, place)
