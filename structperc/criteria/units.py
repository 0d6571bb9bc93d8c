"""The units that an F-score counts in a labelling: segments or tokens."""

from abc import ABC, abstractmethod

from torch import Tensor, nn

from structperc.chain import Segments
from structperc.data.labels import LabelSet
from structperc.data.segment_masks import segment_boundaries


class Units(nn.Module, ABC):
    """Base of the units that `MCEF` counts: `forward` finds those of labels (B, T) int64.

    real (B, T) bool is False in the padding, starts (B, T) bool is True at the first token of each sentence. Units of
    two labellings are equal when tokens and kind are. Rows without a real token have none.
    """

    @abstractmethod
    def forward(self, labels: Tensor, real: Tensor, starts: Tensor, label_set: LabelSet) -> tuple[Segments, Tensor]:
        """Return the places of U units, and their kinds (U,) int64, which are below the number of labels."""


class Segmentwise(Units):
    """Segments as the evaluation reads them; the kind is the type. Suzuki, McDermott & Isozaki 2006, Eq. 15."""

    def forward(self, labels: Tensor, real: Tensor, starts: Tensor, label_set: LabelSet) -> tuple[Segments, Tensor]:
        """Return the segments of the labels and their types (U,) int64."""
        first, last = segment_boundaries(labels, real, starts, label_set)
        rows, starts = first.nonzero().unbind(1)
        types = label_set.types.to(labels.device)[labels[rows, starts]]
        return Segments(rows, starts, last.nonzero()[:, 1] + 1), types


class Pointwise(Units):
    """Tokens inside of segments; the kind is the label. Suzuki, McDermott & Isozaki 2006, Eq. 14."""

    def forward(self, labels: Tensor, real: Tensor, starts: Tensor, label_set: LabelSet) -> tuple[Segments, Tensor]:
        """Return the tokens inside of segments, as segments of length 1, and their labels (U,) int64."""
        inside = label_set.types.to(labels.device)[labels.where(real, 0)] >= 0
        rows, tokens = (inside & real).nonzero().unbind(1)
        return Segments(rows, tokens, tokens + 1), labels[rows, tokens]
