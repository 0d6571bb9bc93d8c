"""Lists of different lengths, concatenated in one tensor, and operations on them."""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad


class Transposed(NamedTuple):
    """Occurrences by id: id present[r] is in the lists lists[offsets[r]:offsets[r + 1]].

    Example:
        >>> ragged = Ragged.from_counts(torch.tensor([4, 7, 7]), torch.tensor([2, 1]))  # lists [4, 7] and [7]
        >>> by_id = ragged.transpose().transposed
        >>> by_id.present.tolist(), by_id.lists.tolist(), by_id.offsets.tolist()
        ([4, 7], [0, 0, 1], [0, 1, 3])
    """

    present: Tensor  # (R,) int64, occurring ids, ascending
    lists: Tensor  # (M,) int32, numbers of lists, ascending for each id
    offsets: Tensor  # (R + 1,) int32
    weights: Tensor | None = None  # (M,) float32, weight of each occurrence; None: all 1


class Ragged(NamedTuple):
    """n lists of ids, such as the features of each token: list i is ids[offsets[i]:offsets[i + 1]].

    A padded (B, T, F) tensor would take more memory: fewer than half of the Table-1 templates of Kazama & Torisawa
    (2007) fire at a token.
    """

    ids: Tensor  # (M,) or (M, ...), of an integer type
    offsets: Tensor  # (n + 1,) int64 for whole corpora, int32 for mini-batches
    transposed: Transposed | None = None  # for dense gradients of batches that are used many times
    longest: int | None = None  # number of ids of the longest list of a mini-batch, without a GPU synchronisation
    weights: Tensor | None = None  # (M,) float32, weight of each occurrence; None: all 1

    @classmethod
    def from_counts(cls, ids: Tensor, counts: Tensor) -> "Ragged":
        """Split ids (M, ...) into n lists of lengths counts (n,) int64."""
        return cls(ids, boundaries(counts))

    @classmethod
    def join(cls, parts: Sequence["Ragged"]) -> "Ragged":
        """Concatenate the lists of one or more parts."""
        joined = cls.from_counts(torch.cat([part.ids for part in parts]), torch.cat([part.counts for part in parts]))
        return joined._replace(weights=_joined_weights(parts))

    @property
    def counts(self) -> Tensor:
        """The number of ids of each list, (n,)."""
        return self.offsets.diff()

    @property
    def row_ids(self) -> Tensor:
        """The index of the list of each id, (M,)."""
        return torch.repeat_interleave(self.counts, output_size=self.ids.shape[0])

    @property
    def n(self) -> int:
        """The number of lists."""
        return len(self.offsets) - 1

    def pad(self, real: Tensor) -> "Ragged":
        """Return S lists: these n lists at the places of a mask (S,) bool that are True, empty ones elsewhere."""
        before = torch.cat([real.new_zeros(1, dtype=torch.int64), real.cumsum(0)])
        return self._replace(offsets=self.offsets.index_select(0, before), transposed=None)

    def slice(self, start: int, stop: int) -> "Ragged":
        """Return the lists start, ..., stop - 1; ids are a view."""
        offsets = self.offsets[start : stop + 1]
        longest = None if self.longest is None or start == stop else int(offsets.diff().max())
        first, last = int(offsets[0]), int(offsets[-1])
        weights = None if self.weights is None else self.weights[first:last]
        return Ragged(self.ids[first:last], offsets - offsets[0], longest=longest, weights=weights)

    def select(self, lists: Tensor) -> "Ragged":
        """Return some lists (m,) int64, which may repeat, in this order."""
        first = self.offsets[lists]
        counts = self.offsets[lists + 1] - first
        _, places = spread(counts, first)
        weights = None if self.weights is None else self.weights[places]
        return Ragged(self.ids[places], boundaries(counts).to(self.offsets.dtype), weights=weights)

    def take(self, starts: np.ndarray, stops: np.ndarray) -> "Ragged":
        """Return the lists starts[i], ..., stops[i] - 1 for each i in turn, in the form of a mini-batch.

        For lists on the CPU. Copies of whole slices are many times faster than `select`.

        Args:
            starts: (m,) int64.
            stops: (m,) int64.
        """
        from structperc.kernels.slices import copy_offsets, copy_slices  # needs a compiler

        offsets = self.offsets.numpy()
        first, last = offsets[starts], offsets[stops]
        taken, longest = copy_offsets(offsets, starts, stops)
        ids = torch.from_numpy(copy_slices(self.ids.numpy(), first, last))
        weights = None if self.weights is None else torch.from_numpy(copy_slices(self.weights.numpy(), first, last))
        return Ragged(ids, torch.from_numpy(taken), longest=longest, weights=weights)

    def transpose(self) -> "Ragged":
        """Return the lists with `transposed`, which makes gradients of many tokens several times faster."""
        order = self.ids.argsort(stable=True)
        present, counts = self.ids.unique(return_counts=True)
        weights = None if self.weights is None else self.weights[order]
        lists, offsets = self.row_ids[order].int(), boundaries(counts).int()
        return self._replace(transposed=Transposed(present.long(), lists, offsets, weights))


def _joined_weights(parts: Sequence[Ragged]) -> Tensor | None:
    """Return the weights of all parts, 1 for those without; None if no part has weights."""
    if all(part.weights is None for part in parts):
        return None
    return torch.cat(
        [p.ids.new_ones(len(p.ids), dtype=torch.float32) if p.weights is None else p.weights for p in parts]
    )


def boundaries(counts: Tensor) -> Tensor:
    """Return the offsets of concatenated lists.

    Args:
        counts: (n,) int64, length of each list.

    Returns:
        (n + 1,) int64, from 0 to the total length.
    """
    return pad(counts.cumsum(0), (1, 0))


def spread(counts: Tensor, first: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Enumerate n runs of consecutive integers.

    Args:
        counts: (n,) int64, length of each run.
        first: (n,) int64, first integer of each run; by default 0.

    Returns:
        the number of the run of each element, (M,) int64, and the elements first[i], first[i] + 1, ..., (M,) int64.
    """
    row_ids = torch.repeat_interleave(counts)
    before = counts.cumsum(0) - counts
    shifts = -before if first is None else first - before
    return row_ids, shifts.index_select(0, row_ids) + torch.arange(len(row_ids), device=counts.device)


def padded_groups(lengths: np.ndarray, limit: int, shares: int = 1) -> list[tuple[int, int]]:
    """Cut lists into groups whose padded size, number of lists times longest list, is at most a limit.

    Args:
        lengths: (n,) lengths of the lists, longest first.
        limit: maximal size of a share with several lists.
        shares: number of shares of a group, each of which has the same number of lists; the last group may have fewer.

    Returns:
        bounds (start, stop) of each group.
    """
    starts = [0]
    while starts[-1] < len(lengths):
        longest = max(1, int(lengths[starts[-1]]))
        starts.append(min(len(lengths), starts[-1] + shares * max(1, limit // longest)))
    return list(pairwise(starts))
