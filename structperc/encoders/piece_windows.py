"""Windows over the sub-word tokens (pieces) of long sequences, and the pieces around a sentence in its document.

Word i of the N words of a batch has the pieces offsets[i]:offsets[i + 1], at least one.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch

from structperc.data.corpus import Corpus
from structperc.ragged import Ragged, spread


class PieceWindows(NamedTuple):
    """W windows over the words of a batch: window w contains the words first[w], ..., stop[w] - 1."""

    first: np.ndarray  # (W,) int64
    stop: np.ndarray  # (W,) int64

    @classmethod
    def over(cls, offsets: np.ndarray, lengths: np.ndarray, max_pieces: int, overlap: int) -> "PieceWindows":
        """Return windows of at most `max_pieces` pieces; neighbours share at most `overlap` < `max_pieces` pieces.

        offsets (N + 1,) int64, lengths (B,) int64 in words. A sequence that fits has one window, an empty one has none.
        The last window of a longer sequence begins as early as possible, so it may share more pieces.
        """
        ends = lengths.cumsum()
        sequences = zip((ends - lengths)[lengths > 0].tolist(), ends[lengths > 0].tolist(), strict=True)
        spans = [span for start, end in sequences for span in _spans(offsets, start, end, max_pieces, overlap)]
        return cls(*np.array(spans, dtype=np.int64).reshape(-1, 2).T)

    def seats(self, offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return for each word the window (N,) with most context, and the number of pieces before the word in it.

        The context is the distance to the nearer boundary of the window in pieces; of equal windows the first is taken.
        """
        counts = self.stop - self.first
        window, word = (x.numpy() for x in spread(torch.from_numpy(counts), torch.from_numpy(self.first)))
        before, after = offsets[word] - offsets[self.first[window]], offsets[self.stop[window]] - offsets[word + 1]
        order = np.lexsort((window, -np.minimum(before, after), word))
        best = order[np.diff(word[order], prepend=-1) > 0]
        return window[best], before[best]

    def layout(self, offsets: np.ndarray, opening: int, closing: int, *around: np.ndarray) -> Ragged:
        """Return the numbers of the tokens of each window, W lists.

        The pieces are numbered first, then the `opening` special tokens before the pieces, the `closing` ones after
        them, and the pieces around sentences. `around` is empty, or the offsets (N + 1,) of the lists before and after
        each word; a window includes the list before its first word and the list after its last one.
        """
        special = np.full(len(self.first), offsets[-1])
        runs = [(special, np.full_like(special, opening))]
        runs += [(offsets[self.first], offsets[self.stop] - offsets[self.first])]
        runs += [(special + opening, np.full_like(special, closing))]
        if around:
            left, right = around
            start, last = offsets[-1] + opening + closing, self.stop - 1
            runs.insert(1, (start + left[self.first], left[self.first + 1] - left[self.first]))
            runs.insert(3, (start + left[-1] + right[last], right[last + 1] - right[last]))
        first, counts = (torch.from_numpy(np.stack(arrays, 1)) for arrays in zip(*runs, strict=True))
        return Ragged.from_counts(spread(counts.flatten(), first.flatten())[1], counts.sum(1))


def _spans(offsets: np.ndarray, start: int, end: int, max_pieces: int, overlap: int) -> Iterator[tuple[int, int]]:
    """Yield (first word, word after the last) of the windows over the words start, ..., end - 1 of one sequence."""
    first = start
    while (stop := int(offsets.searchsorted(offsets[first] + max_pieces, "right")) - 1) < end:
        yield first, stop
        shared = offsets.searchsorted(offsets[stop] - overlap)
        first = int(max(shared, offsets.searchsorted(offsets[stop + 1] - max_pieces)))
    yield int(max(start, offsets.searchsorted(offsets[end] - max_pieces))), end


def pieces_around(corpus: Corpus, pieces: Ragged, context_pieces: int, max_pieces: int) -> tuple[Ragged, Ragged]:
    """Return the pieces before and after each sentence in its document.

    Each side has at most `context_pieces` pieces. Where both sides and the sentence have more than `max_pieces`, the
    longer side is shortened first; a sentence of `max_pieces` or more has no context. `corpus`: N words in sentences
    and documents. `pieces`: pieces of each word, N lists. `context_pieces`: maximal number of pieces on each side.
    `max_pieces`: number of pieces of a window. Returns n lists of pieces before the first word of each sentence, and N
    lists after its last word; those of all other words are empty.
    """
    offsets = pieces.offsets.numpy().astype(np.int64)
    whole = corpus.by_sentence()
    some = np.diff(whole.starts) > 0  # sentences with words
    start, stop = whole.starts[:-1][some], whole.starts[1:][some]
    begin, end = offsets[start], offsets[stop]
    changes = np.flatnonzero(np.diff(whole.documents[some])) + 1
    opens = np.concatenate([[0], changes])[: len(begin)]  # sentences that begin a document
    lengths = np.diff(opens, append=len(begin))
    first = np.repeat(begin[opens], lengths)  # first piece of the document of each sentence
    final = np.repeat(end[opens + lengths - 1] if len(opens) else end[:0], lengths)
    left, right = np.minimum(begin - first, context_pieces), np.minimum(final - end, context_pieces)
    free = np.maximum(max_pieces - (end - begin), 0)
    left = np.minimum(left, np.maximum(free // 2, free - right))
    right = np.minimum(right, free - left)
    return _lists_at(start, begin - left, left, pieces), _lists_at(stop - 1, end, right, pieces)


def _lists_at(words: np.ndarray, first: np.ndarray, sizes: np.ndarray, pieces: Ragged) -> Ragged:
    """Return lists for all words: the pieces first[i], ..., first[i] + sizes[i] - 1 at words[i], else empty ones."""
    counts = torch.zeros(len(pieces.offsets) - 1, dtype=torch.int64)
    counts[torch.from_numpy(words)] = torch.from_numpy(sizes)
    return Ragged.from_counts(pieces.ids[spread(torch.from_numpy(sizes), torch.from_numpy(first))[1]], counts)
