"""Majority of the values of the other mentions of a segment, for templates of segments."""

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from structperc.data.corpus import Corpus, Factorized, factorize
from structperc.data.tag_schemes import spans
from structperc.features.documents.mentions import most_frequent_of_others
from structperc.features.hashing import mixed, string_hash

OUTSIDE, PARTS, NONE = "O", "parts", ""


class _Mentions(NamedTuple):
    """Segments that a first model finds in a corpus, at each of N tokens."""

    segment: np.ndarray  # (N,) number of the segment that contains the token, -1 outside
    lengths: np.ndarray  # (n,) number of tokens of each segment
    types: np.ndarray  # (n,) type of each segment


class MentionMajority:
    """Most frequent value of the other mentions of a segment, in the same document or in the whole corpus.

    Mentions of a segment are all runs of the same words within a sentence, ignoring case. The value of a mention is
    the type of the first model's segment if it is one; "in TYPE" within a longer segment; "O" if no token is in a
    segment; else "parts". The segment itself does not count; of equally frequent values the one wins that the text
    has first, the segment included. A segment without other mentions has no value.

    As `documents.EntityMajority` for tokens (Krishnan & Manning 2006, section 4.1), but for every candidate, and
    without the candidate itself.

    Args:
        corpus: a corpus of N tokens.
        labels: the first model's label of each token, in any segment scheme.
        documents: number of the text of each token, (N,) int64, in which mentions are counted.

    Raises:
        InputError: a label that is not of a segment scheme.

    Example:
        >>> corpus = Corpus.from_sentences([{"word": ["New", "York"]}, {"word": ["new", "york"]}], documents=[0, 0])
        >>> majority = MentionMajority(corpus, factorize(["B-LOC", "I-LOC", "O", "O"]), np.zeros(4, np.int64))
        >>> [[majority.values[i] for i in majority.numbers(length)] for length in (1, 2)]
        [['O', 'O', 'in LOC', 'in LOC'], ['O', '', 'LOC', '']]
    """

    def __init__(self, corpus: Corpus, labels: Factorized, documents: np.ndarray) -> None:
        self._mentions, types = _mentions(corpus, labels)
        self.values = [*types, *(f"in {kind}" for kind in types), OUTSIDE, PARTS, NONE]
        self._documents, self._n_types = documents, len(types)
        folded = np.array([string_hash(word.casefold(), "value") for word in corpus.factorize("word").distinct])
        self._words = folded.astype(np.uint64)[corpus.factorize("word").numbers]
        self._ends = np.repeat(corpus.sentences[1:], np.diff(corpus.sentences))
        self._numbers: dict[int, np.ndarray] = {}

    def numbers(self, length: int) -> np.ndarray:
        """Return the index in `values` (N,) int32 of the segment of `length` tokens that begins at each token."""
        if length not in self._numbers:
            self._numbers[length] = self._count(length)
        return self._numbers[length]

    def _count(self, length: int) -> np.ndarray:
        starts = np.flatnonzero(np.arange(len(self._ends)) + length <= self._ends)
        keys = self._documents[starts].astype(np.uint64)
        for i in range(length):
            keys = mixed(keys ^ self._words[starts + i])
        groups = np.unique(keys, return_inverse=True)[1].astype(np.int64)
        majorities = np.full(len(self._ends), len(self.values) - 1, np.int32)
        majorities[starts] = most_frequent_of_others(groups, self._values_of(starts, length), len(self.values) - 1)
        return majorities

    def _values_of(self, starts: np.ndarray, length: int) -> np.ndarray:
        """Return the index in `values` (n,) of the segments of a length as they are labelled themselves."""
        segment, lengths, types = self._mentions
        first = segment[starts]
        uniform = np.ones(len(starts), bool)  # all tokens are in the segment of the first one, or all outside
        for i in range(1, length):
            uniform &= segment[starts + i] == first
        inside = uniform & (first >= 0)
        number = np.where(inside, first, 0)
        n, kind = self._n_types, types[number] if len(types) else number
        whole = inside & (lengths[number] == length) if len(lengths) else inside
        return np.select([whole, inside, uniform], [kind, n + kind, 2 * n], 2 * n + 1)


def _mentions(corpus: Corpus, labels: Factorized) -> tuple[_Mentions, list[str]]:
    """Return the segments of labels, and the distinct types."""
    names = [labels.distinct[number] for number in labels.numbers.tolist()]
    mentions = [
        (start + span.start, span.end - span.start, span.type)
        for start, stop in pairwise(corpus.sentences.tolist())
        for span in spans(names[start:stop])
    ]
    types = factorize([kind for _, _, kind in mentions])
    lengths = np.array([length for _, length, _ in mentions], np.int64)
    segment = np.full(corpus.tokens, -1)
    starts = np.repeat([start for start, _, _ in mentions], lengths)
    before = np.repeat(np.cumsum(lengths) - lengths, lengths)
    segment[(starts + np.arange(len(starts)) - before).astype(np.int64)] = np.repeat(np.arange(len(mentions)), lengths)
    return _Mentions(segment, lengths, types.numbers.astype(np.int64)), types.distinct
