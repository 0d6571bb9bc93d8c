"""Tokenized texts, and the alignment of character spans with their tokens."""

import operator
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, pairwise
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from structperc.errors import InputError
from structperc.text.tokenizer import (
    Offsets,
    SentenceSplitter,
    Tokenizer,
    conll_tokens,
    invisible_characters,
    rule_sentences,
    strip_invisible,
)

Misaligned = Literal["refuse", "expand", "drop"]
Overlaps = Literal["refuse", "longest", "first"]
OffsetUnit = Literal["characters", "utf-16", "utf-8"]
LineEnds = Literal["\n", "\r\n"]

_PAIRS = "it must return pairs of offsets (start, end), one for each token text[start:end]"
_BOUNDARIES = "it must return the index of the first token of each sentence, ascending, and the number of tokens"


class TokenizedText(NamedTuple):
    """A text of N tokens in R non-empty sentences."""

    text: str
    tokens: Sequence[Offsets]  # N pairs (start, end) of character offsets, ascending and non-empty
    sentences: Sequence[int]  # R + 1 token boundaries, from 0 to N

    @property
    def words(self) -> list[str]:
        """The N tokens as strings."""
        return [self.text[start:end] for start, end in self.tokens]

    @property
    def word_lists(self) -> list[list[str]]:
        """The words of each of the R sentences."""
        return [row["word"] for row in self.rows()]

    def rows(self, columns: Mapping[str, list[str]] = MappingProxyType({})) -> list[dict[str, list[str]]]:
        """Return the R sentences, {"word": words} with the strings of further columns (N) of their tokens."""
        whole = {"word": self.words, **columns}
        return [{role: values[a:b] for role, values in whole.items()} for a, b in pairwise(self.sentences)]


class TextSpan(NamedTuple):
    """A typed span text[start:end], with the confidence of a prediction if known.

    `best` is False for an alternative that is not among the predicted labels, `continuous` for a span that consists of
    several parts, with other words between them. `quote` is the text of the span as its source gives it, until that is
    compared with the offsets.
    """

    start: int
    end: int
    type: str
    confidence: float | None = None
    best: bool = True
    continuous: bool = True
    quote: str | None = None

    def to_json(self, text: str) -> dict[str, Any]:
        """Return the span as plain JSON types, with its words in the text and, if known, its confidence."""
        found = {"start": self.start, "end": self.end, "type": self.type, "text": text[self.start : self.end]}
        return found if self.confidence is None else {**found, "confidence": self.confidence}


class SpanConflict(NamedTuple):
    """A span that does not align with tokens, has no type, or overlaps another one."""

    kind: str  # such as "token cut" or "overlap"
    message: str
    misaligned: bool  # True: resolved by the option `misaligned`; False: by `overlaps`
    dropped: bool = False  # True: the span is not among the result
    span: TextSpan | None = None


class Alignment(NamedTuple):
    """Spans of tokens, and the conflicts between spans and tokens or other spans."""

    spans: list[tuple[int, int, str]]  # (first token, token after the last, type), sorted
    conflicts: list[SpanConflict]


def tokenize(
    text: str, tokenizer: Tokenizer = conll_tokens, sentences: SentenceSplitter = rule_sentences
) -> TokenizedText:
    """Split a text into tokens and sentences.

    `tokenizer`: maps a text to the offsets (start, end) of its tokens in order. White space at the edges of a token is
    trimmed; tokens without visible characters are dropped. `sentences`: maps a text and its tokens to sentence
    boundaries.

    Raises:
        InputError: the text is not a string, or the results of the two functions are malformed.

    Example:
        >>> tokenize("Anna left. She came back.").word_lists
        [['Anna', 'left', '.'], ['She', 'came', 'back', '.']]
        >>> tokenize("Anna left", lambda text: [(0, 4), (4, 9)]).tokens  # byte-level tokenizer
        [(0, 4), (5, 9)]
    """
    if not isinstance(text, str):
        raise InputError(f"expected a text as a string, got {text!r:.60}")
    tokens = list(_check_offsets(text, tokenizer(text)))
    return TokenizedText(text, tokens, _check_boundaries(sentences(text, tokens), len(tokens)))


def _check_offsets(text: str, given: Any) -> Iterator[Offsets]:
    """Trim the offsets of a tokenizer, and check that they are ascending and within the text."""
    if isinstance(given, str | bytes) or not hasattr(given, "__iter__"):
        raise InputError(f"the tokenizer returns {given!r:.60}; {_PAIRS}")
    last = (0, 0)
    for one in given:
        try:
            start, end = (None, None) if isinstance(one, str | bytes) else map(operator.index, one)
        except (TypeError, ValueError):
            start, end = None, None
        if start is None or end is None:
            raise InputError(f"the tokenizer returns {one!r:.60}; {_PAIRS}")
        if not 0 <= start < end <= len(text):
            problem = "empty" if start == end else f"outside the text of {len(text)} characters"
            raise InputError(f"the tokenizer returns the token {start}..{end}, which is {problem}")
        word = text[start:end]
        if not strip_invisible(word).strip():
            continue
        start, end = start + len(word) - len(word.lstrip()), end - len(word) + len(word.rstrip())
        if start < last[1]:
            problem = "overlaps" if end > last[0] else "comes before"
            before = f"the previous token {last[0]}..{last[1]} {text[slice(*last)]!r:.40}"
            raise InputError(f"the tokenizer returns {start}..{end} {text[start:end]!r:.40}, which {problem} {before}")
        yield start, end
        last = (start, end)


def _check_boundaries(given: Any, number: int) -> list[int]:
    try:
        boundaries = [operator.index(one) for one in given]
    except TypeError:
        raise InputError(f"the sentence splitter returns {given!r:.60}; {_BOUNDARIES}") from None
    if boundaries[:1] != [0] or boundaries[-1] != number or any(a >= b for a, b in pairwise(boundaries)):
        raise InputError(f"the sentence splitter returns {boundaries!r:.60} for {number} tokens; {_BOUNDARIES}")
    return boundaries


def join_words(sentences: Sequence[Sequence[str]]) -> TokenizedText:
    """Join words by spaces and sentences by line ends; empty sentences are dropped.

    `sentences`: the words of each sentence.
    """
    kept = [words for words in sentences if words]
    tokens: list[Offsets] = []
    at, boundaries = 0, [0]
    for words in kept:
        for word in words:
            tokens.append((at, at + len(word)))
            at += len(word) + 1
        boundaries.append(len(tokens))
    return TokenizedText("\n".join(map(" ".join, kept)), tokens, boundaries)


def align_words(words: Sequence[Sequence[str]], text: str, place: str) -> TokenizedText:
    """Find the words of sentences in their text.

    Returns the text with its tokens and sentences.

    Args:
        words: the words of each sentence.
        text: their text, with only white space and invisible characters between words.
        place: beginning of an error message, such as "file:line".

    Raises:
        InputError: the text does not consist of these words.
    """
    blank = set(invisible_characters(text))
    tokens: list[Offsets] = []
    at, boundaries = 0, [0]
    for sentence in words:
        for word in sentence:
            start = at
            while start < len(text) and not (word and text.startswith(word, start)):
                if not text[start].isspace() and text[start] not in blank:
                    break
                start += 1
            if not word or not text.startswith(word, start):
                raise InputError(f"{place}: word {word!r:.60} not found in the text after character {at}; correct it")
            at = start + len(word)
            tokens.append((start, at))
        if len(tokens) > boundaries[-1]:
            boundaries.append(len(tokens))
    return TokenizedText(text, tokens, boundaries)


def align(
    text: TokenizedText,
    spans: Iterable[TextSpan],
    misaligned: Misaligned = "refuse",
    overlaps: Overlaps = "refuse",
) -> Alignment:
    """Map character spans to token spans, and report conflicts.

    White space and invisible characters at the edges of tokens are ignored. Duplicate spans count once. Sentence
    boundaries do not matter, see `merge_sentences`.

    Args:
        text: the text with its tokens.
        spans: spans of its characters.
        misaligned: treatment of spans whose edges are not token edges. "expand": extend to all tokens touched, drop
            if there are none; "drop": drop; "refuse": as "expand", for callers that raise an error on conflicts. Spans
            without a type are dropped.
        overlaps: treatment of spans that share a token. "longest": keep the longest, of several the first; "first":
            keep the one that begins first, of several the one given first; "refuse": as "first", for callers that
            raise an error on conflicts.

    Example:
        >>> align(tokenize("Anna Lind left"), [TextSpan(0, 8, "PER")], "expand").spans
        [(0, 2, 'PER')]
    """
    tokens = _TokenEdges(text)
    found, conflicts = [], []
    for span in {span[:3]: span for span in spans}.values():
        place: tuple[int, int] | SpanConflict | None = tokens.exact(span)
        if isinstance(place, SpanConflict):
            touched = None if misaligned == "drop" or not span.type else tokens.touched(span)
            conflicts.append(place._replace(dropped=touched is None, span=span))
            place = touched
        if place is not None:
            found.append((*place, span))
    if overlaps == "longest":
        found.sort(key=lambda one: (one[0] - one[1], one[0]))
    else:
        found.sort(key=lambda one: one[0])
    kept: list[tuple[int, int, TextSpan]] = []  # sorted, without overlaps
    for first, end, span in found:
        at = bisect_right(kept, first, key=lambda one: one[1])  # the first one that ends after the span begins
        if at == len(kept) or kept[at][0] >= end:
            kept.insert(at, (first, end, span))
        elif (other := kept[at][2]) != span:
            message = f"{_describe(text, span)} overlaps {_describe(text, other)}"
            conflicts.append(SpanConflict("overlap", message, misaligned=False, dropped=True, span=span))
    return Alignment([(first, end, span.type) for first, end, span in kept], conflicts)


def token_ranges(text: TokenizedText, spans: Iterable[TextSpan]) -> list[tuple[int, int] | None]:
    """Return the first token of each span and the one after the last, None if its edges are not token edges.

    Invisible characters at the edges of tokens are ignored, as by `align`. `text`: the text with its tokens. `spans`:
    spans of its characters.
    """
    tokens = _TokenEdges(text)
    return [None if isinstance(place, SpanConflict) else place for place in map(tokens.exact, spans)]


def merge_sentences(text: TokenizedText, spans: Iterable[tuple[int, int, str]]) -> TokenizedText:
    """Remove sentence boundaries inside token spans.

    `text`: the text with its tokens and sentences. `spans`: triples (first token, token after the last, type), as in
    `Alignment`. Returns the text with fewer sentences.
    """
    inside = {t for first, end, _ in spans for t in range(first + 1, end)}
    return text._replace(sentences=[t for t in text.sentences if t not in inside])


def to_character_offsets(
    text: str, spans: Iterable[TextSpan], unit: OffsetUnit, line_ends: LineEnds | None = None
) -> list[TextSpan]:
    r"""Convert offsets in UTF-16 code units or UTF-8 bytes, or in a text with other line ends, to characters.

    Returns the spans with character offsets; offsets beyond the text or inside a character become len(text) + 1.

    Args:
        spans: spans with offsets in the unit.
        unit: "characters", "utf-16" or "utf-8".
        line_ends: line ends of the text whose offsets these are, \n or \r\n; None: those of `text`.
    """
    if (unit == "characters" or text.isascii()) and (line_ends is None or "\n" not in text):
        return list(spans)
    codec, width = {"characters": ("utf-32-le", 4), "utf-16": ("utf-16-le", 2), "utf-8": ("utf-8", 1)}[unit]
    sizes = [len(char.encode(codec, "surrogatepass")) // width for char in text]
    for i, char in enumerate(text if line_ends is not None else ""):
        if char == "\n" and (text[i - 1 : i] == "\r") == (line_ends == "\n"):
            sizes[i] = 0 if line_ends == "\n" else 2
    positions = {at: i for i, at in enumerate(accumulate(sizes, initial=0))}
    beyond = len(text) + 1
    return [
        span._replace(start=positions.get(span.start, beyond), end=positions.get(span.end, beyond)) for span in spans
    ]


class _TokenEdges:
    """Lookup of tokens by the positions where they begin and end."""

    def __init__(self, text: TokenizedText) -> None:
        self.text = text
        self.hidden = invisible_characters(text.text)
        edges = [self._visible(start, end) for start, end in text.tokens]
        self.starts, self.ends = [start for start, _ in edges], [end for _, end in edges]
        self.first = {start: t for t, (start, _) in enumerate(text.tokens)} | {a: t for t, a in enumerate(self.starts)}
        self.last = {end: t for t, (_, end) in enumerate(text.tokens)} | {b: t for t, b in enumerate(self.ends)}

    def exact(self, span: TextSpan) -> tuple[int, int] | SpanConflict:
        """Return the first token and the one after the last, or a conflict."""
        start, end = span[:2]
        size = len(self.text.text)
        if not 0 <= start < end <= size:
            message = f"span {start}..{end} is empty or outside the text of {size} characters"
            return SpanConflict("empty or outside the text", message, True)
        if not span.type:
            return SpanConflict("no type", f"{_describe(self.text, span)} has no type", True)
        if not span.continuous:
            message = f"{_describe(self.text, span)} consists of several parts with other words between them"
            return SpanConflict("discontinuous", message, True)
        shown = self._visible(start, end)
        first = self.first.get(start, self.first.get(shown[0]))
        last = self.last.get(end, self.last.get(shown[1]))
        if first is not None and last is not None and first <= last:
            return first, last + 1
        name = _describe(self.text, span)
        before, after = bisect_right(self.ends, start), bisect_left(self.starts, end)
        for a, b in (self.text.tokens[t] for at in (before, after) for t in (at - 1, at) if 0 <= t < len(self.ends)):
            if a < start < b or a < end < b:
                return SpanConflict("token cut", f"{name} cuts the token {self.text.text[a:b]!r:.60} at {a}..{b}", True)
        return SpanConflict("white space at an edge", f"{name} begins or ends in white space", True)

    def touched(self, span: TextSpan) -> tuple[int, int] | None:
        """Return the first token that overlaps with a span, and the one after the last of these."""
        first, end = bisect_right(self.ends, span.start), bisect_left(self.starts, span.end)
        within = 0 <= span.start < span.end <= len(self.text.text)
        return (first, end) if first < end and within else None

    def _visible(self, start: int, end: int) -> Offsets:
        """Trim invisible characters at both edges."""
        while start < end and self.text.text[start] in self.hidden:
            start += 1
        while start < end and self.text.text[end - 1] in self.hidden:
            end -= 1
        return start, end


def _describe(text: TokenizedText, span: TextSpan) -> str:
    return f"span {span.start}..{span.end} {text.text[span.start : min(span.end, span.start + 60)]!r:.60}"
