"""The features of some tokens of a batch."""

import torch
from torch import Tensor

from structperc.structures import SparseFeatures


def select(features: SparseFeatures, tokens: Tensor) -> SparseFeatures:
    """Tokens (m,) int64, which may repeat -> their features, in this order."""
    first = features.offsets[tokens]
    counts = features.offsets[tokens + 1] - first
    ends = counts.cumsum(0)
    places = torch.repeat_interleave(first - (ends - counts), counts)
    places = places + torch.arange(len(places), device=tokens.device)
    return SparseFeatures(features.ids[places], torch.nn.functional.pad(ends, (1, 0)).to(features.offsets.dtype))
