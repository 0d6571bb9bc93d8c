"""A text with its tokens and sentences.

Spans of characters against tokens: what annotators mark, and what taggers label.
"""

import operator
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, pairwise
from typing import Any, Literal, NamedTuple

from structperc.errors import InputError
from structperc.text.tokenizer import (
    Cut,
    Offsets,
    Split,
    conll_tokens,
    invisible_characters,
    rule_sentences,
    strip_invisible,
)


class TokenizedText(NamedTuple):
    """A text of N tokens in R sentences, of which none is empty."""

    text: str
    tokens: Sequence[Offsets]  # N pairs (start, end) of characters, in their order, none of them empty
    sentences: Sequence[int]  # R + 1 boundaries among the tokens, the first is 0, the last N

    @property
    def words(self) -> list[str]:
        """The N tokens as strings."""
        return [self.text[start:end] for start, end in self.tokens]

    @property
    def word_lists(self) -> list[list[str]]:
        """The words of each of the R sentences."""
        words = self.words
        return [words[a:b] for a, b in pairwise(self.sentences)]


def tokenized(text: str, tokenizer: Cut = conll_tokens, sentences: Split = rule_sentences) -> TokenizedText:
    """Cut a text into tokens and sentences.

    Args:
        text: any string.
        tokenizer: returns the offsets (start, end) of the tokens of a text, in their order; a function of one's own
            may be given, too. White space at the edges of its tokens is left out, and so are tokens in which nothing
            is visible.
        sentences: returns the boundaries of sentences among the tokens; may be a function of one's own.

    Raises:
        InputError: the text is no string; the tokenizer returns strings or anything else but pairs of offsets, or
            offsets that are empty, overlap or lie outside of the text; boundaries that are no such numbers.

    Example:
        >>> tokenized("Anna left. She came back.").word_lists
        [['Anna', 'left', '.'], ['She', 'came', 'back', '.']]
        >>> tokenized("Anna left", lambda text: [(0, 4), (4, 9)]).tokens  # as byte-level tokenizers cut
        [(0, 4), (5, 9)]
    """
    if not isinstance(text, str):
        raise InputError(f"a text is a string, not {text!r:.60}")
    tokens = list(_checked_offsets(text, tokenizer(text)))
    return TokenizedText(text, tokens, _checked_boundaries(sentences(text, tokens), len(tokens)))


def _checked_offsets(text: str, given: Any) -> Iterator[Offsets]:
    """The offsets that a tokenizer gives, without the white space at their edges."""
    if isinstance(given, str | bytes) or not hasattr(given, "__iter__"):
        raise InputError(f"the tokenizer returns {given!r:.60}; {_PAIRS}")
    last = (0, 0)
    for one in given:
        start, end = _pair(one)
        if not 0 <= start < end <= len(text):
            raise InputError(_wrong_offsets(text, start, end))
        start, end = _trimmed(text, start, end)
        if start == end:
            continue
        if start < last[1]:
            how = "overlaps" if end > last[0] else "stands before"
            what = f"{start}..{end} {text[start:end]!r:.40}"
            before = f"the token {last[0]}..{last[1]} {text[slice(*last)]!r:.40} returned before it"
            raise InputError(f"the tokenizer returns the token {what}, which {how} {before}")
        yield start, end
        last = (start, end)


_PAIRS = "it must return pairs of offsets (start, end), one for each token text[start:end]"


def _pair(one: Any) -> Offsets:
    """The offsets of a token as integers."""
    if isinstance(one, str | bytes):
        raise InputError(f"the tokenizer returns the string {one!r:.60}; {_PAIRS}")
    try:
        start, end = map(operator.index, one)
    except (TypeError, ValueError):
        raise InputError(f"the tokenizer returns {one!r:.60}; {_PAIRS}") from None
    return start, end


def _wrong_offsets(text: str, start: int, end: int) -> str:
    if start == end:
        return f"the tokenizer returns the empty token {start}..{end}; leave out special tokens and what is empty"
    where = f"is not within the text of {len(text)} characters" if 0 <= start < end else "is not a stretch of the text"
    return f"the tokenizer returns the token {start}..{end}, which {where}; offsets count characters from 0"


def _trimmed(text: str, start: int, end: int) -> Offsets:
    """The stretch without white space at its edges; empty where it shows nothing."""
    word = text[start:end]
    if not strip_invisible(word).strip():
        return end, end
    return start + len(word) - len(word.lstrip()), end - len(word) + len(word.rstrip())


def _checked_boundaries(given: Any, number: int) -> list[int]:
    """The boundaries that a sentence splitter gives among so many tokens."""
    try:
        found = [operator.index(one) for one in given]
    except TypeError:
        raise InputError(f"the sentence splitter returns {given!r:.60}; {_BOUNDARIES}") from None
    if found[:1] != [0] or found[-1] != number or any(a >= b for a, b in pairwise(found)):
        raise InputError(f"the sentence splitter returns {found!r:.60} for {number} tokens; {_BOUNDARIES}")
    return found


_BOUNDARIES = "it must return the number of the first token of each sentence, ascending, and the number of tokens"


def join_words(sentences: Sequence[Sequence[str]]) -> TokenizedText:
    """Return words as a text: a space between words, a line end after each sentence but the last; empty ones go."""
    kept = [words for words in sentences if words]
    tokens: list[Offsets] = []
    at, boundaries = 0, [0]
    for words in kept:
        for word in words:
            tokens.append((at, at + len(word)))
            at += len(word) + 1
        boundaries.append(len(tokens))
    return TokenizedText("\n".join(map(" ".join, kept)), tokens, boundaries)


Misaligned = Literal["error", "expand", "skip"]
Overlaps = Literal["error", "longest"]
OffsetUnit = Literal["characters", "utf-16", "utf-8"]  # what the offsets of spans count


class TextSpan(NamedTuple):
    """A stretch of a text, text[start:end], that is of a type; with the confidence of what found it, if it has one."""

    start: int
    end: int
    type: str
    confidence: float | None = None


class SpanConflict(NamedTuple):
    """A span that has no tokens of its own."""

    kind: str  # "token cut", "overlap", ..., for counts
    message: str  # which span it is, and what is wrong with it
    misaligned: bool  # whether that is up to the option `misaligned`, rather than `overlaps`


class Alignment(NamedTuple):
    """The spans of a text as tokens, and those that do not fit."""

    spans: list[tuple[int, int, str]]  # (first token, token after the last, type) in the order of the text
    conflicts: list[SpanConflict]


def align(
    text: TokenizedText,
    spans: Iterable[TextSpan],
    misaligned: Misaligned = "error",
    overlaps: Overlaps = "error",
) -> Alignment:
    """Return the tokens of spans, and the misfits among them, which are corrected as the options say.

    White space and invisible characters at the edges of tokens do not matter. Nor do sentences, see `merge_sentences`.

    Args:
        text: the text with its tokens.
        spans: spans of its characters. Of equal ones one is kept.
        misaligned: what becomes of spans that do not begin and end as tokens do. "expand": they extend to all tokens
            that they share a character with, and are left out if there are none; "skip": they are left out; "error":
            as "expand", for a caller that refuses misfits.
        overlaps: what becomes of spans that share a token. "longest": the longest is kept, of several the first;
            "error": the first is kept.

    Example:
        >>> from structperc.text import tokenized
        >>> align(tokenized("Anna Lind left"), [TextSpan(0, 8, "PER")], "expand").spans
        [(0, 2, 'PER')]
    """
    tokens = _Tokens(text)
    found, conflicts = [], []
    for span in {span[:3]: span for span in spans}.values():
        place: tuple[int, int] | SpanConflict | None = tokens.of(span)
        if isinstance(place, SpanConflict):
            conflicts.append(place)
            place = None if misaligned == "skip" else tokens.touched(span)
        if place is not None:
            found.append((*place, span))
    if overlaps == "longest":
        found.sort(key=lambda one: (one[0] - one[1], one[0]))  # the longest one first
    else:
        found.sort(key=lambda one: one[:2])
    taken: dict[int, TextSpan] = {}
    kept = []
    for first, end, span in found:
        rival = next((taken[t] for t in range(first, end) if t in taken), None)
        if rival is None:
            taken.update(dict.fromkeys(range(first, end), span))
            kept.append((first, end, span.type))
        elif rival != span:
            what = f"{_named(text, span)} overlaps {rival.start}..{rival.end} {_quoted(text, rival)}"
            conflicts.append(SpanConflict("overlap", what, False))
    return Alignment(sorted(kept), conflicts)


def to_token_spans(text: TokenizedText, spans: Iterable[TextSpan], place: str) -> list[tuple[int, int, str]]:
    """Return (first token, token after the last, type) for each span, in the order of the text.

    Raises InputError, which begins with `place`, for the first span that does not fit the tokens, see `align`.
    """
    found = align(text, spans)
    if found.conflicts:
        raise InputError(f"{place}: {found.conflicts[0].message}; correct it, or choose another tokenizer")
    return found.spans


def merge_sentences(text: TokenizedText, spans: Iterable[tuple[int, int, str]]) -> TokenizedText:
    """Return the text without the boundaries of sentences inside of spans of tokens.

    Example:
        >>> from structperc.text import tokenized
        >>> text = tokenized("Our firm Yahoo! Inc. grew.")
        >>> text.sentences, merge_sentences(text, [(2, 5, "ORG")]).sentences
        ([0, 4, 7], [0, 7])
    """
    inside = {t for first, end, _ in spans for t in range(first + 1, end)}
    return text._replace(sentences=[t for t in text.sentences if t not in inside])


def to_character_offsets(text: str, spans: Iterable[TextSpan], unit: OffsetUnit) -> list[TextSpan]:
    """Return spans whose offsets count code units of UTF-16 or bytes of UTF-8 as spans of characters.

    An offset beyond the text, or inside of a character, becomes one beyond the text.

    Example:
        >>> to_character_offsets("\\U0001f600 Anna", [TextSpan(3, 7, "PER")], "utf-16")
        [TextSpan(start=2, end=6, type='PER', confidence=None)]
    """
    if unit == "characters" or text.isascii():
        return list(spans)
    sizes = [len(char.encode(f"{unit}-le" if unit == "utf-16" else unit, "surrogatepass")) for char in text]
    width = 2 if unit == "utf-16" else 1
    places = {at: i for i, at in enumerate(accumulate((size // width for size in sizes), initial=0))}
    beyond = len(text) + 1
    return [span._replace(start=places.get(span.start, beyond), end=places.get(span.end, beyond)) for span in spans]


class _Tokens:
    """The tokens of a text by the places where they begin and end."""

    def __init__(self, text: TokenizedText) -> None:
        self.text = text
        self.hidden = invisible_characters(text.text)
        edges = [self._visible(start, end) for start, end in text.tokens]
        self.starts, self.ends = [start for start, _ in edges], [end for _, end in edges]
        self.first = {start: t for t, (start, _) in enumerate(text.tokens)} | {a: t for t, a in enumerate(self.starts)}
        self.last = {end: t for t, (_, end) in enumerate(text.tokens)} | {b: t for t, b in enumerate(self.ends)}

    def of(self, span: TextSpan) -> tuple[int, int] | SpanConflict:
        """The first token and the one after the last, or why there are none."""
        start, end = span[:2]
        if not 0 <= start < end <= len(self.text.text):
            beyond = f"is empty or not within the text of {len(self.text.text)} characters"
            return SpanConflict("outside of the text or empty", f"span {start}..{end} {beyond}", True)
        shown = self._visible(start, end)
        first = self.first.get(start, self.first.get(shown[0]))
        last = self.last.get(end, self.last.get(shown[1]))
        if first is not None and last is not None and first <= last:
            return first, last + 1
        name = _named(self.text, span)
        for a, b in self._touching(span):
            if a < start < b or a < end < b:
                return SpanConflict("token cut", f"{name} cuts the token {self.text.text[a:b]!r:.60} at {a}..{b}", True)
        return SpanConflict("white space at an edge", f"{name} begins or ends in white space", True)

    def touched(self, span: TextSpan) -> tuple[int, int] | None:
        """The first token that shares a visible character with a span and the one after the last of these."""
        first, end = bisect_right(self.ends, span.start), bisect_left(self.starts, span.end)
        within = 0 <= span.start < span.end <= len(self.text.text)
        return (first, end) if first < end and within else None

    def _touching(self, span: TextSpan) -> Sequence[tuple[int, int]]:
        first = bisect_right(self.ends, span.start)
        return self.text.tokens[max(0, first - 1) : bisect_left(self.starts, span.end) + 1]

    def _visible(self, start: int, end: int) -> tuple[int, int]:
        """A stretch without invisible characters at its edges."""
        while start < end and self.text.text[start] in self.hidden:
            start += 1
        while start < end and self.text.text[end - 1] in self.hidden:
            end -= 1
        return start, end


def _named(text: TokenizedText, span: TextSpan) -> str:
    return f"span {span.start}..{span.end} {_quoted(text, span)}"


def _quoted(text: TokenizedText, span: TextSpan) -> str:
    return f"{text.text[span.start : span.end]!r:.60}"


def align_words(words: Sequence[Sequence[str]], text: str, place: str) -> TokenizedText:
    """Return a text with the given words of sentences, which nothing visible separates.

    Raises InputError, which begins with `place`, for words that the text does not have in this order.
    """
    blank = set(invisible_characters(text))
    tokens: list[tuple[int, int]] = []
    at, boundaries = 0, [0]
    for sentence in words:
        for word in sentence:
            start = at
            while not text.startswith(word or " ", start) and start < len(text):
                if not text[start].isspace() and text[start] not in blank:
                    break
                start += 1
            if not word or not text.startswith(word, start):
                raise InputError(f"{place}: the text has no word {word!r:.60} next after character {at}; correct it")
            at = start + len(word)
            tokens.append((start, at))
        if len(tokens) > boundaries[-1]:
            boundaries.append(len(tokens))
    return TokenizedText(text, tokens, boundaries)
