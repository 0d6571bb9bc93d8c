"""What stands at most of the other mentions of a word in its document."""

from typing import NamedTuple

import numpy as np

from structperc.data.corpus import Corpus, Factorized
from structperc.features.documents.base import DocumentAttribute, Lookup
from structperc.features.documents.mentions import BEYOND, beside, capitalised, mention_groups


class OtherMentions(DocumentAttribute):
    """The value that an attribute has at most of the other tokens of the document with the same word.

    Context aggregation (Ratinov & Roth 2009, "Design challenges and misconceptions in named entity recognition",
    section 5.1): a name is often told by what stands beside it elsewhere. Only tokens that begin with a capital have
    such a value and give one, since function words have too many other mentions to say anything. The token itself
    does not count; among values that are as frequent, that which is first in the document wins. Differs: one value
    instead of all of them, and all of the document instead of 200 tokens.

    Args:
        of: the attribute.
        at: how many tokens to the right of the other mention, or to the left if negative, the value stands; outside
            of its sentence there is "_B".
    """

    def __init__(self, of: str, at: int = 0) -> None:
        self.of, self.at, self.attributes = of, at, (of,)

    def read(self, corpus: Corpus, lookup: Lookup) -> Factorized:
        """Return the most frequent value at other mentions of the word at each token."""
        strings = [*(found := lookup(self.of)).distinct, BEYOND, ""]
        values = beside(corpus, found.numbers, self.at, len(strings) - 2)
        capital = capitalised(corpus)
        chosen = np.full(corpus.tokens, len(strings) - 1)
        chosen[capital] = _most_frequent(mention_groups(corpus)[capital], values[capital], len(strings) - 1)
        return Factorized(strings, chosen.astype(np.int32))


class _Leaders(NamedTuple):
    """The most frequent value of each group, or the second, with how often it occurs and where first."""

    value: np.ndarray
    times: np.ndarray  # 0 where there is none
    first: np.ndarray


def _most_frequent(groups: np.ndarray, values: np.ndarray, none: int) -> np.ndarray:
    """Return for each member the most frequent of the values (n,) of the others in its group; `none` without others."""
    best, second = (_Leaders(*(x[groups] for x in leaders)) for leaders in _leaders(groups, values, none))
    count = best.times - (best.value == values)
    behind = (count < second.times) | ((count == second.times) & (second.first < best.first) & (second.times > 0))
    chosen = np.where(behind, second.value, best.value)
    return np.where(behind | (count > 0), chosen, none)


def _leaders(groups: np.ndarray, values: np.ndarray, none: int) -> tuple[_Leaders, _Leaders]:
    """Return the first and the second value of each group, by number; the order of equals is that of the document."""
    size = groups.max(initial=-1) + 1
    keys, first, counts = np.unique(groups * (none + 1) + values, return_index=True, return_counts=True)
    group, value = np.divmod(keys, none + 1)
    order = np.lexsort((first, -counts, group))
    start = np.searchsorted(group[order], np.arange(size))
    held = np.bincount(group, minlength=size)

    def leaders(rank: int) -> _Leaders:
        exists = held > rank
        at = order[np.where(exists, start + rank, 0)] if len(order) else np.zeros(size, np.int64)
        return _Leaders(np.where(exists, value[at], none), np.where(exists, counts[at], 0), first[at])

    return leaders(0), leaders(1)
