"""New text as a corpus, and what is decided about it as strings."""

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from structperc.data.corpus import Corpus
from structperc.data.segments import Span, spans
from structperc.errors import InputError
from structperc.text import TextSpan, TokenizedText

Sentence = Iterable[str] | Mapping[str, Iterable[str]]


class Decided(NamedTuple):
    """What a tagger decides about a corpus of N tokens; probabilities where they were asked for."""

    labels: list[str]  # N
    tokens: np.ndarray | None  # (N,) float64, probability of the label of each token
    segments: np.ndarray | None  # (N,) float64, that of the segment the token is in; NaN outside of segments


def text_spans(text: TokenizedText, decided: Decided, scheme: str) -> list[TextSpan]:
    """Return what is decided about the tokens of a text, in their order, as spans of its characters.

    These are its segments, or in the scheme "none", which has no segments, all tokens with their labels.
    """
    found = []
    for first, last in pairwise(text.sentences):
        labels = decided.labels[first:last]
        own = [Span(label, t, t + 1) for t, label in enumerate(labels)] if scheme == "none" else spans(labels)
        known = decided.tokens if scheme == "none" else decided.segments
        for kind, a, b in own:
            start, end = text.tokens[first + a][0], text.tokens[first + b - 1][1]
            found.append(TextSpan(start, end, kind, None if known is None else float(known[first + a])))
    return found


def read_sentences(sentences: Iterable[Sentence], documents: Iterable[int] | None = None) -> Corpus:
    """Return sentences as a corpus, in which neighbouring ones of one document are together where documents are given.

    Raises InputError for a string where a list of words is due, and for words that are no strings.
    """
    rows = map(named_columns, sentences)
    if documents is None:
        corpus = Corpus.from_sentences(rows)
    else:
        corpus = Corpus.from_sentences(rows, list(documents), "document")
    for role, values in corpus.columns.items():
        try:
            "".join(corpus.numbered(role).distinct)
        except TypeError:  # what is no string cannot be joined, or not even be numbered
            wrong = next(value for value in values if not isinstance(value, str))
            raise InputError(f"a word is a string, not {wrong!r}; a sentence is a list of words") from None
    return corpus


def named_columns(sentence: Sentence) -> Mapping[str, Iterable[str]]:
    """{column: strings}, none of which is a single string."""
    named = sentence if isinstance(sentence, Mapping) else {"word": sentence}
    for role, values in named.items():
        if isinstance(values, str):
            what = "a sentence" if role == "word" else f"column {role!r} of a sentence"
            raise InputError(f"{what} is a list of words, not the string {values[:30]!r}; split it into words")
    return named
