"""The longest name among the other mentions of a word in its document."""

from typing import Literal, NamedTuple, get_args

import numpy as np

from structperc.data.corpus import Corpus, Factorized
from structperc.errors import InputError
from structperc.features.documents.base import DocumentAttribute, Lookup
from structperc.features.documents.mentions import (
    BEYOND,
    all_capitals,
    beside,
    capitalised,
    first_tokens,
    mention_groups,
)

At = Literal["here", "first", "last", "before", "after"]


class LongestMention(DocumentAttribute):
    """The value of an attribute at the longest run of capitalised words that another mention of the word is in.

    A name is written in full once and shortened later: what "Ford" is in "Ford said" is told by "Gerald Ford" or "Ford
    Motor Co" elsewhere in the document. Runs do not cross the boundaries of sentences; lines of capitals have none, but
    their words are given values. Among runs of one length the first one counts. There is no value where the run is a
    single word, and for words that do not begin with a capital. After the super-entities of Krishnan & Manning (2006),
    without labels.

    Args:
        of: the attribute.
        at: where it is looked at: "here", at the other mention itself, at the "first" or "last" word of the run, or
            "before" or "after" it, where "_B" stands outside of the sentence.

    Raises:
        InputError: unknown place.
    """

    def __init__(self, of: str, at: At) -> None:
        if at not in get_args(At):
            raise InputError(f"LongestMention: at must be one of {', '.join(get_args(At))}, got {at!r}")
        self.of, self.at, self.attributes = of, at, (of,)

    def read(self, corpus: Corpus, lookup: Lookup) -> Factorized:
        """Return the value at the longest other mention of the word at each token."""
        strings = [*(found := lookup(self.of)).distinct, BEYOND, ""]
        capital = capitalised(corpus)
        runs = _runs(capital & ~all_capitals(corpus), first_tokens(corpus))
        mention = _longest(mention_groups(corpus), runs.length)
        exists = capital & (mention >= 0)
        place = np.where(exists, mention, 0)
        values = self._looked_at(corpus, found.numbers, runs, len(strings) - 2)
        return Factorized(strings, np.where(exists, values[place], len(strings) - 1).astype(np.int32))

    def _looked_at(self, corpus: Corpus, numbers: np.ndarray, runs: "_Runs", beyond: int) -> np.ndarray:
        """Return the value at the run of each token, (N,) int64; of tokens in no run, anything."""
        if self.at == "here":
            return numbers.astype(np.int64)
        if self.at in ("first", "last"):
            return numbers[runs.first if self.at == "first" else runs.last].astype(np.int64)
        end, offset = (runs.first, -1) if self.at == "before" else (runs.last, 1)
        return beside(corpus, numbers, offset, beyond)[end]


class _Runs(NamedTuple):
    """The run that each token is in; all (N,) int64."""

    first: np.ndarray
    last: np.ndarray
    length: np.ndarray  # 0 in no run


def _runs(inside: np.ndarray, opens: np.ndarray) -> _Runs:
    """Return the longest runs of tokens that are `inside` (N,) bool, none of them across a token that `opens`."""
    n = len(inside)
    begins = inside & (opens | ~np.concatenate([[False], inside[:-1]]))
    first = np.maximum.accumulate(np.where(begins, np.arange(n), 0))
    number = np.cumsum(begins)
    lengths = np.bincount(number[inside], minlength=number.max(initial=0) + 1)
    length = np.where(inside, lengths[number], 0)
    return _Runs(first, first + np.maximum(length, 1) - 1, length)


def _longest(groups: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Return for each token the other one of its group in the longest run of at least two; -1 without such a one."""
    order = np.lexsort((np.arange(len(groups)), -lengths, groups))
    size = groups.max(initial=-1) + 1
    start = np.searchsorted(groups[order], np.arange(size))
    held = np.bincount(groups, minlength=size)
    best = order[start[groups]]
    second = order[np.where(held > 1, start + 1, start)[groups]]
    chosen = np.where(best == np.arange(len(groups)), second, best)
    return np.where((chosen != np.arange(len(groups))) & (lengths[chosen] > 1), chosen, -1)
