"""The voted perceptron for ranking candidates."""

import math
from typing import Literal, NamedTuple, get_args

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import embedding_bag

from structperc.criteria import PerceptronLoss
from structperc.errors import InputError
from structperc.ragged import Ragged, boundaries
from structperc.reranking.ranker import Examples, Ranker, ids_in_range

Predict = Literal["vote", "average", "last"]

WIDTH = 160  # candidates whose votes are counted at a time
CELLS = 2**23  # scores at a time, unless a single sequence has more


class VotedPerceptron(Ranker):
    """The perceptron for ranking of Collins 2002, §4.3 and Fig. 3, with all its weight vectors.

    For each example: if the candidate x of highest F (ties: higher log-probability) is wrong, Phi(correct) - Phi(x) is
    added to the weights, where Phi(x) = (L(x) / unit, features of x) and L is the log-probability under the first
    model. All weights start at zero, including w0. An epoch is one pass.

    Vectors are stored as the history of updates, in buffers named as in `UpdateHistory` and `Ragged`. The survival of a
    vector is the number of examples after which it was the current one, including that of its update (w_i in Fig. 3).

    The update of an example is multiplied by its weight, as in `optim.Perceptron`; examples of weight 0 are left out.
    Votes and averages count examples.

    `weights` and `first_weight` are those of the last vector if `predict` is "last", otherwise the averages.

    Args:
        predict: "vote", the exact vote of all vectors (Fig. 4); "average", their average over all examples so far;
            "last", the last vector.
        unit: Scale of the log-probability; 1 in the paper.
        seed: Seed of the shuffled orders.
        shuffle: Use a new order in each pass; otherwise that of the examples.

    Raises:
        InputError: `predict` is unknown, or `unit` is not positive.

    Example:
        >>> import torch
        >>> valid, first, correct = torch.ones(1, 2).bool(), torch.tensor([[-0.5, -1.0]]), torch.tensor([1])
        >>> pairs = torch.tensor([0, 1]), torch.tensor([0, 1])  # candidate 0 has feature 0, candidate 1 has feature 1
        >>> ranker = VotedPerceptron()
        >>> ranker.start(Examples.from_pairs(*pairs, first, valid, correct, n_features=2))
        >>> for _ in range(3):
        ...     ranker.epoch()
        >>> ranker.mistakes.tolist(), ranker.stop_reason  # mistakes in each pass
        ([1, 0, 0], 'converged: no mistake in a whole pass')
        >>> ranker.total_scores(*pairs, first, valid).tolist()  # votes
        [[0.0, 3.0]]
    """

    update_ids: Tensor
    update_signs: Tensor
    update_offsets: Tensor
    update_first: Tensor
    update_factors: Tensor  # (U,) float64; or without numbers if all weights were 1
    survival: Tensor
    mistakes: Tensor  # (E,) int64, number of mistakes in each pass so far
    supports_weights = True

    def __init__(self, predict: Predict = "vote", unit: float = 1.0, seed: int = 1, shuffle: bool = False) -> None:
        super().__init__()
        if predict not in get_args(Predict):
            raise InputError(f"VotedPerceptron: predict must be vote, average or last, got {predict!r}")
        if not unit > 0:
            raise InputError(f"VotedPerceptron: unit must be > 0, got {unit}")
        self.predict, self.unit, self.seed, self.shuffle = predict, unit, seed, shuffle
        self.linear = predict != "vote"
        self.register_buffer("update_ids", torch.zeros(0, dtype=torch.int32))
        self.register_buffer("update_signs", torch.zeros(0, dtype=torch.int8))
        self.register_buffer("update_offsets", torch.zeros(1, dtype=torch.int64))
        self.register_buffer("update_first", torch.zeros(0, dtype=torch.float64))
        self.register_buffer("update_factors", torch.zeros(0, dtype=torch.float64))
        self.register_buffer("survival", torch.zeros(1, dtype=torch.int64))
        self.register_buffer("mistakes", torch.zeros(0, dtype=torch.int64))
        self._votes: VoteCounter | None = None

    @property
    def updates(self) -> "UpdateHistory":
        """The history of all weight vectors so far."""
        features = Ragged(self.update_ids, self.update_offsets)
        factors = self.update_factors if len(self.update_factors) else torch.ones_like(self.update_first)
        return UpdateHistory(features, self.update_signs, factors, self.update_first, self.survival)

    def _start(self, examples: Examples) -> None:
        self._lists = ExampleLists(examples, self.unit)

    def epoch(self) -> None:
        """Make one pass over all examples with a correct candidate."""
        weights, w0 = self.updates.last(len(self.weights))
        order = self._lists.sequences
        if self.shuffle:
            order = np.random.default_rng([self.seed, len(self.mistakes)]).permutation(order)
        self._append(*self._lists.run_pass(order, weights.cpu().numpy(), float(w0)))
        final = self.updates.last if self.predict == "last" else self.updates.average
        weights, w0 = final(len(self.weights))
        self._set(weights=weights, first=w0 / self.unit)
        self._votes = None

    def _append(self, survival: list[int], made: list["Difference"]) -> None:
        """Append updates and the survival of the current vector and of the vectors after them."""
        counts = torch.tensor([len(update.ids) for update in made], dtype=torch.int64)
        ends = int(self.update_offsets[-1]) + boundaries(counts)[1:]
        ids, signs = (np.concatenate([np.zeros(0, np.int64), *(x[i] for x in made)]) for i in range(2))
        first, factors = ([getattr(update, name) for update in made] for name in ("first", "factor"))
        if len(self.update_factors) or any(factor != 1 for factor in factors):
            self._set(update_factors=self.updates.factors)
            self._extend(update_factors=factors)
        self._extend(update_ids=ids, update_signs=signs, update_offsets=ends, update_first=first, mistakes=[len(made)])
        survival[0] += int(self.survival[-1])
        self._set(survival=self.survival[:-1])
        self._extend(survival=survival)

    @property
    def criterion(self) -> PerceptronLoss:
        """The perceptron's criterion: a list requires an update if its best candidate is wrong."""
        return PerceptronLoss()

    @property
    def used_mask(self) -> Tensor:
        """Mask (F,) bool of the features in any update."""
        return torch.zeros_like(self.weights, dtype=torch.bool).index_fill_(0, self.update_ids.long(), True)

    def _check_history(self) -> None:
        self._votes = None
        ids, offsets = self.update_ids, self.update_offsets
        V = offsets.numel()
        sizes = {"update_ids": ids.numel(), "update_signs": ids.numel(), "update_offsets": V, "survival": V}
        factors = V - 1 if self.update_factors.numel() else 0
        sizes |= {"update_first": V - 1, "update_factors": factors}
        for name, size in {**sizes, "mistakes": self.mistakes.numel()}.items():
            if getattr(self, name).shape != (size,):
                raise InputError(f"VotedPerceptron: {name} must be a vector of {size} numbers")
        if offsets[0] != 0 or offsets[-1] != len(ids) or (offsets.diff() < 0).any():
            raise InputError("VotedPerceptron: update_offsets must ascend from 0 to the number of update_ids")
        if not ids_in_range(ids, len(self.weights)):
            raise InputError(f"VotedPerceptron: features of updates must be below {len(self.weights)}")

    def _renumber(self, new: Tensor) -> None:
        self.update_ids = new[self.update_ids.long()].to(self.update_ids.dtype)
        self._votes = None

    @property
    def objective(self) -> float:
        """The number of mistakes in the last pass; NaN before the first one."""
        return float(self.mistakes[-1]) if len(self.mistakes) else math.nan

    @property
    def stop_reason(self) -> str | None:
        """A message if the last pass made no mistake, else None."""
        return "converged: no mistake in a whole pass" if self.objective == 0 else None

    def total_scores(self, candidate_ids: Tensor, ids: Tensor, first: Tensor, valid: Tensor) -> Tensor:
        """Return the scores (B, K) float64 of candidates; with predict="vote" the numbers of votes."""
        if self.predict != "vote":
            return super().total_scores(candidate_ids, ids, first, valid)
        if self._votes is None or self._votes.survival.device != first.device:
            self._votes = VoteCounter(self.updates.to(first.device), len(self.weights))
        votes = self._votes.count(candidate_ids, ids, first.double() / self.unit, valid)
        return votes.where(valid, -torch.inf)


class Difference(NamedTuple):
    """An update: the difference of the feature vectors of two candidates, times the weight of the example."""

    ids: np.ndarray  # (n,) int32, features that only one of the two has
    signs: np.ndarray  # (n,) int64, 1 or -1
    factor: float  # of the signs
    first: float


class ExampleLists:
    """The examples as NumPy arrays for the inner loop: K candidates each, log-probabilities / unit."""

    def __init__(self, examples: Examples, unit: float) -> None:
        self.ids, self.offsets = (x.cpu().numpy() for x in (examples.features.ids, examples.features.offsets))
        self.valid = examples.valid.cpu().numpy()
        self.correct = examples.correct.cpu().numpy()
        self.weights = examples.weights.cpu().numpy()
        self.sequences = np.flatnonzero((self.correct >= 0) & (self.weights > 0))
        self.first = (examples.first / unit).where(examples.valid, 0).cpu().numpy()

    def run_pass(self, order: np.ndarray, weights: np.ndarray, w0: float) -> tuple[list[int], list[Difference]]:
        """Return the survival of the given vector and of each vector after it, and the updates of one pass.

        Changes `weights` (F,) float64 in place.
        """
        survival, made = [0], []
        for s, correct in zip(order.tolist(), self.correct[order].tolist(), strict=True):
            best = self.best(s, weights, w0)
            if best == correct:
                survival[-1] += 1
                continue
            update = self.difference(s, correct, best)
            weights[update.ids] += update.factor * update.signs
            w0 += update.first
            made.append(update)
            survival.append(1)
        return survival, made

    def best(self, s: int, weights: np.ndarray, w0: float) -> int:
        """Return the candidate of highest F; ties: highest log-probability, then the first."""
        boundaries = self._boundaries(s)
        running = np.zeros(boundaries[-1] - boundaries[0] + 1)
        np.cumsum(weights[self.ids[boundaries[0] : boundaries[-1]]], out=running[1:])  # exact for integers
        sums = np.diff(running[boundaries - boundaries[0]])
        scores = np.where(self.valid[s], w0 * self.first[s] + sums, -np.inf)
        tied = np.flatnonzero(scores == scores.max())
        return int(tied[self.first[s, tied].argmax()])

    def difference(self, s: int, a: int, b: int) -> Difference:
        """Return Phi(candidate a) - Phi(candidate b), times the weight of sequence s."""
        boundaries = self._boundaries(s)
        ours, other = (self.ids[boundaries[k] : boundaries[k + 1]] for k in (a, b))
        ids = np.setxor1d(ours, other, assume_unique=True)
        factor, first = float(self.weights[s]), float(self.first[s, a] - self.first[s, b])
        return Difference(ids, np.where(np.isin(ids, ours), 1, -1), factor, factor * first)

    def _boundaries(self, s: int) -> np.ndarray:
        K = self.valid.shape[1]
        return self.offsets[s * K : (s + 1) * K + 1]


class UpdateHistory(NamedTuple):
    """U updates, thus U + 1 weight vectors: zero, and the sum of the first u updates for u = 1, ..., U."""

    features: Ragged  # distinct features that each update changes: M ids int32; offsets int64
    signs: Tensor  # (M,) int8, 1 or -1
    factors: Tensor  # (U,) float64; the changes are signs times factors
    first: Tensor  # (U,) float64, the changes of w0
    survival: Tensor  # (U + 1,) int64, number of examples after which each vector was the current one

    @property
    def first_weights(self) -> Tensor:
        """The weight w0 of every vector, (U + 1,) float64, summed in the order of training, on the CPU."""
        return torch.cat([self.first.new_zeros(1), self.first.cpu().cumsum(0).to(self.first)])

    def to(self, device: torch.device) -> "UpdateHistory":
        """Return the same updates on another device."""
        ids, offsets = self.features.ids.to(device), self.features.offsets.to(device)
        return UpdateHistory(Ragged(ids, offsets), *(x.to(device) for x in self[1:]))

    def last(self, n_features: int) -> tuple[Tensor, Tensor]:
        """Return the weights (F,) float64 and w0 () float64 of the last vector."""
        return self._sum(self.factors, n_features), self.first_weights[-1]

    def average(self, n_features: int) -> tuple[Tensor, Tensor]:
        """Return the weights (F,) float64 and w0 () float64, averaged over the vectors after each example.

        An update counts for its own example and all later ones. The sums of integer weights are exact.
        """
        seen = self.survival.sum().clamp(min=1)
        since = (seen - self.survival.cumsum(0))[:-1].double()
        return self._sum(self.factors * since, n_features) / seen, self.first @ since / seen

    def _sum(self, factors: Tensor, n_features: int) -> Tensor:
        total = factors.new_zeros(n_features)
        return total.index_add_(0, self.features.ids, self.signs * factors[self.features.row_ids])


class VoteCounter:
    """The vote of Collins 2002, §4.3 and Fig. 4; after Freund & Schapire 1999: every vector votes for one candidate.

    The number of votes of a vector is its survival. An update adds to the score of a candidate a sum over their common
    features; the score under a vector is the sum over all updates before it. This is exact without dense vectors.

    Args:
        updates: Updates of the perceptron.
        n_features: Number of features, F.
    """

    def __init__(self, updates: UpdateHistory, n_features: int) -> None:
        self.n_features = n_features
        self.first_weights, self.survival = updates.first_weights, updates.survival.double()  # (V,)
        self._features, self._signs, self._factors = updates.features, updates.signs.float(), updates.factors

    def count(self, candidate_ids: Tensor, ids: Tensor, first: Tensor, valid: Tensor) -> Tensor:
        """Return the votes (B, K) float64 of candidates, 0 where not valid.

        The arguments are those of `Ranker.total_scores`. `first` is divided by the unit. Ties: a vector votes for the
        candidate with the highest `first`, then the first.
        """
        K = first.shape[1]
        order = first.double().where(valid, -torch.inf).argsort(dim=1, descending=True, stable=True)
        place = order.argsort(1)  # in descending order of `first`, the first of the best candidates wins
        moved = candidate_ids // K * K + place.flatten()[candidate_ids]
        nowhere = order.new_full((len(first),), -1)
        ranked = first.gather(1, order), valid.gather(1, order), nowhere
        lists = Examples.from_pairs(moved, ids, *ranked, self.n_features).drop_shared()
        size = max(1, min(WIDTH, CELLS // len(self.survival)) // K)
        parts = [self._votes(lists, start, min(start + size, len(first))) for start in range(0, len(first), size)]
        return torch.cat([lists.first.new_zeros(0, K), *parts]).gather(1, place).where(valid, 0)

    def _votes(self, lists: Examples, start: int, end: int) -> Tensor:
        """Count the votes (end - start, K) of the sequences start <= s < end."""
        first, valid = (x[start:end].unsqueeze(2) for x in (lists.first, lists.valid))
        scores = self._sums(lists, start, end)
        scores += first.where(valid, 0) * self.first_weights
        winner = scores.masked_fill_(~valid, -torch.inf).max(1).indices
        votes = torch.zeros_like(lists.first[start:end])
        return votes.scatter_add_(1, winner, self.survival.expand(winner.shape))

    def _sums(self, lists: Examples, start: int, end: int) -> Tensor:
        """Return the sums of the weights of each candidate's features, by vector: (end - start, K, V) float64."""
        K = lists.valid.shape[1]
        features = lists.features.slice(start * K, end * K)
        known, row = features.ids.unique(return_inverse=True)
        has = lists.first.new_zeros((len(known) + 1, (end - start) * K), dtype=torch.float32)
        has[row + 1, features.row_ids] = 1
        rows = self._features.ids.new_zeros(self.n_features)  # row in `has`; 0 for features without candidates
        rows[known] = torch.arange(1, len(known) + 1, dtype=rows.dtype, device=rows.device)
        added = embedding_bag(
            rows[self._features.ids],
            has,
            self._features.offsets.int(),
            mode="sum",
            per_sample_weights=self._signs,
            include_last_offset=True,
        )  # (U, candidates), small integers
        sums = lists.first.new_zeros(has.shape[1], len(added) + 1)
        sums[:, 1:] = added.t()
        sums[:, 1:] *= self._factors
        return sums.cumsum_(1).view(end - start, K, -1)
