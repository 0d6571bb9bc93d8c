"""The score of labellings by all non-local features of a model."""

from collections.abc import Iterable

import torch
from torch import Tensor

from structperc.data.labels import LabelSet
from structperc.nonlocal_features.base import NonlocalFeature
from structperc.nonlocal_features.segments import find_segments
from structperc.structures import Batch


def nonlocal_scores(
    features: Iterable[NonlocalFeature], batch: Batch, labels: Tensor, valid: Tensor, label_set: LabelSet
) -> Tensor:
    """Return the scores (B, K) of labels (B, K, T) int64, valid (B, K) bool, summed over the features.

    Zeros without any.
    """
    scores, features = valid.new_zeros(valid.shape, dtype=torch.float32), list(features)
    if not features:
        return scores
    segments = find_segments(batch, labels, valid, label_set)
    return scores + sum(feature(segments) for feature in features)
