"""What the compiled functions take and return."""

from typing import NamedTuple

from numpy import ndarray
from torch import Tensor


class SegmentLists(NamedTuple):
    """n segments, those of labelling b * K + k after those of the labelling before, in the order of their tokens."""

    bounds: ndarray  # (B * K + 1,) int64, where those of each labelling begin, at last where all end
    starts: ndarray  # (n,) int64, b * T + t of the first token
    stops: ndarray  # (n,) int64, b * T + t after the last token
    types: ndarray  # (n,) int64, position in `LabelSet.type_names`


class StringCounts(NamedTuple):
    """What the features of strings count in N labellings, whose segments have C types; each float32."""

    phrase: Tensor  # (N, C (C + 1) / 2), see `PhraseConsistency`
    subphrase: Tensor  # (N, C * C), see `SubphraseConsistency`
    majority_phrase: Tensor  # (N, C * C), see `MajorityPhrase`
    majority_superphrase: Tensor  # (N, C * C), see `MajoritySuperphrase`
