"""Lists of different lengths, one after the other in one tensor, and all that is done with them."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad


class Transposed(NamedTuple):
    """The same occurrences id by id: id present[r] is in the lists lists[offsets[r]:offsets[r + 1]]."""

    present: Tensor  # (R,) int64, the ids that occur, ascending
    lists: Tensor  # (M,) int32, numbers of lists, ascending for each id
    offsets: Tensor  # (R + 1,) int32
    weights: Tensor | None = None  # (M,) float32, of the occurrences; None: each counts 1


class Ragged(NamedTuple):
    """n lists of ids, such as the features of each token: list i is ids[offsets[i]:offsets[i + 1]].

    Ragged rather than (B, T, F): of the Table-1 templates of Kazama & Torisawa (2007) fewer than half
    fire at a token, and padding costs nothing this way.
    """

    ids: Tensor  # (M,) or (M, ...), of an integer type
    offsets: Tensor  # (n + 1,) int64 for whole corpora, int32 for mini-batches
    transposed: Transposed | None = None  # for dense gradients of batches that are seen many times
    longest: int | None = None  # how many ids the longest list of a mini-batch has, so that no GPU need be asked
    weights: Tensor | None = None  # (M,) float32, how much each id counts where it stands; None: 1

    @classmethod
    def of_counts(cls, ids: Tensor, counts: Tensor) -> "Ragged":
        """Cut ids (M, ...) into n lists, counts (n,) int64 says how long each of them is."""
        return cls(ids, boundaries(counts))

    @classmethod
    def join(cls, parts: Sequence["Ragged"]) -> "Ragged":
        """Return the lists of all parts, part after part; there is at least one part."""
        joined = cls.of_counts(torch.cat([part.ids for part in parts]), torch.cat([part.counts for part in parts]))
        return joined._replace(weights=_joined_weights(parts))

    @property
    def counts(self) -> Tensor:
        """How many ids each list has, (n,)."""
        return self.offsets.diff()

    @property
    def row_ids(self) -> Tensor:
        """Which list each id belongs to, (M,)."""
        return torch.repeat_interleave(self.counts, output_size=self.ids.shape[0])

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
        """Return the lists starts[i], ..., stops[i] - 1, for one i after the other, as a mini-batch holds them.

        Of lists on the CPU. It copies each stretch as a whole, many times faster than `select` finds every list.
        """
        from structperc.kernels.slices import copy_offsets, copy_slices  # which needs a compiler

        offsets = self.offsets.numpy()
        first, last = offsets[starts], offsets[stops]
        taken, longest = copy_offsets(offsets, starts, stops)
        ids = torch.from_numpy(copy_slices(self.ids.numpy(), first, last))
        weights = None if self.weights is None else torch.from_numpy(copy_slices(self.weights.numpy(), first, last))
        return Ragged(ids, torch.from_numpy(taken), longest=longest, weights=weights)

    def transpose(self) -> "Ragged":
        """Return the same with `transposed`, which makes gradients of many tokens several times faster."""
        order = self.ids.argsort(stable=True)
        present, counts = self.ids.unique(return_counts=True)
        weights = None if self.weights is None else self.weights[order]
        lists, offsets = self.row_ids[order].int(), boundaries(counts).int()
        return self._replace(transposed=Transposed(present.long(), lists, offsets, weights))


def _joined_weights(parts: Sequence[Ragged]) -> Tensor | None:
    """The weights of all parts, 1 in those without; None where no part has any."""
    if all(part.weights is None for part in parts):
        return None
    return torch.cat(
        [p.ids.new_ones(len(p.ids), dtype=torch.float32) if p.weights is None else p.weights for p in parts]
    )


def boundaries(counts: Tensor) -> Tensor:
    """Lengths (n,) of what stands one after the other -> (n + 1,) int64, where each begins, at last where all end."""
    return pad(counts.cumsum(0), (1, 0))


def spread(counts: Tensor, first: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Write out n runs of numbers, counts (n,) of them for each.

    -> the run i of each (M,); first[i], first[i] + 1, ... for each run (M,), from 0 on where first (n,) is not given.
    """
    row_ids = torch.repeat_interleave(counts)
    before = counts.cumsum(0) - counts
    shifts = -before if first is None else first - before
    return row_ids, shifts.index_select(0, row_ids) + torch.arange(len(row_ids), device=counts.device)
