"""The base of templates that are anchored on entities."""

from abc import abstractmethod
from typing import NamedTuple

import torch
from torch import Tensor

from structperc.data.lexicon import LowerCaseLexicon
from structperc.nonlocal_features.global_feature import GlobalFeature, Occurrences
from structperc.nonlocal_features.segments import CandidateSegments


class Anchored(NamedTuple):
    """The strings of the segments of a batch, by number."""

    spans: Tensor  # (A,) int64, which of `CandidateSegments.spans`
    parts: Tensor  # (A,) int64, which string of the template
    numbers: Tensor  # (A,) int64, number of what follows the = in it


class EntityFeature(GlobalFeature):
    """A template of which each entity has one or several strings. A subclass gives their numbers."""

    @abstractmethod
    def anchored(self, segments: CandidateSegments) -> Anchored:
        """Return the strings of each segment that some labelling has."""

    def occurrences(self, segments: CandidateSegments) -> Occurrences:
        """Return the strings of the segments of each labelling."""
        spans, parts, numbers = self.anchored(segments)
        keys = self.key(numbers, parts, segments.spans.types[spans], segments)
        held = segments.holders.select(spans)
        owner = held.owners
        spans = spans[owner]
        starts, ends, types, _ = (values[spans] for values in segments.spans)
        first = starts % segments.possible.shape[1]
        return Occurrences(held.ids, keys[owner], first, first + ends - starts, types, parts[owner])


class LexiconFeature(EntityFeature):
    """A template that asks whether words are usually in lower case.

    Args:
        typed: whether entities of different types make different strings.
        lexicon: which words are; by default those that are so in the training data.
    """

    def __init__(self, typed: bool = True, lexicon: LowerCaseLexicon | None = None) -> None:
        super().__init__(typed)
        self.lexicon = lexicon or LowerCaseLexicon()


def side_by_side(numbers: list[Tensor]) -> Anchored:
    """Return the strings of segments, from the numbers (E,) of part 0, 1, ... of each segment."""
    columns = torch.stack(numbers, 1)
    E, P = columns.shape
    spans = torch.arange(E, device=columns.device)
    parts = torch.arange(P, device=columns.device)
    return Anchored(spans.repeat_interleave(P), parts.repeat(E), columns.flatten())
