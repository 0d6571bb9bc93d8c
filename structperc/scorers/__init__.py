"""Scorers, which compute lattices of scores from features or vectors.

base.py            base class, and the sum of several scorers
sparse_linear.py   weights of feature ids
vector_linear.py   the same, and linear scores of fixed vectors
neural.py          linear scores of an encoder's vectors
segment_linear.py  scores of labels, and weights of features of whole segments; segment_candidates.py: which ones
"""

from structperc.scorers.base import LinearForm, Scorer, Sum
from structperc.scorers.neural import Neural
from structperc.scorers.segment_candidates import SegmentCandidates
from structperc.scorers.segment_linear import SegmentFeatures, SegmentLinear
from structperc.scorers.sparse_linear import SparseLinear, sum_features
from structperc.scorers.vector_linear import VectorLinear

__all__ = [
    "Scorer",
    "SparseLinear",
    "VectorLinear",
    "Neural",
    "SegmentLinear",
    "SegmentFeatures",
    "SegmentCandidates",
    "Sum",
    "LinearForm",
    "sum_features",
]
