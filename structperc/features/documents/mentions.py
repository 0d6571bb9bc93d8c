"""Document attributes: values at other tokens with the same word, and the kind of line."""

from typing import ClassVar, Literal, NamedTuple, get_args

import numpy as np

from structperc.data.corpus import Corpus, Factorized, factorize
from structperc.errors import InputError
from structperc.features.documents.base import DocumentAttribute, Lookup

BEYOND = "_B"  # value outside the sentence of a mention


def mention_groups(corpus: Corpus) -> np.ndarray:
    """Return the number of the group of each token, (N,) int64: tokens of a document with the same case-folded word."""
    words = corpus.factorize("word")
    folded = factorize(list(map(str.casefold, words.distinct)))
    document = np.repeat(corpus.documents, corpus.lengths)
    keys = document * len(folded.distinct) + folded.numbers[words.numbers]
    return np.unique(keys, return_inverse=True)[1].astype(np.int64)


def capitalised(corpus: Corpus) -> np.ndarray:
    """Return True for tokens that begin with a capital letter, (N,) bool."""
    words = corpus.factorize("word")
    return np.array([word[:1].isupper() for word in words.distinct], bool)[words.numbers]


def first_tokens(corpus: Corpus) -> np.ndarray:
    """Return True for the first token of each sentence, (N,) bool."""
    first = np.zeros(corpus.tokens, bool)
    first[corpus.sentences[:-1][np.diff(corpus.sentences) > 0]] = True
    return first


def all_capitals(corpus: Corpus) -> np.ndarray:
    """Return True for tokens of sentences that are written in capitals only, (N,) bool."""
    words = corpus.factorize("word")
    lower = np.array([word != word.upper() for word in words.distinct], bool)[words.numbers]
    upper = np.array([len(word) > 1 and word != word.lower() for word in words.distinct], bool)[words.numbers]
    capitals = (_counts(lower, corpus.sentences) == 0) & (_counts(upper, corpus.sentences) > 0)
    return np.repeat(capitals, np.diff(corpus.sentences))


def shifted(corpus: Corpus, numbers: np.ndarray, offset: int, beyond: int) -> np.ndarray:
    """Return the number (N,) `offset` tokens from each token in its sentence, `beyond` outside of it; (N,) int64."""
    place = np.arange(corpus.tokens) + offset
    start, stop = (np.repeat(ends, np.diff(corpus.sentences)) for ends in (corpus.sentences[:-1], corpus.sentences[1:]))
    inside = (place >= start) & (place < stop)
    return np.where(inside, numbers[np.where(inside, place, 0)], beyond).astype(np.int64)


def _counts(marks: np.ndarray, boundaries: np.ndarray) -> np.ndarray:
    """Return the number of marked tokens of each sentence."""
    return np.diff(np.concatenate([[0], np.cumsum(marks)])[boundaries])


FORMS = ("upper", "lower", "first", "capitals")


class CaseElsewhere(DocumentAttribute):
    """Case of the other tokens of the document with the same word.

    "upper", "lower" or "upper+lower" for tokens inside sentences, where case is informative; else "first" if there are
    mentions at the beginning of a sentence only, or "capitals" if there are mentions in lines of capitals only. A word
    that does not begin with a letter has no value.

    Example:
        >>> from structperc.features import FeatureExtractor
        >>> sentences = [{"word": ["Then", "Ford", "left"]}, {"word": ["ford", "spoke"]}]
        >>> corpus = Corpus.from_sentences(sentences, documents=[0, 0])
        >>> features = FeatureExtractor(["case[0]"], documents={"case": CaseElsewhere()}, cutoff=1)
        >>> features.fit(corpus)
        >>> sorted(features.index.names("node"))
        ['case[0]=first', 'case[0]=upper']
    """

    names: ClassVar[tuple[str, ...]] = ("", "upper", "lower", "upper+lower", "first", "capitals")

    def transform(self, corpus: Corpus, lookup: Lookup) -> Factorized:
        """Return the case of the other mentions of the word at each token."""
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
SHORT, NUMBERS = 3, 3  # tokens of a short line at most; at least every third token of a table has a digit


class LineKind(DocumentAttribute):
    """Kind of the sentence of a token: a line of capitals, running text, or another line such as a title or a table.

    "capitals": the sentence has no lower-case letter; "text": it ends in a full stop, an exclamation, question or
    quotation mark; else "line". "+numbers" is appended if at least every third token has a digit, "+short" for
    sentences of up to three tokens. Case and position have another meaning in titles and tables than in running text.
    """

    kinds: ClassVar[tuple[str, ...]] = ("text", "line", "capitals")

    def transform(self, corpus: Corpus, lookup: Lookup) -> Factorized:
        """Return the kind of the sentence of each token."""
        names = [kind + more for kind in self.kinds for more in ("", "+numbers", "+short", "+numbers+short")]
        lengths = np.diff(corpus.sentences)
        words = corpus.factorize("word")
        digit = np.array([any(map(str.isdigit, word)) for word in words.distinct], bool)[words.numbers]
        stop = np.array([word in STOPS for word in words.distinct], bool)[words.numbers]
        digits = _counts(digit, corpus.sentences)
        ends = stop[np.maximum(corpus.sentences[1:] - 1, 0)] if corpus.tokens else np.zeros(len(lengths), bool)
        kind = np.where(ends, 0, 1) * 4 + (digits * NUMBERS >= lengths) + 2 * (lengths <= SHORT)
        numbers = np.repeat(kind, lengths)
        return Factorized(names, np.where(all_capitals(corpus), 8 + numbers % 4, numbers).astype(np.int32))


At = Literal["here", "first", "last", "before", "after"]


class LongestMention(DocumentAttribute):
    """Value of an attribute at the longest run of capitalised words that contains another mention of the word.

    A name is often written in full once and shortened later: "Gerald Ford" or "Ford Motor Co" elsewhere in the document
    disambiguates "Ford" in "Ford said". Runs do not cross sentence boundaries. Lines of capitals contain no runs, but
    their words get values. Of runs of equal length the first one is used. A run has at least two words. Words that do
    not begin with a capital have no value. Similar to the super-entities of Krishnan & Manning (2006), without labels.

    Args:
        of: name of the attribute.
        at: position of the value: "here" for the other mention, the "first" or "last" word of the run, or the word
            "before" or "after" it ("_B" outside the sentence).

    Raises:
        InputError: unknown position.
    """

    def __init__(self, of: str, at: At) -> None:
        if at not in get_args(At):
            raise InputError(f"LongestMention: at must be one of {', '.join(get_args(At))}, got {at!r}")
        self.of, self.at, self.attributes = of, at, (of,)

    def transform(self, corpus: Corpus, lookup: Lookup) -> Factorized:
        """Return the value at the longest other mention of the word at each token."""
        strings = [*(source_values := lookup(self.of)).distinct, BEYOND, ""]
        capital = capitalised(corpus)
        runs = _runs(capital & ~all_capitals(corpus), first_tokens(corpus))
        mention = _longest(mention_groups(corpus), runs.length)
        exists = capital & (mention >= 0)
        place = np.where(exists, mention, 0)
        values = self._values(corpus, source_values.numbers, runs, len(strings) - 2)
        return Factorized(strings, np.where(exists, values[place], len(strings) - 1).astype(np.int32))

    def _values(self, corpus: Corpus, numbers: np.ndarray, runs: "_Runs", beyond: int) -> np.ndarray:
        """Return the value at the run of each token, (N,) int64; arbitrary for tokens outside runs."""
        if self.at == "here":
            return numbers.astype(np.int64)
        if self.at in ("first", "last"):
            return numbers[runs.first if self.at == "first" else runs.last].astype(np.int64)
        end, offset = (runs.first, -1) if self.at == "before" else (runs.last, 1)
        return shifted(corpus, numbers, offset, beyond)[end]


class _Runs(NamedTuple):
    """Run of capitalised words around each token; all (N,) int64."""

    first: np.ndarray
    last: np.ndarray
    length: np.ndarray  # 0 outside runs


def _runs(inside: np.ndarray, opens: np.ndarray) -> _Runs:
    """Return the maximal runs of tokens that are `inside` (N,) bool; a new run begins where `opens` (N,) is True."""
    n = len(inside)
    begins = inside & (opens | ~np.concatenate([[False], inside[:-1]]))
    first = np.maximum.accumulate(np.where(begins, np.arange(n), 0))
    number = np.cumsum(begins)
    lengths = np.bincount(number[inside], minlength=number.max(initial=0) + 1)
    length = np.where(inside, lengths[number], 0)
    return _Runs(first, first + np.maximum(length, 1) - 1, length)


def _longest(groups: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Return for each token the other token of its group in the longest run of two or more words, else -1."""
    order = np.lexsort((np.arange(len(groups)), -lengths, groups))
    size = groups.max(initial=-1) + 1
    start = np.searchsorted(groups[order], np.arange(size))
    members = np.bincount(groups, minlength=size)
    best = order[start[groups]]
    second = order[np.where(members > 1, start + 1, start)[groups]]
    chosen = np.where(best == np.arange(len(groups)), second, best)
    return np.where((chosen != np.arange(len(groups))) & (lengths[chosen] > 1), chosen, -1)


class OtherMentions(DocumentAttribute):
    """Most frequent value of an attribute at the other tokens of the document with the same word.

    Context aggregation (Ratinov & Roth 2009, "Design challenges and misconceptions in named entity recognition",
    section 5.1): the context of other mentions helps to classify a name. Only tokens that begin with a capital have
    and contribute values, since function words have too many mentions to be informative. The token itself does not
    count; of equally frequent values the one that comes first in the document wins. Differs: one value instead of all
    of them, and the whole document instead of 200 tokens.

    Args:
        of: name of the attribute.
        at: offset from the other mention to the token whose value is used, negative to the left; "_B" outside its
            sentence.
    """

    def __init__(self, of: str, at: int = 0) -> None:
        self.of, self.at, self.attributes = of, at, (of,)

    def transform(self, corpus: Corpus, lookup: Lookup) -> Factorized:
        """Return the most frequent value at the other mentions of the word of each token."""
        strings = [*(source_values := lookup(self.of)).distinct, BEYOND, ""]
        values = shifted(corpus, source_values.numbers, self.at, len(strings) - 2)
        capital = capitalised(corpus)
        chosen = np.full(corpus.tokens, len(strings) - 1)
        chosen[capital] = most_frequent_of_others(mention_groups(corpus)[capital], values[capital], len(strings) - 1)
        return Factorized(strings, chosen.astype(np.int32))


class _Leaders(NamedTuple):
    """Most or second most frequent value of each group."""

    value: np.ndarray
    times: np.ndarray  # number of occurrences, 0 if there is no value
    first: np.ndarray  # position of the first occurrence


def most_frequent_of_others(groups: np.ndarray, values: np.ndarray, none: int) -> np.ndarray:
    """Return the most frequent value (n,) of the other members of each one's group; `none` without other members."""
    best, second = (_Leaders(*(x[groups] for x in leaders)) for leaders in _leaders(groups, values, none))
    count = best.times - (best.value == values)
    behind = (count < second.times) | ((count == second.times) & (second.first < best.first) & (second.times > 0))
    chosen = np.where(behind, second.value, best.value)
    return np.where(behind | (count > 0), chosen, none)


def _leaders(groups: np.ndarray, values: np.ndarray, none: int) -> tuple[_Leaders, _Leaders]:
    """Return the most and the second most frequent value of each group; of equals the one that comes first wins."""
    size = groups.max(initial=-1) + 1
    keys, first, counts = np.unique(groups * (none + 1) + values, return_index=True, return_counts=True)
    group, value = np.divmod(keys, none + 1)
    order = np.lexsort((first, -counts, group))
    start = np.searchsorted(group[order], np.arange(size))
    n_values = np.bincount(group, minlength=size)

    def leaders(rank: int) -> _Leaders:
        exists = n_values > rank
        at = order[np.where(exists, start + rank, 0)] if len(order) else np.zeros(size, np.int64)
        return _Leaders(np.where(exists, value[at], none), np.where(exists, counts[at], 0), first[at])

    return leaders(0), leaders(1)
