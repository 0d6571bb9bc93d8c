"""Document attributes from the other tokens of a document with the same word, and from the kind of line."""

from typing import ClassVar, Literal, NamedTuple, get_args

import numpy as np

from structperc.data.corpus import Corpus, Factorized, factorize
from structperc.errors import InputError
from structperc.features.documents.base import DocumentAttribute, Lookup

BEYOND = "_B"  # what stands outside of the sentence of a mention


def mention_groups(corpus: Corpus) -> np.ndarray:
    """Return which tokens share a document and a word, whatever its case: (N,) int64, the number of the group."""
    words = corpus.factorize("word")
    folded = factorize(list(map(str.casefold, words.distinct)))
    document = np.repeat(corpus.documents, corpus.lengths)
    keys = document * len(folded.distinct) + folded.numbers[words.numbers]
    return np.unique(keys, return_inverse=True)[1].astype(np.int64)


def capitalised(corpus: Corpus) -> np.ndarray:
    """Return whether each token begins with a capital letter, (N,) bool."""
    words = corpus.factorize("word")
    return np.array([word[:1].isupper() for word in words.distinct], bool)[words.numbers]


def first_tokens(corpus: Corpus) -> np.ndarray:
    """Return whether each token is the first of its sentence, (N,) bool."""
    first = np.zeros(corpus.tokens, bool)
    first[corpus.sentences[:-1][np.diff(corpus.sentences) > 0]] = True
    return first


def all_capitals(corpus: Corpus) -> np.ndarray:
    """Return whether each token is in a sentence that is written in capitals alone, (N,) bool."""
    words = corpus.factorize("word")
    lower = np.array([word != word.upper() for word in words.distinct], bool)[words.numbers]
    upper = np.array([len(word) > 1 and word != word.lower() for word in words.distinct], bool)[words.numbers]
    capitals = ~_any(lower, corpus.sentences) & _any(upper, corpus.sentences)
    return np.repeat(capitals, np.diff(corpus.sentences))


def beside(corpus: Corpus, numbers: np.ndarray, offset: int, beyond: int) -> np.ndarray:
    """Return what stands `offset` tokens from each token in its sentence, `beyond` outside of it; (N,) int64.

    numbers: (N,) integers, what stands at each token.
    """
    place = np.arange(corpus.tokens) + offset
    start, stop = (np.repeat(ends, np.diff(corpus.sentences)) for ends in (corpus.sentences[:-1], corpus.sentences[1:]))
    inside = (place >= start) & (place < stop)
    return np.where(inside, numbers[np.where(inside, place, 0)], beyond).astype(np.int64)


def _any(marks: np.ndarray, boundaries: np.ndarray) -> np.ndarray:
    """Return for each sentence whether one of its tokens is marked."""
    before = np.concatenate([[0], np.cumsum(marks)])
    return before[boundaries[1:]] > before[boundaries[:-1]]


FORMS = ("upper", "lower", "first", "capitals")


class CaseElsewhere(DocumentAttribute):
    """Which case the other tokens of the document with the same word are written in.

    "upper" and "lower" (or both, "upper+lower") inside of sentences, where case means something; else "first", at the
    beginning of a sentence, or "capitals", in a line of capitals, which say only that there are other mentions. A word
    that does not begin with a letter has no value.
    """

    names: ClassVar[tuple[str, ...]] = ("", "upper", "lower", "upper+lower", "first", "capitals")

    def read(self, corpus: Corpus, lookup: Lookup) -> Factorized:
        """Return how other mentions of the word at each token are written."""
        words = corpus.factorize("word")
        initial = np.array([word[:1] for word in words.distinct], str)
        letter, upper = np.char.isalpha(initial)[words.numbers], np.char.isupper(initial)[words.numbers]
        form = np.select([all_capitals(corpus), first_tokens(corpus), upper], [3, 2, 0], 1)
        groups = mention_groups(corpus)
        keys = groups * len(FORMS) + form
        counts = np.bincount(keys, minlength=(groups.max(initial=-1) + 1) * len(FORMS)).reshape(-1, len(FORMS))
        others = counts[groups]
        others[np.arange(len(groups)), form] -= 1
        upper, lower, first, capitals = (others > 0).T
        value = np.select([upper & lower, upper, lower, first, capitals], [3, 1, 2, 4, 5], 0)
        return Factorized(list(self.names), np.where(letter, value, 0).astype(np.int32))


STOPS = frozenset((".", "!", "?", '"', "''", "”"))
SHORT, NUMBERS = 3, 3  # tokens of a short line; in tables every third token or more has a digit


class LineKind(DocumentAttribute):
    """Whether a token is in a line of capitals, in running text, or in another line, such as a title or a table.

    "capitals": no letter of the sentence is small; "text": it ends in a full stop, an exclamation or a question mark or
    a quotation mark; else "line". To that are added "+numbers", where every third token or more has a digit, and
    "+short", for sentences of up to three tokens. In titles and tables case and position mean something else than in
    running text.
    """

    kinds: ClassVar[tuple[str, ...]] = ("text", "line", "capitals")

    def read(self, corpus: Corpus, lookup: Lookup) -> Factorized:
        """Return the kind of the sentence of each token."""
        names = [kind + more for kind in self.kinds for more in ("", "+numbers", "+short", "+numbers+short")]
        lengths = np.diff(corpus.sentences)
        words = corpus.factorize("word")
        digit = np.array([any(map(str.isdigit, word)) for word in words.distinct], bool)[words.numbers]
        stop = np.array([word in STOPS for word in words.distinct], bool)[words.numbers]
        digits = np.diff(np.concatenate([[0], np.cumsum(digit)])[corpus.sentences])
        ends = stop[np.maximum(corpus.sentences[1:] - 1, 0)] if corpus.tokens else np.zeros(len(lengths), bool)
        kind = np.where(ends, 0, 1) * 4 + (digits * NUMBERS >= lengths) + 2 * (lengths <= SHORT)
        numbers = np.repeat(kind, lengths)
        return Factorized(names, np.where(all_capitals(corpus), 8 + numbers % 4, numbers).astype(np.int32))


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
