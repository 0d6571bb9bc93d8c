"""What an F-score counts in a labelling."""

from abc import ABC, abstractmethod

from torch import Tensor, nn

from structperc.chain import Segments
from structperc.data.labels import LabelSet


class Units(nn.Module, ABC):
    """forward(labels (B, T) int64, real (B, T) bool, label set) -> the units of U places, and their kinds (U,) int64.

    Units of two labellings are equal when tokens and kind are. Rows without a real token have none.
    """

    @abstractmethod
    def forward(self, labels: Tensor, real: Tensor, label_set: LabelSet) -> tuple[Segments, Tensor]:
        """-> places, kinds (U,) int64 below the number of labels."""


class Segmentwise(Units):
    """Segments as `LabelSet.boundaries` reads them; the kind is the type. Suzuki, McDermott & Isozaki 2006, Eq. 15.

    They are read in whole sequences: of documents in IOB1, where I-X on both sides of the boundary between two
    sentences are two segments to the evaluation, they are one here.
    """

    def forward(self, labels: Tensor, real: Tensor, label_set: LabelSet) -> tuple[Segments, Tensor]:
        """-> segments, types (U,)."""
        first, last = label_set.boundaries(labels, real)
        rows, starts = first.nonzero().unbind(1)
        types = label_set.types.to(labels.device)[labels[rows, starts]]
        return Segments(rows, starts, last.nonzero()[:, 1] + 1), types


class Pointwise(Units):
    """Tokens inside of segments; the kind is the label. Suzuki, McDermott & Isozaki 2006, Eq. 14."""

    def forward(self, labels: Tensor, real: Tensor, label_set: LabelSet) -> tuple[Segments, Tensor]:
        """-> tokens, labels (U,)."""
        inside = label_set.types.to(labels.device)[labels.where(real, 0)] >= 0
        rows, tokens = (inside & real).nonzero().unbind(1)
        return Segments(rows, tokens, tokens + 1), labels[rows, tokens]
