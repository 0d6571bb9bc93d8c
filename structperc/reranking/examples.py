"""Lists of candidates with sparse binary features, as ranking algorithms see them."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from structperc.errors import InputError
from structperc.ragged import Ragged


class Examples(NamedTuple):
    """S sequences with K candidates each. Candidate k of sequence s is labelling i = s K + k.

    Where no candidate is correct, algorithms pass over the sequence.
    """

    features: Ragged  # a list for each labelling, ids int32, ascending, each once; offsets (S * K + 1,) int64
    first: Tensor  # (S, K) float64, log-probability under the first model, finite where valid
    valid: Tensor  # (S, K) bool
    correct: Tensor  # (S,) int64, which candidate is correct; -1 where none is
    n_features: int

    @classmethod
    def from_pairs(
        cls, labellings: Tensor, ids: Tensor, first: Tensor, valid: Tensor, correct: Tensor, n_features: int
    ) -> "Examples":
        """Return examples from pairs of labelling (N,) and feature (N,), in any order; repeated pairs count once.

        Raises InputError for features, first scores and correct candidates that cannot be.
        """
        if not first[valid].isfinite().all():
            raise InputError("the first model's scores of candidates must be finite")
        listed = correct >= 0
        if not valid[listed, correct[listed]].all():
            raise InputError("a correct candidate is not valid")
        labellings, ids = distinct(labellings, ids, n_features)
        features = _by_labelling(labellings, ids.int(), valid)
        return cls(features, first.double(), valid, correct, n_features)

    @classmethod
    def concat(cls, parts: Sequence["Examples"]) -> "Examples":
        """Return the examples of all parts, one after the other; all have the same K and the same features."""
        if len({(part.valid.shape[1], part.n_features) for part in parts}) != 1:
            raise InputError("examples to concatenate must have the same number of candidates and of features")
        return cls(
            Ragged.join([part.features for part in parts]),
            torch.cat([part.first for part in parts]),
            torch.cat([part.valid for part in parts]),
            torch.cat([part.correct for part in parts]),
            parts[0].n_features,
        )

    def take(self, rows: Tensor) -> "Examples":
        """Return the sequences rows (R,), in that order."""
        K = self.valid.shape[1]
        labellings = (rows.unsqueeze(1) * K + torch.arange(K, device=rows.device)).flatten()
        features = self.features.select(labellings)
        return Examples(features, self.first[rows], self.valid[rows], self.correct[rows], self.n_features)

    def differing(self) -> "Examples":
        """Return the examples without features that all valid candidates of a sequence share: they cancel out.

        Features of candidates that are not valid are left out, too.
        """
        K = self.valid.shape[1]
        owner = self.features.row_ids
        live = self.valid.flatten()[owner]
        owner, ids = owner[live], self.features.ids[live]
        sequence = owner // K
        _, which, counts = (sequence * self.n_features + ids).unique(return_inverse=True, return_counts=True)
        kept = counts[which] < self.valid.sum(1)[sequence]
        return self._replace(features=_by_labelling(owner[kept], ids[kept], self.valid))

    def features_of(self, s: int, k: int) -> Tensor:
        """Return the features of candidate k of sequence s, int32."""
        i = s * self.valid.shape[1] + k
        return self.features.slice(i, i + 1).ids


def distinct(labellings: Tensor, ids: Tensor, n_features: int) -> tuple[Tensor, Tensor]:
    """Return the different ones (M,), (M,), int64 and ascending, of the pairs (N,), (N,).

    Raises InputError for features outside of 0 <= id < F.
    """
    if len(ids) and not 0 <= int(ids.min()) <= int(ids.max()) < n_features:
        raise InputError(f"features have numbers from {int(ids.min())} to {int(ids.max())}, not below {n_features}")
    pairs = (labellings.long() * n_features + ids).unique()
    return pairs // max(1, n_features), pairs % max(1, n_features)


def _by_labelling(labellings: Tensor, ids: Tensor, valid: Tensor) -> Ragged:
    """Ascending labellings (M,) and the feature of each (M,) -> the features of all labellings of valid (S, K)."""
    return Ragged.of_counts(ids, labellings.bincount(minlength=valid.numel()))
