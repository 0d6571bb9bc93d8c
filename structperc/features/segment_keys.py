"""Templates of whole segments: their features as 64-bit keys."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from structperc.data.corpus import Corpus, Factorized
from structperc.data.splits import Extent
from structperc.data.tag_schemes import parse_tag
from structperc.data.text_files import read_lines
from structperc.errors import InputError
from structperc.features.attribute_sources import Attributes, Resources, Sources
from structperc.features.hashing import NO_KEY, mixed, string_hash
from structperc.features.resources import Clusters
from structperc.features.segment_mentions import MentionMajority

ALL, FIRST, LAST, PHRASE, LENGTH = "all", "first", "last", "phrase", "length"
DOCUMENT, CORPUS = "document", "corpus"  # other mentions of the segment
OUTSIDE = np.uint64(string_hash("outside", "beyond"))  # value of a token before or after its sentence
EXACT, FOLDED = (np.uint64(string_hash(name, "value")) for name in ("exact", "folded"))
_PART = re.compile(r"(?P<attribute>.+)\[(?P<place>all|first|last|phrase|document|corpus|[+-][1-9])\]")


class SegmentPart(NamedTuple):
    """A part of a template: an attribute at a place of the segment, or the length of the segment."""

    attribute: str  # "" for the length
    place: str  # all, first, last, phrase, document, corpus; -1, +2: tokens before its first, after its last; length


def parse_segment_template(text: str) -> tuple[SegmentPart, ...]:
    """Return the parts of a template, such as "wl[first]|wl[last]", "c4[all]", "org[phrase]|length" or "w[-1]".

    Args:
        text: parts joined by "|".

    Raises:
        InputError: an invalid part.

    Example:
        >>> parse_segment_template("wl[first]|length")
        (SegmentPart(attribute='wl', place='first'), SegmentPart(attribute='', place='length'))
    """
    parts = []
    for part in text.split("|"):
        match = _PART.fullmatch(part)
        if part != LENGTH and match is None:
            raise InputError(
                f"segment template {text!r}: {part!r} is not a part; write length, or an attribute at a place: w[all], "
                "w[first], w[last], w[-1], w[+1], NAME[phrase] of a gazetteer, NAME[document] of labels, NAME[corpus]"
            )
        parts.append(SegmentPart("", LENGTH) if match is None else SegmentPart(*match.groups()))
    return tuple(parts)


def phrase_keys(path: str, name: str) -> np.ndarray:
    """Return the keys (n,) uint64 of the phrases of a gazetteer, as they are and in lower case.

    Args:
        path: file with a phrase in each line.
        name: name of the gazetteer.
    """
    phrases = [words for line in read_lines(path) if (words := line.split())]
    if not phrases:
        raise InputError(f"{path}: no phrases; give at least one or remove the gazetteer")
    keys = {
        key
        for words in phrases
        for key in (_phrase(name, "w", words), _phrase(name, "wl", [word.lower() for word in words]))
    }
    return np.fromiter(keys, np.uint64, len(keys))


def _phrase(name: str, attribute: str, words: Sequence[str]) -> int:
    key = np.uint64(string_hash(f"{name} {attribute}", "template"))
    with np.errstate(over="ignore"):
        for word in words:
            key = mixed(key ^ np.uint64(string_hash(word, "value")))
    return int(key)


class SegmentKeys:
    """Keys of the features of all segments of up to D tokens in the sentences of a corpus.

    Args:
        templates: templates of segments.
        max_length: D.
        phrases: sorted keys of the phrases of all gazetteers, uint64.
        clusters: word clusters of the attributes c4, c6, ...

    Raises:
        InputError: an invalid template.
    """

    def __init__(
        self,
        templates: Sequence[str],
        max_length: int,
        phrases: np.ndarray,
        clusters: Clusters | None,
    ) -> None:
        self.templates = {text: parse_segment_template(text) for text in templates}
        self.max_length, self.phrases = max_length, phrases
        parts = [part for template in self.templates.values() for part in template]
        self._mentions = [part for part in parts if part.place in (DOCUMENT, CORPUS)]
        names = [part.attribute for part in parts if part.place not in (LENGTH, PHRASE)]
        if any(part.place == PHRASE for part in parts):
            names += ["w", "wl"]
        resources = Resources({}, {} if clusters is None else {"c": clusters}, {}, {})
        self._sources = Sources(list(dict.fromkeys(names)), resources, 0)

    @property
    def columns(self) -> list[str]:
        """Names of the columns that the templates read, the word first."""
        return self._sources.columns

    @property
    def extent(self) -> Extent:
        """Extent of the text on which the features of a segment depend."""
        if not self._mentions:
            return "sequence"
        return "corpus" if any(part.place == CORPUS for part in self._mentions) else "document"

    def each(self, corpus: Corpus, candidates: np.ndarray) -> Iterator[tuple[int, np.ndarray, Iterator[np.ndarray]]]:
        """Yield, for each length 1..D, the first tokens (n,) of candidates and their keys (n,) of each template.

        A segment without a value in one of the parts of a template has NO_KEY.

        Args:
            corpus: a corpus of N tokens.
            candidates: (N, D) bool, segments by first token and number of tokens less 1.
        """
        reading = self._sources.read(corpus)
        values, mentions = _codes(reading), self._majorities(corpus, reading)
        ends = np.repeat(corpus.sentences[1:], np.diff(corpus.sentences))
        begins = np.repeat(corpus.sentences[:-1], np.diff(corpus.sentences))
        starts, runs = np.arange(corpus.tokens), _Runs(values)
        for length in range(1, self.max_length + 1):
            starts = starts[starts + length <= ends[starts]]
            runs.extend(starts, length)
            kept = starts[candidates[starts, length - 1]]
            view = _Segments(values, kept, length, begins[kept], ends[kept], runs, self.phrases, mentions)
            yield length, kept, (view.keys(text, parts) for text, parts in self.templates.items())

    def names(self, corpus: Corpus, candidates: np.ndarray, keys: np.ndarray) -> list[str]:
        """Return the names of features, such as "w[all]=New York" or "wl[first]=new|length=2".

        Args:
            corpus: the corpus in which they occur.
            candidates: the segments in which they occur, see `each`.
            keys: sorted keys (F,) uint64.
        """
        reading = self._sources.read(corpus)
        texts = _Texts(_strings(reading), self._majorities(corpus, reading))
        names, unnamed = [""] * len(keys), np.ones(len(keys), bool)
        bounds = corpus.sentences.tolist()
        sentence = np.repeat(np.arange(len(bounds) - 1), np.diff(corpus.sentences))
        for length, starts, of_templates in self.each(corpus, candidates):
            for parts, wanted in zip(self.templates.values(), of_templates, strict=True):
                places = find_keys(keys, wanted)
                matched = np.flatnonzero(places >= 0)
                new = matched[unnamed[places[matched]]]
                unnamed[places[new]] = False
                numbers, first = np.unique(places[new], return_index=True)
                for number, start in zip(numbers.tolist(), starts[new[first]].tolist(), strict=True):
                    a, b = bounds[sentence[start] : sentence[start] + 2]
                    segment = _SegmentText(texts, start, length, a, b)
                    names[number] = "|".join(self._part_name(part, segment) for part in parts)
        return names

    def _part_name(self, part: SegmentPart, segment: "_SegmentText") -> str:
        if part.place == LENGTH:
            return f"{LENGTH}={segment.length}"
        value = segment.value(part)
        if part.place == PHRASE:
            key = np.uint64(_phrase(part.attribute, "w", segment.words("w")))
            value = "exact" if key in self.phrases else "folded"
        return f"{part.attribute}[{part.place}]={value}"

    def _majorities(self, corpus: Corpus, reading: Attributes) -> dict[SegmentPart, MentionMajority]:
        """Return the values of other mentions, for each part of a template that has them."""
        majorities = {}
        for part in self._mentions:
            name = part.attribute
            labels = Factorized(reading.values[name], reading.numbers[reading.columns[name]])
            texts = corpus.documents if part.place == DOCUMENT else np.zeros(len(corpus), np.int64)
            _check_labels(corpus, labels, f"{name}[{part.place}]")
            majorities[part] = MentionMajority(corpus, labels, np.repeat(texts, corpus.lengths))
        return majorities


def _check_labels(corpus: Corpus, labels: Factorized, template: str) -> None:
    """Raise InputError for an attribute of which some values are not labels of segments."""
    for number, label in enumerate(labels.distinct):
        try:
            parse_tag(label)
        except InputError as error:
            place = corpus.where(int((labels.numbers == number).argmax()))
            raise InputError(f"{place}: segment template {template} reads labels of segments: {error}") from None


def _strings(reading: Attributes) -> dict[str, Callable[[int], str]]:
    """Return functions that return the value of each attribute at a token."""

    def at(name: str) -> Callable[[int], str]:
        values, numbers = reading.values[name], reading.numbers[reading.columns[name]]
        return lambda token: values[numbers[token]]

    return {name: at(name) for name in reading.values}


def _codes(reading: Attributes) -> dict[str, np.ndarray]:
    """Return the 64-bit value of each attribute at each token, NO_KEY for no value."""
    coded = {name: _hashes(strings) for name, strings in reading.values.items()}
    return {name: codes[reading.numbers[reading.columns[name]]] for name, codes in coded.items()}


def _hashes(strings: Sequence[str]) -> np.ndarray:
    """Return the 64-bit values of strings, NO_KEY for the empty one."""
    return np.array([string_hash(string, "value") if string else NO_KEY for string in strings], np.uint64)


class _Texts(NamedTuple):
    """Values of the parts of templates as strings."""

    attributes: Mapping[str, Callable[[int], str]]  # value at a token
    mentions: Mapping[SegmentPart, MentionMajority]


class _SegmentText(NamedTuple):
    """A segment of a corpus, whose parts have values as strings."""

    texts: _Texts
    start: int
    length: int
    begin: int  # first token of its sentence
    end: int  # end of its sentence

    def words(self, attribute: str) -> list[str]:
        """Return the values of an attribute at the tokens of the segment."""
        return [self.texts.attributes[attribute](token) for token in range(self.start, self.start + self.length)]

    def value(self, part: SegmentPart) -> str:
        """Return the value of a part other than the length and phrases."""
        attribute, place = part
        if place in (ALL, PHRASE):
            return "" if place == PHRASE else " ".join(self.words(attribute))
        if place in (FIRST, LAST):
            return self.words(attribute)[0 if place == FIRST else -1]
        if place in (DOCUMENT, CORPUS):
            majority = self.texts.mentions[part]
            return majority.values[majority.numbers(self.length)[self.start]]
        offset = int(place)
        token = self.start + offset + (self.length - 1 if offset > 0 else 0)
        return self.texts.attributes[attribute](token) if self.begin <= token < self.end else "(outside)"


class _Runs:
    """Mixed values of all tokens of the segments of a length, by attribute and initial key."""

    def __init__(self, values: Mapping[str, np.ndarray]) -> None:
        self._values = values
        missing = {name: keys == NO_KEY for name, keys in values.items()}
        self._missing = {name: np.append(0, flags.cumsum()) for name, flags in missing.items() if flags.any()}
        self._keys: dict[tuple[str, int], np.ndarray] = {}
        self._starts, self._length = np.zeros(0, np.int64), 0

    def extend(self, starts: np.ndarray, length: int) -> None:
        """Go on to the segments of the next length."""
        self._starts, self._length = starts, length
        for (name, _), keys in self._keys.items():
            keys[starts] = mixed(keys[starts] ^ self._values[name][starts + length - 1])

    def keys(self, name: str, initial: int, starts: np.ndarray) -> np.ndarray:
        """Return the keys (n,) of segments, NO_KEY for those with a token without a value."""
        if (name, initial) not in self._keys:
            keys = np.full(len(self._values[name]), np.uint64(initial))
            for i in range(self._length):
                keys[self._starts] = mixed(keys[self._starts] ^ self._values[name][self._starts + i])
            self._keys[name, initial] = keys
        chosen = self._keys[name, initial][starts]
        if name in self._missing:
            before = self._missing[name]
            chosen[before[starts + self._length] > before[starts]] = NO_KEY
        return chosen


class _Segments(NamedTuple):
    """The segments of a length."""

    values: Mapping[str, np.ndarray]
    starts: np.ndarray  # (n,)
    length: int
    begins: np.ndarray  # (n,) first tokens of their sentences
    ends: np.ndarray  # (n,) ends of their sentences
    runs: _Runs
    phrases: np.ndarray
    mentions: Mapping[SegmentPart, MentionMajority]

    def keys(self, text: str, parts: Sequence[SegmentPart]) -> np.ndarray:
        """Return the keys (n,) of a template."""
        keys = np.full(len(self.starts), np.uint64(string_hash(text, "template")))
        absent = np.zeros(len(keys), bool)
        for part in parts:
            values = self._part(part)
            keys, absent = mixed(keys ^ values), absent | (values == NO_KEY)
        keys[absent] = NO_KEY
        return keys

    def _part(self, part: SegmentPart) -> np.ndarray:
        attribute, place = part
        if place == LENGTH:
            return np.full(len(self.starts), np.uint64(self.length))
        if place == PHRASE:
            return self._phrases(attribute)
        if place == ALL:
            return self.runs.keys(attribute, 0, self.starts)
        if place in (DOCUMENT, CORPUS):
            majority = self.mentions[part]
            return _hashes(majority.values)[majority.numbers(self.length)[self.starts]]
        if place in (FIRST, LAST):
            return self.values[attribute][self.starts + (self.length - 1 if place == LAST else 0)]
        offset = int(place)
        tokens = self.starts + offset + (self.length - 1 if offset > 0 else 0)
        inside = (tokens >= self.begins) & (tokens < self.ends)
        return np.where(inside, self.values[attribute][tokens.clip(0, len(self.values[attribute]) - 1)], OUTSIDE)

    def _phrases(self, name: str) -> np.ndarray:
        exact, folded = (
            find_keys(self.phrases, self.runs.keys(attribute, initial, self.starts)) >= 0
            for attribute, initial in ((form, string_hash(f"{name} {form}", "template")) for form in ("w", "wl"))
        )
        return np.where(exact, EXACT, np.where(folded, FOLDED, np.uint64(NO_KEY)))


def find_keys(keys: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Return the positions (n,) int64 of keys among sorted ones, -1 for others."""
    if not len(keys):
        return np.full(len(wanted), -1)
    order = wanted.argsort()  # four times as fast: neighbouring keys are near in memory
    places = np.empty(len(wanted), np.int64)
    places[order] = np.searchsorted(keys, wanted[order]).clip(max=len(keys) - 1)
    return np.where(keys[places] == wanted, places, -1)
