"""A text with its tokens and sentences."""

import operator
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from structperc.errors import InputError
from structperc.text.invisible import without_invisible
from structperc.text.sentences import Split, rule_sentences
from structperc.text.tokenizer import Cut, Offsets, conll_tokens


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
    if not without_invisible(word).strip():
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


def joined(sentences: Sequence[Sequence[str]]) -> TokenizedText:
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
