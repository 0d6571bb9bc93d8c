"""What kernels of linear scores read: features, weights and a tag scheme as arrays."""

from typing import NamedTuple

from numpy import ndarray


class FeatureArrays(NamedTuple):
    """The features of n tokens: those of token t are ids[ends[t]:ends[t + 1]]; no ids where there are none at all.

    Each counts 1, or as much as its weight where there are weights.
    """

    node_ids: ndarray  # (M,) int32
    node_ends: ndarray  # (n + 1,) int32
    node_weights: ndarray  # (M,) float32, or (0,)
    edge_ids: ndarray  # (N,) int32
    edge_ends: ndarray  # (n + 1,) int32
    edge_weights: ndarray  # (N,) float32, or (0,)


class WeightTables(NamedTuple):
    """Weights of a scorer, sums from which their averages come, or marks of what has moved; none: without rows."""

    node: ndarray  # (F, L)
    edge: ndarray  # (G, L * L)
    transition: ndarray  # (L, L) or (0, 0)


class TagSchemeMasks(NamedTuple):
    """What the tag scheme allows."""

    start: ndarray  # (L,) bool
    transition: ndarray  # (L, L) bool
    end: ndarray  # (L,) bool
