"""New text as a corpus, and what is decided about it as strings."""

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from structperc.data.corpus import Corpus
from structperc.data.tag_schemes import Span, spans
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

    Raises InputError for anything but a list of sentences of words, and for words that are not strings.
    """
    if isinstance(sentences, str | bytes | Mapping) or not isinstance(sentences, Iterable):
        raise InputError(
            f"sentences are a list of lists of words, not {sentences!r:.40}; for one sentence give [words]"
        )
    rows = map(named_columns, sentences)
    if documents is None:
        corpus = Corpus.from_sentences(rows)
    else:
        corpus = Corpus.from_sentences(rows, list(documents), "document")
    for role, values in corpus.columns.items():
        try:
            "".join(corpus.factorize(role).distinct)
        except TypeError:  # what is no string cannot be joined, or not even be numbered
            place, wrong = next((t, value) for t, value in enumerate(values) if not isinstance(value, str))
            what = f"a word is a string, not {wrong!r:.40}; a sentence is a list of words"
            raise InputError(f"{corpus.where(place)}: {what}") from None
    return corpus


def named_columns(sentence: Sentence) -> Mapping[str, Iterable[str]]:
    """{column: strings}, none of which is a single string."""
    named = sentence if isinstance(sentence, Mapping) else {"word": sentence}
    for role, values in named.items():
        what = "a sentence" if role == "word" else f"column {role!r} of a sentence"
        if isinstance(values, str):
            advice = "split it into words, or for one sentence give [words]"
            raise InputError(f"{what} is a list of words, not the string {values[:30]!r}; {advice}")
        if isinstance(values, bytes | Mapping) or not isinstance(values, Iterable):
            raise InputError(f"{what} is a list of words, not {values!r:.40}")
    return {role: list(values) for role, values in named.items()}
