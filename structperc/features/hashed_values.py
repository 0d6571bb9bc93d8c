"""The values of attributes as hashes: nothing is learned, nothing is kept."""

from collections.abc import Sequence
from itertools import chain

import numpy as np

from structperc.features.hashing import NO_KEY, string_hash
from structperc.features.windows import boundary_names


class HashedValues:
    """Codes of values of any attribute: NO_KEY for an absent one, else 64 bits of its hash."""

    def __init__(self, reach: int) -> None:
        self._beyond = [string_hash(name, "beyond") for name in boundary_names(reach)]

    def encode(self, strings: Sequence[str]) -> np.ndarray:
        """Return the codes of the places beyond the boundaries, then of `strings`, (n,) uint64."""
        codes = {string: string_hash(string, "value") if string else NO_KEY for string in dict.fromkeys(strings)}
        shown = chain(self._beyond, map(codes.__getitem__, strings))
        return np.fromiter(shown, np.uint64, len(self._beyond) + len(strings))
