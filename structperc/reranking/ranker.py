"""The contract of ranking algorithms: learn from lists of candidates, then score those of new lists."""

from abc import ABC, abstractmethod
from typing import Any

import torch
from torch import Tensor, nn

from structperc.criteria import Criterion
from structperc.errors import InputError
from structperc.reranking.examples import Examples, distinct


class Ranker(nn.Module, ABC):
    """Base: start(examples) once, then epoch() as often as wanted, then total_scores(...) of other lists.

    What is learned is kept in persistent buffers, which take the sizes of a loaded state. They change at the end
    of an epoch only. After a state was loaded, start(examples) with the same examples goes on where that ended, to
    the same bits as if it had never stopped.

    The score is linear, F(x) = w0 L(x) + sum of the weights of the features of x (Collins 2002, §4.1), unless a
    subclass says otherwise. A subclass gives `_start`, `criterion`, `epoch`, `objective` and `finished`, and sets the
    buffers `weights` and `first`. It keeps its options under their own names, from which a saved model is built again.
    """

    linear = True  # whether `total_scores` are sums of weights
    weights: Tensor  # (F,) float64, of the features; empty before the first start
    first: Tensor  # () float64, w0

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("weights", torch.zeros(0, dtype=torch.float64))
        self.register_buffer("first", torch.zeros((), dtype=torch.float64))

    def start(self, examples: Examples) -> None:
        """Take the examples: call this before the first epoch, and again after a state was loaded.

        Raises InputError for examples from which nothing can be learned, or that have other features than before.
        """
        _check(examples)
        if not len(self.weights):
            self._keep(weights=torch.zeros(examples.n_features))
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
        """The criterion that says what is compared in a list, and when that asks for a change."""

    @abstractmethod
    def epoch(self) -> None:
        """Do one epoch of work on the examples."""

    @property
    def first_weight(self) -> float:
        """The weight w0 of the first model's log-probability."""
        return float(self.first)

    @property
    @abstractmethod
    def objective(self) -> float:
        """The value that learning makes small, after the last epoch; NaN where nothing is known yet."""

    @property
    @abstractmethod
    def finished(self) -> str | None:
        """The reason for which further epochs would gain nothing, in plain words.

        None while they may gain something.
        """

    def total_scores(self, labellings: Tensor, ids: Tensor, first: Tensor, valid: Tensor) -> Tensor:
        """Return the scores (B, K) float64 of the candidates of new lists; -inf where not valid.

        labellings (N,) and ids (N,): pairs of labelling b K + k and feature 0 <= id < F, in any order; a pair
        counts once however often it is given. first (B, K): the first model's log-probabilities. valid (B, K) bool.
        Of equal scores, that with the higher log-probability is meant to win. Raises InputError for other features.
        """
        labellings, ids = distinct(labellings, ids, len(self.weights))
        first, weights = first.double().where(valid, 0), self.weights.to(first.device)
        sums = first.new_zeros(first.numel()).index_add_(0, labellings, weights[ids])
        return (self.first_weight * first + sums.view_as(first)).where(valid, -torch.inf)

    @property
    def used(self) -> Tensor:
        """Mask (F,) bool of the features that at least one of the learned weight vectors has."""
        return self.weights != 0

    def prune(self, keep: Tensor) -> None:
        """Forget features that are not used, where keep (F,) bool is False; the others are numbered anew.

        Learning cannot go on with the same examples. Raises ValueError for a feature that is used.
        """
        if (self.used & ~keep).any():
            raise ValueError("prune: keep all features that are used")
        self._renumber(keep.cumsum(0) - 1)
        self.weights = self.weights[keep]

    def _renumber(self, new: Tensor) -> None:
        """Write new (F,) numbers for features wherever buffers have some."""

    def _keep(self, **values: Any) -> None:
        """Put numbers, of any kind, into buffers; dtype and device stay."""
        for name, value in values.items():
            old = getattr(self, name)
            setattr(self, name, torch.as_tensor(value, dtype=old.dtype, device=old.device))

    def _extend(self, **values: Any) -> None:
        """Append numbers, of any kind, to buffers."""
        for name, value in values.items():
            old = getattr(self, name)
            setattr(self, name, torch.cat([old, torch.as_tensor(value, dtype=old.dtype, device=old.device)]))

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        for name, buffer in self.named_buffers(recurse=False):
            if (saved := state_dict.get(prefix + name)) is not None:
                setattr(self, name, buffer.new_empty(saved.shape))
        super()._load_from_state_dict(state_dict, prefix, *rest)
        if self.weights.ndim != 1 or self.first.ndim != 0:
            raise InputError(f"{type(self).__name__}: `weights` must be a vector and `first` a number")
        self._check_history()

    def _check_history(self) -> None:
        """Raise InputError unless what a loaded state says about its learning fits together; here it says nothing."""


def within(ids: Tensor, n_features: int) -> bool:
    """Return whether all ids (n,) are numbers of features, 0 <= id < F."""
    return not len(ids) or (int(ids.min()) >= 0 and int(ids.max()) < n_features)


def _check(examples: Examples) -> None:
    """Raise InputError unless some correct candidate can be told from others."""
    several = examples.valid.sum(1) > 1
    if not several.any():
        raise InputError("lists hold one candidate each: set search.k >= 2")
    compared = several & (examples.correct >= 0)
    if not compared.any():
        raise InputError(
            "no candidate list has a correct candidate and others beside it: set a larger search.k, or correct: closest"
        )
    if all(_alike(examples, s) for s in compared.nonzero()[:, 0].tolist()):
        raise InputError("candidates of a list never differ, in features or log-probability: add other features")


def _alike(examples: Examples, s: int) -> bool:
    """Whether all valid candidates of a sequence have the same features and log-probability."""
    valid = examples.valid[s]
    features = [examples.features_of(s, k) for k in valid.nonzero()[:, 0].tolist()]
    return len(examples.first[s, valid].unique()) == 1 and all(torch.equal(features[0], other) for other in features)
