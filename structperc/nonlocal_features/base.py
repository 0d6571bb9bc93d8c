"""Base class of non-local features: a linear score of counts of whole label sequences."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from itertools import combinations_with_replacement, product

import torch
from torch import Tensor, nn

from structperc.data.labels import LabelSet
from structperc.errors import InputError
from structperc.nonlocal_features.segments import CandidateSegments, find_segments
from structperc.structures import Batch
from structperc.user_code import class_location


class NonlocalFeature(nn.Module, ABC):
    """forward(segments) -> scores (B, K), differentiable in `weight` (F,) float32; 0 where a label sequence is not
    valid.

    A subclass says what its F counts are called and computes them; weights, scores and checks are here. It keeps
    its options under their own names, from which a saved model is built again. Counts of sequences do not depend on
    what else is in the batch, nor counts of a label sequence on the other label sequences.
    """

    needs_documents = False  # whether it compares sentences, so that single ones show it little
    weight: nn.Parameter

    @abstractmethod
    def names(self, types: Sequence[str]) -> list[str]:
        """Return the names of the F counts for these segment types, such as "phrase(LOC,PER)"."""

    @abstractmethod
    def counts(self, segments: CandidateSegments) -> Tensor:
        """Return the counts of all label sequences, (B * K, F) float32, dense or sparse.

        Rows of label sequences that are not valid may hold anything finite.
        """

    def allocate(self, labels: LabelSet) -> None:
        """Create the weights, all zero.

        Raises InputError for labels without segments, and for names that are not strings, each of them once.
        """
        if not labels.type_names:
            raise InputError(
                f"{type(self).__name__} needs segment labels, such as B-PER, and there are none; remove it"
            )
        names = self.names(labels.type_names)
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise InputError(f"{class_location(type(self), 'names')} must return a list of strings, not {names!r}")
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise InputError(f"{class_location(type(self), 'names')} must return each name once; {twice!r} comes again")
        self.weight = nn.Parameter(torch.zeros(len(names)))

    def forward(self, segments: CandidateSegments) -> Tensor:
        """Return the scores (B, K) in full precision.

        Raises InputError if `counts` has another shape than `names` says.
        """
        with torch.autocast(self.weight.device.type, enabled=False):
            with torch.no_grad():
                counts = self.counts(segments)
            self._check(counts, (segments.valid.numel(), len(self.weight)))
            return (counts @ self.weight).view_as(segments.valid).where(segments.valid, 0)

    def _check(self, counts: Tensor, wanted: tuple[int, int]) -> None:
        if counts.shape != wanted:
            name, got = type(self).__name__, tuple(counts.shape)
            raise InputError(f"{name}.counts has shape {got}, not {wanted}: B * K label sequences, one column per name")


def ordered_pairs(name: str, types: Sequence[str]) -> list[str]:
    """Return names of counts of pairs (first, second) of types, second fastest: column first * C + second."""
    return [f"{name}({a},{b})" for a, b in product(types, repeat=2)]


def unordered_pairs(name: str, types: Sequence[str]) -> list[str]:
    """Return names of counts of pairs of types in any order, in the columns of `unordered_column`."""
    return [f"{name}({a},{b})" for a, b in combinations_with_replacement(types, 2)]


def unordered_column(a: Tensor, b: Tensor, C: int) -> Tensor:
    """Return the column of pairs of types a <= b < C in the order (0, 0), (0, 1), ..., (1, 1), (1, 2), ..."""
    return a * (2 * C - a - 1) // 2 + b


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
