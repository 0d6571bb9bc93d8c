"""Base class of non-local features: linear scores of counts in complete label sequences."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from itertools import combinations_with_replacement, product

import torch
from torch import Tensor, nn

from structperc.data.labels import LabelSet
from structperc.errors import InputError
from structperc.nonlocal_features.candidate_segments import CandidateSegments
from structperc.structures import Batch
from structperc.user_code import class_location


class NonlocalFeature(nn.Module, ABC):
    """Base class of non-local features: forward(segments) -> scores (B, K).

    Scores are linear in `weight` (F,) float32, and 0 for invalid label sequences. Subclasses implement `names` and
    `counts` of F counts, and store each argument of their constructor in an attribute with the same name, so that it
    can be saved. The counts of a label sequence must not depend on other sequences of the batch nor on other
    candidates.

    Example:
        >>> class Segments(NonlocalFeature):
        ...     def names(self, types):
        ...         return ["segments"]
        ...     def counts(self, segments):  # each segment is counted in column 0
        ...         return segments.count_spans(torch.zeros_like(segments.spans.types), 1)
        >>> feature = Segments()
        >>> feature.allocate(LabelSet(("O", "B-PER", "I-PER")))
        >>> feature.weight.tolist()
        [0.0]
    """

    needs_documents = False  # True if the feature compares sentences, so that single sentences have few counts
    weight: nn.Parameter

    @abstractmethod
    def names(self, types: Sequence[str]) -> list[str]:
        """Return the names of the F counts for these segment types, such as "phrase(LOC,PER)"."""

    @abstractmethod
    def counts(self, segments: CandidateSegments) -> Tensor:
        """Return the counts of all label sequences, (B * K, F) float32, dense or sparse.

        Rows of invalid label sequences may contain any finite numbers.
        """

    def allocate(self, labels: LabelSet) -> None:
        """Create the weights, all zero.

        Raises:
            InputError: labels without segments, or names that are not different strings.
        """
        if not labels.type_names:
            raise InputError(
                f"{type(self).__name__} needs segment labels, such as B-PER, but there are none; remove it"
            )
        names = self.names(labels.type_names)
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise InputError(f"{class_location(type(self), 'names')} must return a list of strings, not {names!r}")
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise InputError(f"{class_location(type(self), 'names')} must return different names, not {twice!r} twice")
        self.weight = nn.Parameter(torch.zeros(len(names)))

    def forward(self, segments: CandidateSegments) -> Tensor:
        """Return the scores (B, K) in full precision.

        Raises:
            InputError: the shape of `counts` does not fit the number of names.
        """
        with torch.autocast(self.weight.device.type, enabled=False):
            with torch.no_grad():
                counts = self.counts(segments)
            wanted, got = (segments.valid.numel(), len(self.weight)), tuple(counts.shape)
            if got != wanted:
                name = type(self).__name__
                raise InputError(f"{name}.counts has shape {got}, not {wanted}: B * K sequences, a column per name")
            return (counts @ self.weight).view_as(segments.valid).where(segments.valid, 0)


def ordered_pairs(name: str, types: Sequence[str]) -> list[str]:
    """Return names of counts of pairs (first, second) of types, in columns first * C + second."""
    return [f"{name}({a},{b})" for a, b in product(types, repeat=2)]


def unordered_pairs(name: str, types: Sequence[str]) -> list[str]:
    """Return names of counts of unordered pairs of types, in the columns of `unordered_column`."""
    return [f"{name}({a},{b})" for a, b in combinations_with_replacement(types, 2)]


def unordered_column(a: Tensor, b: Tensor, C: int) -> Tensor:
    """Return the column of pairs of types a <= b < C in the order (0, 0), (0, 1), ..., (1, 1), (1, 2), ..."""
    return a * (2 * C - a - 1) // 2 + b


def nonlocal_scores(
    features: Iterable[NonlocalFeature], batch: Batch, labels: Tensor, valid: Tensor, label_set: LabelSet
) -> Tensor:
    """Return the sum of the scores of non-local features.

    Returns (B, K) float32, 0 for invalid label sequences.

    Args:
        batch: B sequences.
        labels: (B, K, T) int64, K label sequences of each sequence.
        valid: (B, K) bool.
    """
    scores, features = valid.new_zeros(valid.shape, dtype=torch.float32), list(features)
    if not features:
        return scores
    segments = CandidateSegments(batch, labels, valid, label_set)
    return scores + sum(feature(segments) for feature in features)
