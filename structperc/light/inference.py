"""New text as a corpus, and what is decided about it as strings."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise, zip_longest
from typing import Any, NamedTuple

import numpy as np

from structperc.data.corpus import Corpus
from structperc.data.segments import Span, spans
from structperc.errors import InputError
from structperc.text import TextSpan, TokenizedText

Sentence = Iterable[str] | Mapping[str, Iterable[str]]
_MISSING: Any = object()


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
    rows = map(_columns, sentences)
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


def batches(
    sentences: Iterable[Sentence], documents: Iterable[int] | None, tokens: float
) -> Iterator[tuple[list[Sentence], list[int] | None]]:
    """Yield sentences, and their documents if given, in batches of about so many tokens and of whole documents.

    No more is taken than a batch has, and one sentence to see that a document is over. Raises InputError where there
    are not as many ids as sentences.
    """
    if documents is None:
        alone = _Batch()
        for sentence in sentences:
            if alone.add(sentence, 0) >= tokens:
                yield alone.sentences, None
                alone = _Batch()
        if alone.sentences:
            yield alone.sentences, None
        return
    batch = _Batch()
    for sentence, document in zip_longest(sentences, documents, fillvalue=_MISSING):
        if sentence is _MISSING or document is _MISSING:
            raise InputError("there are not as many document ids as sentences; give one for each")
        if batch.tokens >= tokens and document != batch.documents[-1]:
            yield batch.sentences, batch.documents
            batch = _Batch()
        batch.add(sentence, document)
    if batch.sentences:
        yield batch.sentences, batch.documents


class _Batch:
    """Sentences that are labelled at a time."""

    def __init__(self) -> None:
        self.sentences: list[Sentence] = []
        self.documents: list[int] = []
        self.tokens = 0

    def add(self, sentence: Sentence, document: int) -> int:
        """Take a sentence, which is iterated over once. -> how many tokens there are now."""
        named = {role: list(values) for role, values in _columns(sentence).items()}
        self.sentences.append(named)
        self.documents.append(document)
        self.tokens += max(1, *map(len, named.values()))  # empty ones take memory, too
        return self.tokens


def _columns(sentence: Sentence) -> Mapping[str, Iterable[str]]:
    """{column: strings}, none of which is a single string."""
    named = sentence if isinstance(sentence, Mapping) else {"word": sentence}
    for role, values in named.items():
        if isinstance(values, str):
            what = "a sentence" if role == "word" else f"column {role!r} of a sentence"
            raise InputError(f"{what} is a list of words, not the string {values[:30]!r}; split it into words")
    return named
