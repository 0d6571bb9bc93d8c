"""Hashes of word strings; pairs of segments with the same words, and of segments that contain the words of others."""

from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from structperc.nonlocal_features.candidate_text import CandidateText, Spans
from structperc.ragged import spread

BASE, ROW = 0x5851F42D4C957F2D, 0x2545F4914F6CDD1D  # odd, so that multiplication modulo 2**64 is a bijection
UPPER = 0xFFFFFFFF  # mask of the upper half after a shift, without the sign
INVERSE = pow(BASE, -1, 2**64) - 2**64  # as int64


class Hashes:
    """Polynomial hashes of word strings, equal for equal strings of any batches.

    Prefix sums of the numbers of the words modulo 2**64, so that a string costs one subtraction. The numbers of words
    are 63 random bits: two different strings collide with a probability of about 2**-63, and any two of the 10,000
    strings of a large batch with 5e-12. (It is larger for long strings of the same words in certain regular orders.)
    """

    def __init__(self, words: Tensor) -> None:
        """Words (B, T) int64."""
        self.T = words.shape[1]
        powers = words.new_full((words.numel(),), BASE).cumprod(0)
        self.inverse_powers = words.new_full((words.numel(),), INVERSE).cumprod(0)
        self.sums = pad((words.flatten() * powers).cumsum(0), (1, 0))

    def __call__(self, starts: Tensor, ends: Tensor) -> Tensor:
        """Return the hashes, int64, of the strings at positions starts <= b * T + t < ends."""
        return (self.sums[ends] - self.sums[starts]) * self.inverse_powers[starts]

    def of_rows(self, starts: Tensor, ends: Tensor) -> Tensor:
        """Return hashes of strings that differ for equal strings of different sequences."""
        return self(starts, ends) + starts // self.T * ROW


def combined(first: Tensor, *others: Tensor | int) -> Tensor:
    """Return the hash, int64, of each tuple of numbers, given as columns that broadcast.

    Different tuples of the same length collide about as rarely as random numbers of 64 bits.
    """
    number = first
    for other in others:
        number = mixed(number) * BASE + other
    return mixed(number)


def mixed(number: Tensor) -> Tensor:
    """Mix the bits of a number by a bijection of int64; the same for tensors, arrays and, compiled, numbers."""
    number = (number ^ ((number >> 32) & UPPER)) * ROW
    return number ^ ((number >> 32) & UPPER)


class NamePairs(NamedTuple):
    """Pairs of names, and the number of occurrences of each name in each label sequence.

    A name is a string of words with a type: Washington (person) and Washington (place) are two names.
    """

    a: Tensor  # (Q,) int64, a name 0 <= u < U
    b: Tensor  # (Q,) int64, a name of the same sequence
    rows: Tensor  # (U,) int64, sequence of each name
    types: Tensor  # (U,) int64, position in `LabelSet.type_names`
    counts: Tensor  # (U, K) float32, segments of each label sequence with this name


class SegmentStrings:
    """The G different strings of the segments of each sequence of a batch, and their N names."""

    def __init__(self, words: Tensor, text: CandidateText, spans: Spans, C: int) -> None:
        """Words (B, T) int64; C types."""
        self.T, self.C, self.text, self.spans, self.hashes = words.shape[1], C, text, spans, Hashes(words)
        self.numbers, strings = self.hashes.of_rows(spans.starts, spans.ends).unique(return_inverse=True)  # (G,), (E,)
        self.names, self.of_spans = (strings * C + spans.types).unique(return_inverse=True)  # (N,), (E,)
        self.strings = self.names // C  # (N,)
        self.first = self._of_names(spans.starts, "amin")
        self.last = self._of_names(spans.starts, "amax")
        self.lengths = self._of_names(spans.ends - spans.starts, "amax")

    @cached_property
    def equal_pairs(self) -> NamePairs:
        """Pairs of names (a, b) with the same string that may be in one label sequence, also (b, a) and (a, a)."""
        strings = torch.arange(len(self.numbers), device=self.numbers.device)
        return self._pairs(strings, strings)

    @cached_property
    def contained_pairs(self) -> NamePairs:
        """Pairs of names (a, b) that may be in one label sequence, where the string of a is a proper part of that of b.

        Takes time O(words of all strings * different lengths).
        """
        sizes = self.lengths.unique()
        whole, size = (sizes < self.lengths.unsqueeze(1)).nonzero().unbind(1)
        part, starts = spread(self.lengths[whole] - sizes[size] + 1, self.first[whole])
        whole, size = whole[part], size[part]
        numbers = self.hashes.of_rows(starts, starts + sizes[size])
        found = torch.searchsorted(self.numbers, numbers).clamp_(max=len(self.numbers) - 1)
        known = (self.numbers[found] == numbers).nonzero().squeeze(1)
        G = max(1, len(self.numbers))
        pairs = (found[known] * G + self.strings[whole[known]]).unique()
        return self._pairs(pairs // G, pairs % G)

    def _pairs(self, a: Tensor, b: Tensor) -> NamePairs:
        """Return the pairs of names of pairs of strings (R,) that have positions which do not overlap."""
        number = self.names.new_full((len(self.numbers) * self.C,), -1)
        number[self.names] = torch.arange(len(self.names), device=number.device)
        number = number.view(-1, self.C)
        a, b = torch.broadcast_tensors(number[a].unsqueeze(2), number[b].unsqueeze(1))
        named = ((a >= 0) & (b >= 0)).nonzero(as_tuple=True)
        a, b = a[named], b[named]
        stop = self.first + self.lengths
        apart = ((self.last[b] >= stop[a]) | (self.last[a] >= stop[b])).nonzero().squeeze(1)
        return self._counted(a[apart], b[apart])

    def _counted(self, a: Tensor, b: Tensor) -> NamePairs:
        """Return pairs of names 0 <= n < N, renumbered to the names in them, with their counts."""
        used = torch.zeros_like(self.names, dtype=torch.bool)
        used[a] = used[b] = True
        names, number = used.nonzero().squeeze(1), used.cumsum(0) - 1
        spans = used[self.of_spans].nonzero().squeeze(1)
        counts = self.text.tally(self.spans.copies[spans], number[self.of_spans[spans]], len(names))
        return NamePairs(number[a], number[b], self.first[names] // self.T, self.names[names] % self.C, counts)

    def _of_names(self, values: Tensor, how: str) -> Tensor:
        """Return the least ("amin") or largest ("amax") value (E,) of the segments of each name, (N,)."""
        return values.new_zeros(len(self.names)).scatter_reduce_(0, self.of_spans, values, how, include_self=False)
