"""Arrays that the kernels of linear scores read: features and weights."""

from typing import NamedTuple

import numpy as np
from numpy import ndarray

NO_SEGMENTS = np.empty((0, 0))


class FeatureArrays(NamedTuple):
    """Features of n tokens: those of token t are ids[ends[t]:ends[t + 1]], each with a weight or else of value 1."""

    node_ids: ndarray  # (M,) int32
    node_ends: ndarray  # (n + 1,) int32
    node_weights: ndarray  # (M,) float32, or (0,)
    edge_ids: ndarray  # (N,) int32
    edge_ends: ndarray  # (n + 1,) int32
    edge_weights: ndarray  # (N,) float32, or (0,)


class SegmentArrays(NamedTuple):
    """Features of segments, and how labels show segments."""

    ids: ndarray  # (M,) int32
    ends: ndarray  # (D, n + 1) int64: those of the segment of d + 1 tokens at t are ids[ends[d, t]:ends[d, t + 1]]
    candidates: ndarray  # (n, D, C) bool, segments that may be predicted; (0, D, C): all
    table: ndarray  # (C + 1, 4) int64, see `SegmentScores.labels`
    kinds: ndarray  # (L,) int64, type of each label, C for O
    begins: ndarray  # (L,) bool, labels that begin a segment


class WeightTables(NamedTuple):
    """Weights of a scorer, their sums for averages, or marks of changed rows; without rows where there are none."""

    node: ndarray  # (F, L)
    edge: ndarray  # (G, L * L)
    transition: ndarray  # (L, L) or (0, 0)
    segment: ndarray = NO_SEGMENTS  # (H, C), of features of segments
