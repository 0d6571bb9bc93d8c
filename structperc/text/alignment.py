"""Spans of characters against tokens: what annotators mark, and what taggers label."""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from structperc.errors import InputError
from structperc.text.tokenized import TokenizedText


class TextSpan(NamedTuple):
    """A stretch of a text, text[start:end], that is of a type; with the confidence of what found it, if it has one."""

    start: int
    end: int
    type: str
    confidence: float | None = None


def to_tokens(text: TokenizedText, spans: Iterable[TextSpan], place: str) -> list[tuple[int, int, str]]:
    """Return (first token, token after the last, type) for each span, in the order of the text.

    Raises InputError, which begins with `place`, for spans that are empty or outside of the text, that cut a token or
    begin or end in white space, that cross the end of a sentence, and that share a token with another one.
    """
    begins, ends = ([offsets[i] for offsets in text.tokens] for i in (0, 1))
    found: list[tuple[int, int, str]] = []
    for span in sorted(spans, key=lambda span: span[:2]):
        start, end, kind = span[:3]
        what = f"{place}: span {start}..{end}"
        if not 0 <= start < end <= len(text.text):
            raise InputError(f"{what} is empty or not within the text of {len(text.text)} characters; correct it")
        what += f" {text.text[start:end]!r:.60}"
        first, last = bisect_left(begins, start), bisect_left(ends, end)
        if begins[first : first + 1] != [start] or ends[last : last + 1] != [end]:
            raise InputError(f"{what} {_misfit(text, start, end)}; move it, or choose another tokenizer")
        if bisect_left(text.sentences, first + 1) != bisect_left(text.sentences, last + 1):
            raise InputError(f"{what} crosses the end of a sentence; choose another sentence splitter")
        if found and found[-1][1] > first:
            raise InputError(f"{what} overlaps the span before it; keep one of them")
        found.append((first, last + 1, kind))
    return found


def _misfit(text: TokenizedText, start: int, end: int) -> str:
    """Which token a span cuts, or that it begins or ends between tokens."""
    for a, b in text.tokens:
        if a < start < b or a < end < b:
            return f"cuts the token {text.text[a:b]!r:.60} at {a}..{b}"
    return "begins or ends in white space"


def placed(words: Sequence[Sequence[str]], text: str, place: str) -> TokenizedText:
    """Return a text with the given words of sentences, which nothing but white space separates.

    Raises InputError, which begins with `place`, for words that the text does not have in this order.
    """
    tokens: list[tuple[int, int]] = []
    at, boundaries = 0, [0]
    for sentence in words:
        for word in sentence:
            start = len(text) - len(text[at:].lstrip())
            if not word or not text.startswith(word, start):
                raise InputError(f"{place}: the text has no word {word!r:.60} next after character {at}; correct it")
            at = start + len(word)
            tokens.append((start, at))
        if len(tokens) > boundaries[-1]:
            boundaries.append(len(tokens))
    return TokenizedText(text, tokens, boundaries)
