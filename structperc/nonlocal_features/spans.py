"""The segments in a text of labellings."""

from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor

from structperc.data.labels import LabelSet, shift
from structperc.nonlocal_features.text import Text


class Spans(NamedTuple):
    """Segments in the order of the text, copy after copy."""

    starts: Tensor  # (E,) int64, b * T + t of the first token
    ends: Tensor  # (E,) int64, b * T + t after the last token
    types: Tensor  # (E,) int64, position in `LabelSet.type_names`
    copies: Tensor  # (E,) int64, the copy that holds it


def find_spans(text: Text, label_set: LabelSet) -> Spans:
    """Read the segments by the rule of `LabelSet.boundaries`; none goes on in the next copy."""
    types = label_set.types.to(text.labels.device)[text.labels]
    inside = types >= 0
    first = inside & (opens(text.labels, label_set) | (text.copies != shift(text.copies, 1, -1)))
    last = inside & ~shift(inside & ~first, -1, False)
    starts, ends = first.nonzero().squeeze(1), last.nonzero().squeeze(1)
    return Spans(text.places[starts], text.places[ends] + 1, types[starts], text.copies[starts])


def opens(labels: Tensor, label_set: LabelSet) -> Tensor:
    """Tokens whose label begins a segment after the label before, labels (..., T) -> (..., T) bool."""
    return _opening(label_set).to(labels.device)[shift(labels, 1, 0) * len(label_set) + labels]


@lru_cache(maxsize=8)
def _opening(label_set: LabelSet) -> Tensor:
    """(L * L,) bool: whether the label j begins a segment after i, at i * L + j: `boundaries` of all pairs."""
    ids = torch.arange(len(label_set))
    pairs = torch.cartesian_prod(ids, ids)
    return label_set.boundaries(pairs, torch.ones_like(pairs, dtype=torch.bool))[0][:, 1]
