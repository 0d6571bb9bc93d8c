"""Feature ids of a whole corpus as arrays."""

from typing import NamedTuple

import numpy as np


class IdLists(NamedTuple):
    """The ids of features at each of N tokens: those of token t are ids[ends[t]:ends[t + 1]]."""

    ids: np.ndarray  # (M,) int32
    ends: np.ndarray  # (N + 1,) int64


class FeatureIds(NamedTuple):
    """Node and edge features of a corpus; `edges` is the same object as `nodes` where they are the same."""

    nodes: IdLists
    edges: IdLists | None  # None when no template asks for edges
