"""The segments in a text of labellings."""

from typing import NamedTuple

import torch
from torch import Tensor

from structperc.data.labels import LabelSet, shift
from structperc.nonlocal_features.text import Text


class Spans(NamedTuple):
    """Segments in the order of the text, copy after copy."""

    starts: Tensor  # (E,) int64, b * T + t of the first token
    ends: Tensor  # (E,) int64, b * T + t behind the last token
    types: Tensor  # (E,) int64, position in `LabelSet.type_names`
    copies: Tensor  # (E,) int64, the copy that holds it


def find_spans(text: Text, label_set: LabelSet) -> Spans:
    """Read the segments by the rule of `LabelSet.borders`; none goes on in the next copy."""
    first, last = label_set.borders(text.labels, torch.ones_like(text.labels, dtype=torch.bool))
    types = label_set.types.to(text.labels.device)[text.labels]
    begins = text.copies != shift(text.copies, 1, -1)
    starts = ((first | begins) & (types >= 0)).nonzero().squeeze(1)
    ends = ((last | shift(begins, -1, True)) & (types >= 0)).nonzero().squeeze(1)
    return Spans(text.places[starts], text.places[ends] + 1, types[starts], text.copies[starts])
