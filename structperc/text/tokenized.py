"""A text with its tokens and sentences."""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from structperc.errors import InputError
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

    `tokenizer` gives the offsets of the tokens of a text, `sentences` the boundaries of sentences among them; both may
    be functions of one's own. Raises InputError for a text that is no string, and for offsets and boundaries that are
    empty, not in their order or outside of the text.
    """
    if not isinstance(text, str):
        raise InputError(f"a text is a string, not {text!r:.60}")
    tokens = [(int(start), int(end)) for start, end in tokenizer(text)]
    at = 0
    for start, end in tokens:
        if not at <= start < end <= len(text):
            raise InputError(f"the tokenizer gives the token {start}..{end} after {at} in a text of {len(text)}")
        at = end
    found = list(sentences(text, tokens))
    if found[:1] != [0] or found[-1] != len(tokens) or any(a >= b for a, b in pairwise(found)):
        raise InputError(f"the sentence splitter gives the boundaries {found} for {len(tokens)} tokens")
    return TokenizedText(text, tokens, found)


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
