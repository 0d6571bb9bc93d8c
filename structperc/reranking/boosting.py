"""Boosting for ranking: greedy coordinate descent on the exponential loss."""

import math
from typing import NamedTuple

import numpy as np
import torch
from scipy.optimize import brentq
from scipy.sparse import csr_array
from scipy.special import logsumexp
from torch import Tensor

from structperc.criteria import ExponentialLoss
from structperc.errors import InputError
from structperc.reranking.ranker import Examples, Ranker, ids_in_range

ROUNDING = 1e-12  # relative differences below this are rounding errors
FALL = 1e-3  # relative loss at which rounding errors of its former size would matter


class Boosting(Ranker):
    """The boosting algorithm for ranking of Collins 2002, §4.2 and Fig. 2.

    After Collins 2000 and Freund et al. 1998. Let F(x) be the score of a candidate, w0 L(x) + the sum of the weights of
    its features, with L(x) the log-probability of the first model, and M_ij = F(x_i,correct) - F(x_ij) the margin of
    candidate j of list i. Boosting minimises

        ExpLoss = sum_i sum_{j != correct} exp(-M_ij),

    an upper bound of the number of wrong candidates that score above a correct one. The terms of a list are multiplied
    by its weight, so that a list of weight 2 counts like two such lists. W+_k and W-_k sum exp(-M_ij) over
    the pairs in which only the correct and only the other candidate has feature k. An exact step along w_k would lower
    the loss by (sqrt(W+_k) - sqrt(W-_k))^2. Each round takes the feature for which this is largest (the lowest id of
    those that are equal up to rounding) and adds

        delta = 1/2 log((W+_k + eps Z) / (W-_k + eps Z))

    to its weight, where Z is the loss. The smoothing eps keeps steps finite and makes no step longer than the exact
    one, so that the loss never increases.

    The time of a round grows with the number of features in the pairs that contain the chosen feature, plus one pass
    over F numbers. Margins and sums are recomputed at the start of each epoch, and whenever the loss has fallen to a
    thousandth.

    Args:
        rounds: Number of rounds in an epoch.
        smoothing: The eps of Collins 2000.
        w0: Fixed weight of the log-probability. Default: the value >= 0 that minimises the loss while all other weights
            are zero.

    Attributes:
        chosen: (R,) int64, the feature of each of the R rounds so far.
        steps: (R,) float64, the change of its weight.
        losses: (R,) float64, the loss after the round.
        touched: (R,) int64, the number of pairs of candidates that differ in the feature.

    Raises:
        InputError: `rounds` is below 1, `smoothing` or `w0` is not finite, or `smoothing` is not positive. `start`
            raises it if the loss has no minimum in w0, or is not finite at w0.

    Example:
        >>> import torch
        >>> valid, first, correct = torch.ones(1, 2).bool(), torch.tensor([[-0.5, -1.0]]), torch.tensor([1])
        >>> pairs = torch.tensor([0, 1]), torch.tensor([0, 1])  # candidate 0 has feature 0, candidate 1 has feature 1
        >>> ranker = Boosting(rounds=3, w0=1.0)
        >>> ranker.start(Examples.from_pairs(*pairs, first, valid, correct, n_features=2))
        >>> ranker.epoch()
        >>> ranker.chosen.tolist(), bool(ranker.losses[-1] < ranker.losses[0])
        ([0, 0, 0], True)
        >>> ranker.total_scores(*pairs, first, valid).argmax(1).tolist()  # now the correct candidate is best
        [1]
    """

    chosen: Tensor
    steps: Tensor
    losses: Tensor
    touched: Tensor
    exhausted: Tensor  # () bool, True if no feature lowers the loss
    supports_weights = True

    def __init__(self, rounds: int = 100, smoothing: float = 0.0025, w0: float | None = None) -> None:
        super().__init__()
        if rounds < 1:
            raise InputError(f"Boosting: rounds must be >= 1, got {rounds}")
        if not 0 < smoothing < math.inf:
            raise InputError(f"Boosting: smoothing must be > 0 and finite, got {smoothing}")
        if w0 is not None and not math.isfinite(w0):
            raise InputError(f"Boosting: w0 must be finite, got {w0}")
        self.rounds, self.smoothing, self.w0 = rounds, smoothing, w0
        for name, dtype in _HISTORY.items():
            self.register_buffer(name, torch.zeros(0, dtype=dtype))
        self.register_buffer("exhausted", torch.tensor(False))
        self._initial_loss = math.nan

    def _start(self, examples: Examples) -> None:
        self.pairs = Pairs.from_examples(examples)
        if not len(self.losses):
            self._set(first=best_w0(self.pairs.first, self.pairs.weights) if self.w0 is None else self.w0)
            self._initial_loss = self._loss().total

    def epoch(self) -> None:
        """Run `rounds` rounds, or fewer if no feature lowers the loss."""
        loss = self._loss()
        rounds: list[tuple[float, ...]] = []
        while len(rounds) < self.rounds and (k := loss.best()) is not None:
            rounds.append((k, *loss.step(k, self.smoothing)))
        self._extend(**{name: [values[i] for values in rounds] for i, name in enumerate(_HISTORY)})
        self._set(weights=loss.weights, exhausted=len(rounds) < self.rounds)

    def _loss(self) -> "ExpLoss":
        loss = ExpLoss(self.pairs, self.first_weight, self.weights.cpu().numpy().copy())
        if not math.isfinite(loss.total):
            raise InputError(f"Boosting: the loss is not finite at w0 = {self.first_weight:g}; set a smaller w0")
        return loss

    @property
    def criterion(self) -> ExponentialLoss:
        """The loss of a list, ExpLoss, as a criterion."""
        return ExponentialLoss()

    @property
    def used_mask(self) -> Tensor:
        """Mask (F,) bool of the features that were chosen in any round."""
        return torch.zeros_like(self.weights, dtype=torch.bool).index_fill_(0, self.chosen, True)

    def _check_history(self) -> None:
        rounds = self.chosen.shape
        if len(rounds) != 1 or any(getattr(self, name).shape != rounds for name in _HISTORY):
            raise InputError("Boosting: the buffers of its rounds have different lengths")
        if not ids_in_range(self.chosen, len(self.weights)):
            raise InputError(f"Boosting: chosen features must be below {len(self.weights)}")

    def _renumber(self, new: Tensor) -> None:
        self.chosen = new[self.chosen]

    @property
    def objective(self) -> float:
        """The current ExpLoss; after `start`, that of the log-probability alone."""
        return float(self.losses[-1]) if len(self.losses) else self._initial_loss

    @property
    def stop_reason(self) -> str | None:
        """A message if no feature lowers the loss, else None."""
        return "converged: no feature lowers the loss" if self.exhausted else None


_HISTORY = {"chosen": torch.int64, "steps": torch.float64, "losses": torch.float64, "touched": torch.int64}


class Pairs(NamedTuple):
    """P pairs of a correct candidate and another one of its list, as the features in which they differ.

    Column k stands for feature k of the correct candidate, column F + k for feature k of the other one. The rows of
    `by_feature` and of `by_pair` are the arrays A and B of Collins 2002, Fig. 2.
    """

    first: np.ndarray  # (P,) float64, log-probability of the correct candidate less that of the other one
    by_pair: csr_array  # (P, 2 F) bool
    by_feature: csr_array  # (2 F, P) bool
    weights: np.ndarray  # (P,) float64, weight of the list

    @classmethod
    def from_examples(cls, examples: Examples) -> "Pairs":
        """Return the pairs of all sequences that have a correct candidate and a weight above 0."""
        (S, K), F = examples.valid.shape, examples.n_features
        valid, right = examples.valid.cpu().numpy(), examples.correct.cpu().numpy()
        weights = examples.weights.cpu().numpy()
        used = (right >= 0) & (weights > 0)
        others = np.flatnonzero(valid & used[:, None] & (np.arange(K) != right[:, None]))
        correct = others // K * K + right[others // K]
        ids, offsets = examples.features.ids.cpu().numpy(), examples.features.offsets.cpu().numpy()
        has = csr_array((np.ones(len(ids), np.int8), ids, offsets.astype(_index(len(ids)))), shape=(S * K, F))
        less = has[correct] - has[others]
        sides = less.indices + (F * (less.data < 0)).astype(_index(2 * F))
        by_pair = csr_array((np.ones(less.nnz, bool), sides, less.indptr), shape=(len(others), 2 * F))
        first = examples.first.cpu().numpy().ravel()
        return cls(first[correct] - first[others], by_pair, by_pair.T.tocsr(), weights[others // K])


def _index(size: int) -> type:
    """Return the smallest integer type for this size."""
    return np.int32 if size <= np.iinfo(np.int32).max else np.int64


class ExpLoss:
    """The loss, the share of each pair in it, and the possible gain by each feature, updated incrementally.

    Args:
        pairs: P pairs.
        w0: weight of the log-probability.
        weights: (F,) float64; `step` changes it in place.
    """

    def __init__(self, pairs: Pairs, w0: float, weights: np.ndarray) -> None:
        self.pairs, self.w0, self.weights = pairs, w0, weights
        self.gains = np.zeros_like(weights)
        self._compute()

    def _compute(self) -> None:
        """Compute the loss, the shares and the gains from the weights."""
        margins = self.w0 * self.pairs.first + self.pairs.by_pair @ np.concatenate([self.weights, -self.weights])
        with np.errstate(over="ignore"):
            self.shares = self.pairs.weights * np.exp(-margins)  # (P,)
        self.total = self._exact = float(self.shares.sum())
        self.sums = self.pairs.by_feature @ self.shares  # (2 F,), W+ and W-
        self._update_gains(slice(len(self.weights)))

    def best(self) -> int | None:
        """Return the feature with the largest gain; None if all gains are rounding errors."""
        most = self.gains.max(initial=0)
        if most**2 <= ROUNDING * self.total + np.finfo(float).tiny:
            return None
        return int((self.gains >= (1 - ROUNDING) * most).argmax())

    def step(self, k: int, smoothing: float) -> tuple[float, float, int]:
        """Change the weight of feature k; return the change, the loss after it, and the number of pairs that have k."""
        F, Z = len(self.weights), self.total
        delta = 0.5 * math.log((self.sums[k] + smoothing * Z) / (self.sums[F + k] + smoothing * Z))
        self.weights[k] += delta
        plus, minus = self._rows(k), self._rows(F + k)
        change = [self.shares[plus] * math.expm1(-delta), self.shares[minus] * math.expm1(delta)]
        self._change(np.concatenate([plus, minus]), np.concatenate(change))
        if self.total < FALL * self._exact:
            self._compute()
        return delta, self.total, len(plus) + len(minus)

    def _rows(self, column: int) -> np.ndarray:
        start, end = self.pairs.by_feature.indptr[column : column + 2]
        return self.pairs.by_feature.indices[start:end]

    def _change(self, rows: np.ndarray, change: np.ndarray) -> None:
        """Add changes (R,) to the shares of different pairs (R,)."""
        F = len(self.weights)
        self.shares[rows] += change
        self.total += float(change.sum())
        part = self.pairs.by_pair[rows]
        np.add.at(self.sums, part.indices, np.repeat(change, np.diff(part.indptr)))
        self._update_gains(part.indices % F if len(part.indices) < F // 8 else slice(F))

    def _update_gains(self, features: np.ndarray | slice) -> None:
        """Compute the gains of features, with duplicates; a slice of all is faster than many ids."""
        F = len(self.weights)
        plus, minus = self.sums[:F][features], self.sums[F:][features]
        self.gains[features] = np.abs(np.sqrt(plus.clip(0)) - np.sqrt(minus.clip(0)))  # rounding may go below 0


def best_w0(differences: np.ndarray, weights: np.ndarray) -> float:
    """Return the weight w >= 0 of the log-probability that minimises sum_p c_p exp(-w d_p).

    It is the root of the slope of this sum, which increases with w.

    Args:
        differences: d (P,), by how much the log-probability of the correct candidate is higher in each pair.
        weights: c (P,), above 0.

    Raises:
        InputError: No d is below 0, so that the sum has no minimum.
    """
    up, down = differences > 0, differences < 0
    better, worse, for_better, for_worse = differences[up], -differences[down], weights[up], weights[down]
    if for_better @ better <= for_worse @ worse:
        return 0.0
    if not len(worse):
        raise InputError(
            "Boosting: the first model ranks every correct candidate first, so there is no optimal w0; set w0"
        )

    def slope(w: float) -> float:  # its sign, from logarithms: exponentials overflow
        return float(logsumexp(w * worse, b=for_worse * worse) - logsumexp(-w * better, b=for_better * better))

    end = 1 / better.mean()
    while slope(end) < 0:
        end *= 2
    return float(brentq(slope, 0, end, xtol=ROUNDING * end))
