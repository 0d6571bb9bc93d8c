"""The strings of a column, each of them once."""

from collections import defaultdict
from collections.abc import Sequence
from itertools import count
from typing import NamedTuple

import numpy as np


class DistinctStrings(NamedTuple):
    """The distinct strings of a column, and which of them each of its N strings is."""

    distinct: list[str]  # in the order in which they first occur
    numbers: np.ndarray  # (N,) int32, positions in `distinct`


def number_strings(strings: Sequence[str]) -> DistinctStrings:
    """Number the strings of a column in the order in which they first occur."""
    index: defaultdict[str, int] = defaultdict(count().__next__)
    numbers = np.fromiter(map(index.__getitem__, strings), np.int32, len(strings))
    return DistinctStrings(list(index), numbers)
