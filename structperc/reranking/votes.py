"""All weight vectors that a perceptron ever had, kept as what was added to each, and their vote."""

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import embedding_bag

from structperc.ragged import Ragged
from structperc.reranking.examples import Examples

WIDTH = 160  # candidates at a time, and
CELLS = 2**23  # scores at a time; more where a single sequence has more


class ListUpdates(NamedTuple):
    """U updates, thus U + 1 weight vectors: zero, and the sum of the first u updates for u = 1, ..., U."""

    features: Ragged  # a list for each update, the features that it changed: M ids int32, each once; offsets int64
    signs: Tensor  # (M,) int8, by how much: 1 or -1
    first: Tensor  # (U,) float64, by how much it changed w0
    survival: Tensor  # (U + 1,) int64, examples after which each vector was the present one

    @property
    def first_weights(self) -> Tensor:
        """The weight w0 of every vector, (U + 1,) float64, added up one after the other (on the CPU) as in training."""
        return torch.cat([self.first.new_zeros(1), self.first.cpu().cumsum(0).to(self.first)])

    def to(self, device: torch.device) -> "ListUpdates":
        """Return the same updates on another device."""
        ids, offsets = self.features.ids.to(device), self.features.offsets.to(device)
        return ListUpdates(Ragged(ids, offsets), *(x.to(device) for x in self[1:]))

    def last(self, n_features: int) -> tuple[Tensor, Tensor]:
        """Return the weights (F,) float64 and w0 () float64 of the present vector."""
        return self._sum(torch.ones_like(self.first), n_features), self.first_weights[-1]

    def average(self, n_features: int) -> tuple[Tensor, Tensor]:
        """Return the weights (F,) float64 and w0 () float64, averaged over the vectors after each example.

        An update counts for all examples since, its own included. The sums of weights are exact.
        """
        seen = self.survival.sum().clamp(min=1)
        since = (seen - self.survival.cumsum(0))[:-1].double()
        return self._sum(since, n_features) / seen, self.first @ since / seen

    def _sum(self, factors: Tensor, n_features: int) -> Tensor:
        total = factors.new_zeros(n_features)
        return total.index_add_(0, self.features.ids, self.signs * factors[self.features.row_ids])


class Votes:
    """The vote of Collins 2002, §4.3 and Fig. 4; after Freund & Schapire 1999: every vector votes for one candidate.

    A vector has as many votes as examples that it survived. What an update adds to the scores of a few candidates is a
    sum over the features that it has in common with them; the score under a vector is that of all updates before it.
    This is exact, and no vector is ever written out.

    Args:
        updates: of the perceptron.
        n_features: F.
    """

    def __init__(self, updates: ListUpdates, n_features: int) -> None:
        self.n_features = n_features
        self.first_weights, self.survival = updates.first_weights, updates.survival.double()  # (V,)
        self._features, self._signs = updates.features, updates.signs.float()

    def count(self, labellings: Tensor, ids: Tensor, first: Tensor, valid: Tensor) -> Tensor:
        """Return the votes (B, K) float64 of candidates, 0 where not valid; arguments are those of
        `Ranker.total_scores`.

        `first` is in units. Of candidates to which a vector gives equal scores it votes for that with the highest
        `first`, then for the one that comes first.
        """
        K = first.shape[1]
        order = first.double().where(valid, -torch.inf).argsort(dim=1, descending=True, stable=True)
        place = order.argsort(1)  # candidates in descending order of `first`: there, the first of the best wins
        moved = labellings // K * K + place.flatten()[labellings]
        nowhere = order.new_full((len(first),), -1)
        ranked = first.gather(1, order), valid.gather(1, order), nowhere
        lists = Examples.from_pairs(moved, ids, *ranked, self.n_features).differing()
        size = max(1, min(WIDTH, CELLS // len(self.survival)) // K)
        parts = [self._votes(lists, start, min(start + size, len(first))) for start in range(0, len(first), size)]
        return torch.cat([lists.first.new_zeros(0, K), *parts]).gather(1, place).where(valid, 0)

    def _votes(self, lists: Examples, start: int, end: int) -> Tensor:
        """Of the sequences start <= s < end, (end - start, K)."""
        first, valid = (x[start:end].unsqueeze(2) for x in (lists.first, lists.valid))
        scores = self._sums(lists, start, end)
        scores += first.where(valid, 0) * self.first_weights
        winner = scores.masked_fill_(~valid, -torch.inf).max(1).indices
        votes = torch.zeros_like(lists.first[start:end])
        return votes.scatter_add_(1, winner, self.survival.expand(winner.shape))

    def _sums(self, lists: Examples, start: int, end: int) -> Tensor:
        """Of the weights of each candidate's features, under each vector: (end - start, K, V) float64."""
        K = lists.valid.shape[1]
        features = lists.features.slice(start * K, end * K)
        known, row = features.ids.unique(return_inverse=True)
        has = lists.first.new_zeros((len(known) + 1, (end - start) * K), dtype=torch.float32)
        has[row + 1, features.row_ids] = 1
        rows = self._features.ids.new_zeros(self.n_features)  # of `has`; 0 for features that no candidate has
        rows[known] = torch.arange(1, len(known) + 1, dtype=rows.dtype, device=rows.device)
        added = embedding_bag(
            rows[self._features.ids],
            has,
            self._features.offsets.int(),
            mode="sum",
            per_sample_weights=self._signs,
            include_last_offset=True,
        )  # (U, labellings), small integers
        sums = lists.first.new_zeros(has.shape[1], len(added) + 1)
        sums[:, 1:] = added.t()
        return sums.cumsum_(1).view(end - start, K, -1)
