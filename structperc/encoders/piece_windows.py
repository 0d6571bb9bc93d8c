"""Windows over the sub-word pieces of long sequences, as index arrays: cut between words, one window for each word.

N words stand one after the other, word i has the pieces offsets[i]:offsets[i + 1], at least one and at most `room`.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch

from structperc.ragged import spread


class PieceWindows(NamedTuple):
    """W windows over the words of a batch: window w has the words first[w], ..., stop[w] - 1."""

    first: np.ndarray  # (W,) int64
    stop: np.ndarray  # (W,) int64

    @classmethod
    def over(cls, offsets: np.ndarray, lengths: np.ndarray, room: int, overlap: int) -> "PieceWindows":
        """Return windows of at most `room` pieces; neighbours share at most `overlap` pieces, fewer than `room`.

        offsets (N + 1,) int64, lengths (B,) int64 words of each sequence. A sequence that fits is one window, an empty
        one none. The last window of a longer sequence begins as early as it can, so it may share more.
        """
        ends = lengths.cumsum()
        sequences = zip((ends - lengths)[lengths > 0].tolist(), ends[lengths > 0].tolist(), strict=True)
        spans = [span for start, end in sequences for span in _spans(offsets, start, end, room, overlap)]
        return cls(*np.array(spans, dtype=np.int64).reshape(-1, 2).T)

    def seats(self, offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return for each word the window (N,) where it is farthest from a boundary, and how many pieces precede it.

        The distance is that to the nearer boundary of the window, in pieces; among equal ones the first window counts.
        """
        counts = self.stop - self.first
        window, word = (x.numpy() for x in spread(torch.from_numpy(counts), torch.from_numpy(self.first)))
        before, after = offsets[word] - offsets[self.first[window]], offsets[self.stop[window]] - offsets[word + 1]
        order = np.lexsort((window, -np.minimum(before, after), word))
        best = order[np.diff(word[order], prepend=-1) > 0]
        return window[best], before[best]

    def layout(self, offsets: np.ndarray, opening: int, closing: int) -> np.ndarray:
        """Return what stands at each of the P places of each window, (W, P) int64.

        That is a piece, one of `opening` special tokens before all pieces, of `closing` after them, or padding on the
        right. They are numbered in this order, the padding is the last number.
        """
        pieces = (offsets[self.stop] - offsets[self.first])[:, None]
        place = np.arange(pieces.max(initial=0) + opening + closing) - opening
        special = offsets[-1] + opening
        cases = [place < 0, place < pieces, place < pieces + closing]
        return np.select(
            cases, [special + place, offsets[self.first][:, None] + place, special + place - pieces], special + closing
        )


def _spans(offsets: np.ndarray, start: int, end: int, room: int, overlap: int) -> Iterator[tuple[int, int]]:
    """(first word, word after the last) of the windows over the words start, ..., end - 1 of one sequence."""
    first = start
    while (stop := int(offsets.searchsorted(offsets[first] + room, "right")) - 1) < end:
        yield first, stop
        shared = offsets.searchsorted(offsets[stop] - overlap)
        first = int(max(shared, offsets.searchsorted(offsets[stop + 1] - room)))
    yield int(max(start, offsets.searchsorted(offsets[end] - room))), end
