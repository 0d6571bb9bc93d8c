"""Base class of ranking algorithms, and their training examples: candidate lists with sparse binary features."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from structperc.criteria import Criterion
from structperc.errors import InputError
from structperc.ragged import Ragged


class Examples(NamedTuple):
    """The training examples of a ranker: S sequences with K candidates each, and their binary features.

    Candidate k of sequence s has the id i = s K + k. Sequences without a correct candidate are ignored.

    Args:
        features: List of features for each candidate: ascending distinct ids, int32; offsets (S * K + 1,) int64.
        first: (S, K) float64, log-probability under the first model, finite where valid.
        valid: (S, K) bool, False for padding.
        correct: (S,) int64, index of the correct candidate; -1 if there is none.
        n_features: Number of features, F.
        weights: (S,) float64, weights of the sequences.
    """

    features: Ragged
    first: Tensor
    valid: Tensor
    correct: Tensor
    n_features: int
    weights: Tensor

    @classmethod
    def from_pairs(
        cls,
        candidate_ids: Tensor,
        ids: Tensor,
        first: Tensor,
        valid: Tensor,
        correct: Tensor,
        n_features: int,
        weights: Tensor | None = None,
    ) -> "Examples":
        """Return examples from pairs of a candidate and a feature, in any order; duplicates count once.

        Args:
            candidate_ids: (N,) int64, the candidate s K + k of each pair.
            ids: (N,) int64, the feature of each pair.
            first: (S, K), log-probabilities under the first model.
            valid: (S, K) bool, False for padding.
            correct: (S,) int64, index of the correct candidate; -1 if there is none.
            n_features: Number of features, F.
            weights: (S,), weights of the sequences; default: 1 each.

        Raises:
            InputError: A feature id is out of range, a score is not finite, or a correct candidate is not valid.
        """
        if not first[valid].isfinite().all():
            raise InputError("the first model's scores of candidates must be finite")
        listed = correct >= 0
        if not valid[listed, correct[listed]].all():
            raise InputError("a correct candidate is invalid")
        candidate_ids, ids = unique_pairs(candidate_ids, ids, n_features)
        features = _group_by_candidate(candidate_ids, ids.int(), valid)
        weights = torch.ones_like(correct) if weights is None else weights
        return cls(features, first.double(), valid, correct, n_features, weights.double())

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
            torch.cat([part.weights for part in parts]),
        )

    def take(self, rows: Tensor) -> "Examples":
        """Return the sequences `rows` (R,), in that order."""
        K = self.valid.shape[1]
        candidate_ids = (rows.unsqueeze(1) * K + torch.arange(K, device=rows.device)).flatten()
        features = self.features.select(candidate_ids)
        first, valid, correct, weights = (x[rows] for x in (self.first, self.valid, self.correct, self.weights))
        return Examples(features, first, valid, correct, self.n_features, weights)

    def drop_shared(self) -> "Examples":
        """Return the examples without features that all valid candidates of a sequence share: these cancel out.

        Features of invalid candidates are removed, too.
        """
        K = self.valid.shape[1]
        owner = self.features.row_ids
        live = self.valid.flatten()[owner]
        owner, ids = owner[live], self.features.ids[live]
        sequence = owner // K
        _, which, counts = (sequence * self.n_features + ids).unique(return_inverse=True, return_counts=True)
        kept = counts[which] < self.valid.sum(1)[sequence]
        return self._replace(features=_group_by_candidate(owner[kept], ids[kept], self.valid))

    def features_of(self, s: int, k: int) -> Tensor:
        """Return the features of candidate k of sequence s, int32."""
        i = s * self.valid.shape[1] + k
        return self.features.slice(i, i + 1).ids


def unique_pairs(candidate_ids: Tensor, ids: Tensor, n_features: int) -> tuple[Tensor, Tensor]:
    """Return the distinct pairs of (N,), (N,): int64, ascending, (M,), (M,).

    Raises InputError for features outside of 0 <= id < F.
    """
    if len(ids) and not 0 <= int(ids.min()) <= int(ids.max()) < n_features:
        raise InputError(f"feature ids must be in 0..{n_features - 1}, got {int(ids.min())}..{int(ids.max())}")
    pairs = (candidate_ids.long() * n_features + ids).unique()
    return pairs // max(1, n_features), pairs % max(1, n_features)


def _group_by_candidate(candidate_ids: Tensor, ids: Tensor, valid: Tensor) -> Ragged:
    """Return the features of all S K candidates, from ascending candidate ids (M,) and their features (M,)."""
    return Ragged.from_counts(ids, candidate_ids.bincount(minlength=valid.numel()))


class Ranker(nn.Module, ABC):
    """Base class of algorithms that learn to rank candidates, trained without gradients.

    Call `start(examples)` once, `epoch()` repeatedly, then `total_scores(...)` for new lists.

    The learned state is stored in persistent buffers, which take the sizes of a loaded state and change only at the end
    of an epoch. After loading a state, `start` with the same examples resumes training bit for bit.

    By default the score is linear, F(x) = w0 L(x) + sum of the weights of the features of x (Collins 2002, §4.1), where
    L is the log-probability under the first model. A subclass defines `_start`, `criterion`, `epoch`, `objective` and
    `stop_reason`, and sets the buffers `weights` and `first`. Its options are attributes of the same names, from which
    a saved model is built again.

    Example:
        >>> import torch
        >>> from structperc.criteria import PerceptronLoss
        >>> class FirstModelOnly(Ranker):
        ...     '''Ranks candidates by the first model: no training.'''
        ...     criterion, objective, stop_reason = PerceptronLoss(), 0.0, "nothing to learn"
        ...     def _start(self, examples):
        ...         self._set(first=1.0)
        ...     def epoch(self): ...
        >>> first, valid = torch.tensor([[-0.5, -1.0]]), torch.ones(1, 2).bool()
        >>> none = torch.zeros(0, dtype=torch.int64)
        >>> ranker = FirstModelOnly()
        >>> ranker.start(Examples.from_pairs(none, none, first, valid, torch.tensor([1]), n_features=0))
        >>> ranker.total_scores(none, none, first, valid).tolist()
        [[-0.5, -1.0]]
    """

    linear = True  # True if `total_scores` are sums of weights
    supports_weights = False  # True if it learns from `Examples.weights`
    any_size = True  # load_state_dict accepts any size
    weights: Tensor  # (F,) float64, weights of the features; empty before the first start
    first: Tensor  # () float64, w0

    def __init__(self) -> None:
        super().__init__()
        self.register_load_state_dict_pre_hook(_resize)
        self.register_load_state_dict_post_hook(_check_loaded)
        self.register_buffer("weights", torch.zeros(0, dtype=torch.float64))
        self.register_buffer("first", torch.zeros((), dtype=torch.float64))

    def start(self, examples: Examples) -> None:
        """Set the examples, before the first epoch and again after a state was loaded.

        Raises:
            InputError: The examples are unsuitable, or have other features than before.
        """
        _check(examples)
        if not len(self.weights):
            self._set(weights=torch.zeros(examples.n_features))
        if len(self.weights) != examples.n_features:
            n, name = len(self.weights), type(self).__name__
            raise InputError(f"{name} has learned {n} weights, the examples have {examples.n_features} features")
        self._start(examples)

    @abstractmethod
    def _start(self, examples: Examples) -> None:
        raise NotImplementedError

    @property
    @abstractmethod
    def criterion(self) -> Criterion:
        """The criterion that the ranker minimises on a list."""

    @abstractmethod
    def epoch(self) -> None:
        """Train for one epoch."""

    @property
    def first_weight(self) -> float:
        """The weight w0 of the first model's log-probability."""
        return float(self.first)

    @property
    @abstractmethod
    def objective(self) -> float:
        """The training objective after the last epoch; NaN before the first one."""

    @property
    @abstractmethod
    def stop_reason(self) -> str | None:
        """The reason to stop training, as further epochs change nothing, or None."""

    def total_scores(self, candidate_ids: Tensor, ids: Tensor, first: Tensor, valid: Tensor) -> Tensor:
        """Return the scores (B, K) float64 of the candidates of new lists; -inf where not valid.

        Callers break ties by the higher log-probability.

        Args:
            candidate_ids: (N,) int64, the candidate b K + k of each pair of candidate and feature, in any order;
                duplicates count once.
            ids: (N,) int64, the feature of each pair.
            first: (B, K), log-probabilities under the first model.
            valid: (B, K) bool, False for padding.

        Raises:
            InputError: A feature id is out of range.
        """
        candidate_ids, ids = unique_pairs(candidate_ids, ids, len(self.weights))
        first, weights = first.double().where(valid, 0), self.weights.to(first.device)
        sums = first.new_zeros(first.numel()).index_add_(0, candidate_ids, weights[ids])
        return (self.first_weight * first + sums.view_as(first)).where(valid, -torch.inf)

    @property
    def used_mask(self) -> Tensor:
        """Mask (F,) bool of the features with a weight in at least one of the learned weight vectors."""
        return self.weights != 0

    def prune(self, keep: Tensor) -> None:
        """Remove unused features, and renumber the others. Training cannot be resumed afterwards.

        Args:
            keep: (F,) bool, False for the features to remove.

        Raises:
            ValueError: A feature to remove is used.
        """
        if (self.used_mask & ~keep).any():
            raise ValueError("prune: keep all features that are used")
        self._renumber(keep.cumsum(0) - 1)
        self.weights = self.weights[keep]

    def _renumber(self, new: Tensor) -> None:
        """Replace feature ids in buffers by their new (F,) ids."""

    def _set(self, **values: Any) -> None:
        """Set buffers, keeping their dtype and device."""
        for name, value in values.items():
            old = getattr(self, name)
            setattr(self, name, torch.as_tensor(value, dtype=old.dtype, device=old.device))

    def _extend(self, **values: Any) -> None:
        """Append to buffers, keeping their dtype and device."""
        for name, value in values.items():
            old = getattr(self, name)
            setattr(self, name, torch.cat([old, torch.as_tensor(value, dtype=old.dtype, device=old.device)]))

    def _check_history(self) -> None:
        """Raise InputError if the training history of a loaded state is inconsistent."""


def _resize(ranker: Ranker, state: dict[str, Any], prefix: str, *_: Any) -> None:
    """Give buffers the sizes of saved ones."""
    for name, buffer in ranker.named_buffers(recurse=False):
        if (saved := state.get(prefix + name)) is not None:
            setattr(ranker, name, buffer.new_empty(saved.shape))


def _check_loaded(ranker: Ranker, _: Any) -> None:
    """Raise InputError for a loaded state that is invalid for the ranker."""
    if ranker.weights.ndim != 1 or ranker.first.ndim != 0:
        raise InputError(f"{type(ranker).__name__}: `weights` must be a vector and `first` a number")
    ranker._check_history()


def ids_in_range(ids: Tensor, n_features: int) -> bool:
    """Return True if all ids (n,) are valid: 0 <= id < F."""
    return not len(ids) or (int(ids.min()) >= 0 and int(ids.max()) < n_features)


def _check(examples: Examples) -> None:
    """Raise InputError unless some correct candidate differs from others of its list."""
    several = examples.valid.sum(1) > 1
    if not several.any():
        raise InputError("every list has only one candidate: set search.k >= 2")
    compared = several & (examples.correct >= 0)
    if not compared.any():
        raise InputError(
            "no candidate list has a correct and a wrong candidate: set a larger search.k, or correct: closest"
        )

    def identical(s: int) -> bool:
        """Return True if all valid candidates of a sequence have the same features and log-probability."""
        valid = examples.valid[s]
        features = [examples.features_of(s, k) for k in valid.nonzero()[:, 0].tolist()]
        return len(examples.first[s, valid].unique()) == 1 and all(torch.equal(features[0], one) for one in features)

    if all(map(identical, compared.nonzero()[:, 0].tolist())):
        raise InputError("the candidates of each list have equal features and log-probabilities: add other features")
