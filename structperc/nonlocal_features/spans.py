"""The segments in a text of labellings."""

from typing import NamedTuple

import torch
from torch import Tensor

from structperc.data.labels import LabelSet, segment_boundaries, shift
from structperc.nonlocal_features.text import Text


class Spans(NamedTuple):
    """The segments of a text in its order, copy after copy."""

    starts: Tensor  # (E,) int64, b * T + t of the first token
    ends: Tensor  # (E,) int64, b * T + t after the last token
    types: Tensor  # (E,) int64, position in `LabelSet.type_names`
    copies: Tensor  # (E,) int64, the copy that holds it


def find_spans(text: Text, label_set: LabelSet) -> Spans:
    """Read the segments as `segment_boundaries` does; none goes on in the next copy."""
    real = torch.ones_like(text.labels, dtype=torch.bool)
    boundaries = segment_boundaries(text.labels, real, text.copies != shift(text.copies, 1, -1), label_set)
    starts, ends = (tokens.nonzero().squeeze(1) for tokens in boundaries)
    types = label_set.types.to(text.labels.device)[text.labels[starts]]
    return Spans(text.places[starts], text.places[ends] + 1, types, text.copies[starts])
