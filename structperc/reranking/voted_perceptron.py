"""The voted perceptron for ranking candidates."""

import math
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import torch
from torch import Tensor

from structperc.criteria import PerceptronLoss
from structperc.errors import InputError
from structperc.ragged import Ragged, boundaries
from structperc.reranking.examples import Examples
from structperc.reranking.ranker import Ranker, within
from structperc.reranking.votes import ListUpdates, Votes

Predict = Literal["vote", "average", "last"]


class VotedPerceptron(Ranker):
    """The perceptron of Collins 2002, §4.3 and Fig. 3, which keeps all its weight vectors.

    For one example after the other: if the candidate of highest F (of equal ones, that of higher log-probability) is
    not the correct one, the vector Phi(correct) - Phi(that one) is added to the weights, Phi(x) = (L(x) / unit,
    features of x). All weights start at zero, w0 too. An epoch is one pass.

    Vectors are kept as the list of updates, in buffers of the names in `ListUpdates` and `Ragged`; what a vector
    survived are the examples after which it was the present one, that of the update included (w_i in Fig. 3).

    `weights` and `first_weight` are those of "last", otherwise those of "average", also with the vote.

    Args:
        predict: "vote", the exact vote of all vectors (Fig. 4); "average", their average over all examples seen;
            "last", the present vector.
        unit: what counts as one, in units of the log-probability; the paper: 1.
        seed: of the orders.
        shuffle: whether each pass has an order of its own; otherwise all have that of the examples.

    Raises:
        InputError: predict is none of these; unit is not positive.
    """

    update_ids: Tensor
    update_signs: Tensor
    update_offsets: Tensor
    update_first: Tensor
    survival: Tensor
    mistakes: Tensor  # (E,) int64, of each pass so far

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
        self.register_buffer("survival", torch.zeros(1, dtype=torch.int64))
        self.register_buffer("mistakes", torch.zeros(0, dtype=torch.int64))
        self._votes: Votes | None = None

    @property
    def updates(self) -> ListUpdates:
        """All weight vectors so far, as the list of updates between them."""
        features = Ragged(self.update_ids, self.update_offsets)
        return ListUpdates(features, self.update_signs, self.update_first, self.survival)

    def _start(self, examples: Examples) -> None:
        self._lists = ExampleLists(examples, self.unit)

    def epoch(self) -> None:
        """Make one pass over all examples with a correct candidate."""
        weights, w0 = self.updates.last(len(self.weights))
        self._append(*self._lists.run_pass(self._order(), weights.cpu().numpy(), float(w0)))
        served = self.updates.last if self.predict == "last" else self.updates.average
        weights, w0 = served(len(self.weights))
        self._keep(weights=weights, first=w0 / self.unit)
        self._votes = None

    def _order(self) -> np.ndarray:
        order = self._lists.sequences
        return np.random.default_rng([self.seed, len(self.mistakes)]).permutation(order) if self.shuffle else order

    def _append(self, survival: list[int], made: list["Difference"]) -> None:
        """Survival of the present vector and of those that came after it, and the updates that made these."""
        counts = torch.tensor([len(update.ids) for update in made], dtype=torch.int64)
        ends = int(self.update_offsets[-1]) + boundaries(counts)[1:]
        ids, signs = (np.concatenate([np.zeros(0, np.int64), *(x[i] for x in made)]) for i in range(2))
        first = [update.first for update in made]
        self._extend(update_ids=ids, update_signs=signs, update_offsets=ends, update_first=first, mistakes=[len(made)])
        survival[0] += int(self.survival[-1])
        self._keep(survival=self.survival[:-1])
        self._extend(survival=survival)

    @property
    def criterion(self) -> PerceptronLoss:
        """The perceptron's criterion: a list asks for an update when its best candidate is wrong."""
        return PerceptronLoss()

    @property
    def used(self) -> Tensor:
        """Mask (F,) bool of the features that some update has."""
        return torch.zeros_like(self.weights, dtype=torch.bool).index_fill_(0, self.update_ids.long(), True)

    def _check_history(self) -> None:
        ids, offsets = self.update_ids, self.update_offsets
        V = offsets.numel()
        sizes = {"update_ids": ids.numel(), "update_signs": ids.numel(), "update_offsets": V, "survival": V}
        for name, size in {**sizes, "update_first": V - 1, "mistakes": self.mistakes.numel()}.items():
            if getattr(self, name).shape != (size,):
                raise InputError(f"VotedPerceptron: {name} is no vector of {size} numbers")
        if offsets[0] != 0 or offsets[-1] != len(ids) or (offsets.diff() < 0).any():
            raise InputError("VotedPerceptron: its updates do not follow each other")
        if not within(ids, len(self.weights)):
            raise InputError(f"VotedPerceptron: features of its updates are not all below {len(self.weights)}")

    def _renumber(self, new: Tensor) -> None:
        self.update_ids = new[self.update_ids.long()].to(self.update_ids.dtype)
        self._votes = None

    @property
    def objective(self) -> float:
        """The number of mistakes in the last pass; NaN before the first one."""
        return float(self.mistakes[-1]) if len(self.mistakes) else math.nan

    @property
    def finished(self) -> str | None:
        """A message if the last pass made no mistake, else None."""
        return "converged: no mistake in a whole pass" if self.objective == 0 else None

    def total_scores(self, labellings: Tensor, ids: Tensor, first: Tensor, valid: Tensor) -> Tensor:
        """Return the scores (B, K) float64 as every ranker does; with predict="vote" they are the numbers of votes."""
        if self.predict != "vote":
            return super().total_scores(labellings, ids, first, valid)
        if self._votes is None or self._votes.survival.device != first.device:
            self._votes = Votes(self.updates.to(first.device), len(self.weights))
        votes = self._votes.count(labellings, ids, first.double() / self.unit, valid)
        return votes.where(valid, -torch.inf)

    def _load_from_state_dict(self, *arguments: Any) -> None:
        self._votes = None
        super()._load_from_state_dict(*arguments)


class Difference(NamedTuple):
    """An update: the difference of the vectors of two candidates."""

    ids: np.ndarray  # (n,) int32, features that one of the two has
    signs: np.ndarray  # (n,) int64, 1 or -1
    first: float


class ExampleLists:
    """The examples in the layout of the inner loop: K candidates each, log-probabilities in units."""

    def __init__(self, examples: Examples, unit: float) -> None:
        self.ids, self.offsets = (x.cpu().numpy() for x in (examples.features.ids, examples.features.offsets))
        self.valid = examples.valid.cpu().numpy()
        self.correct = examples.correct.cpu().numpy()
        self.sequences = np.flatnonzero(self.correct >= 0)
        self.first = (examples.first / unit).where(examples.valid, 0).cpu().numpy()

    def run_pass(self, order: np.ndarray, weights: np.ndarray, w0: float) -> tuple[list[int], list[Difference]]:
        """Return the updates of one pass, and the survival of the vector given and of each that comes after it.

        The survival comes first. `weights` (F,) float64 change in place.
        """
        survival, made = [0], []
        for s, correct in zip(order.tolist(), self.correct[order].tolist(), strict=True):
            best = self.best(s, weights, w0)
            if best == correct:
                survival[-1] += 1
                continue
            update = self.difference(s, correct, best)
            weights[update.ids] += update.signs
            w0 += update.first
            made.append(update)
            survival.append(1)
        return survival, made

    def best(self, s: int, weights: np.ndarray, w0: float) -> int:
        """Return the candidate of highest F; of equal ones that of highest log-probability, then the first."""
        boundaries = self._boundaries(s)
        running = np.zeros(boundaries[-1] - boundaries[0] + 1)
        np.cumsum(weights[self.ids[boundaries[0] : boundaries[-1]]], out=running[1:])  # of integers: exact
        sums = np.diff(running[boundaries - boundaries[0]])
        scores = np.where(self.valid[s], w0 * self.first[s] + sums, -np.inf)
        tied = np.flatnonzero(scores == scores.max())
        return int(tied[self.first[s, tied].argmax()])

    def difference(self, s: int, a: int, b: int) -> Difference:
        """Return Phi of candidate a less Phi of candidate b."""
        boundaries = self._boundaries(s)
        ours, other = (self.ids[boundaries[k] : boundaries[k + 1]] for k in (a, b))
        ids = np.setxor1d(ours, other, assume_unique=True)
        return Difference(ids, np.where(np.isin(ids, ours), 1, -1), float(self.first[s, a] - self.first[s, b]))

    def _boundaries(self, s: int) -> np.ndarray:
        K = self.valid.shape[1]
        return self.offsets[s * K : (s + 1) * K + 1]
